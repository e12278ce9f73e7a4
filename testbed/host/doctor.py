"""`manet doctor`: what this machine can do, what is missing, how to get it, and how many runs it can take.

Every check has a result and, if it fails, a remedy. `needed` checks decide whether the testbed works at all; the others concern
optional programs (third-party routing daemons, kernel wireless). Each has a second result, for runs of an ordinary user
(testbed/host/privileges.py), who needs user namespaces and no eBPF.
"""

import errno
import json
import os
import shutil
import socket
import statistics
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from scenarios.daemon_description import Description
from scenarios.daemon_file import own_descriptions
from testbed.errors import UsageError
from testbed.host import cgroup, mininet_wifi, modules, privileges, protocols
from testbed.host.requirements import BTF, HWSIM, IPV6, IPV6_REMEDY, TOOLS, TUN
from testbed.programs import BUILT, INSTALLATION, Programs
from traffic import kinds

# programs for analysis and development, in addition to those that a run needs
MORE_TOOLS = {"tcpdump": "tcpdump", "tshark": "tshark", "bpftool": "bpftool", "ns": "ns2", "skopeo": "skopeo", "umoci": "umoci"}
ROUTING = "routing "  # prefix of the names of routing protocols' checks
LATENESS_SAMPLES = 300
SLEEP_S = 0.001
# CPU that a real-time run of ten stations with one flow takes in all its processes, as a share of one core: 0.116
# alone, 0.089 in parallel with seven others, on two cores at 2 Mbit/s (`make bench`). The rest of the machine is left idle, so
# that timers come in time.
CORE_SHARE_PER_RUN = 0.12
BUSY_SHARE = 0.7
LATE_TIMER_US = 5000  # p95 above this: the medium's own rule for `suspect` (docs/verdict.md)
PROC_SELF = Path("/proc/self")
OPEN_TO_ALL = 0o006  # of a device's mode: others may read and write
NOBODY = 65_534  # an ordinary user without groups, as which root tries
FILTERED = "2"  # Seccomp: of /proc/self/status (proc(5))


@dataclass(frozen=True)
class Check:
    """The result of one check. `detail` is what was found, `remedy` how to get what is missing. `without_root`: the result for an
    ordinary user; None: the same."""

    name: str
    ok: bool
    detail: str
    remedy: str = ""
    needed: bool = True
    without_root: bool | None = None

    def ok_for(self, *, root: bool) -> bool:
        """The result for root, or for an ordinary user."""
        return self.ok if root or self.without_root is None else self.without_root


def doctor(
    *, tun: Path = TUN, btf: Path = BTF, path: str | None = None, programs: Programs = BUILT, user: int | None = None,
    proc: Path = PROC_SELF,
) -> list[Check]:  # fmt: skip
    """Run all checks, in the order in which they are printed. The arguments replace devices, PATH, programs, user id and
    /proc/self in tests."""
    checks = parts(tun=tun, btf=btf, path=path, programs=programs, user=user, proc=proc)
    lateness_us = timer_lateness_us()
    return [*checks, _timers(lateness_us), _load(lateness_us)]


def parts(
    *, tun: Path = TUN, btf: Path = BTF, path: str | None = None, programs: Programs = BUILT, user: int | None = None,
    proc: Path = PROC_SELF,
) -> list[Check]:  # fmt: skip
    """The checks of what the machine has; those of its speed take a third of a second more."""
    checks = [
        _root(os.geteuid() if user is None else user),
        _privileges(proc),
        _tun(tun, proc),
        _namespaces(proc),
        _user_namespaces(),
        _cgroup2(),
        _btf(btf),
        _bpf(programs, proc),
        _built("medium", programs.medium),
        _built("capture", programs.capture),
    ]
    checks += [_tool(tool, package, path, needed=True) for tool, package in TOOLS.items()]
    of_kinds = {tool: package for kind in kinds().values() for tool, package in kind.programs.items()}
    # A package only suggests nginx, whose package starts a server; runs without such traffic need none of them.
    is_checkout = INSTALLATION.package is None
    checks += [_tool(tool, package, path, needed=is_checkout) for tool, package in of_kinds.items()]
    checks += [_tool(tool, package, path, needed=False) for tool, package in MORE_TOOLS.items()]
    checks += [_ipv6(), _wireless(os.uname().release), _mininet(), _mininet_wifi(path)]
    checks += [_routing(protocol, None, programs, path) for protocol in protocols.protocols()]
    return checks + [_own_routing(name, own, programs, path) for name, own in sorted(own_descriptions().items())]


def _root(user: int) -> Check:
    text = "this command runs as root" if user == 0 else f"this command runs as user {user}"
    return Check("root", user == 0, text, "" if user == 0 else "run it with sudo", without_root=True)


def _privileges(proc: Path) -> Check:
    missing = _missing_privilege(proc)
    return Check("privileges", missing is None, *(missing or ("root of the machine", "")), without_root=True)


def _missing_privilege(proc: Path) -> tuple[str, str] | None:
    """The missing privilege and the remedy; None for root of the machine with the capabilities of a run.

    User 0 of a user namespace, or of a container without capabilities, has fewer than root of the machine (user_namespaces(7),
    capabilities(7)); to such a user the kernel answers as one that lacks a feature would."""
    if lacking := privileges.missing_capabilities(proc):
        uses = [f"{name} ({privileges.CAPABILITIES[name][1]})" for name in lacking]
        flags = " ".join(f"--cap-add {name.removeprefix('CAP_')}" for name in lacking)
        return f"without {', '.join(uses)}", f"run it as root; start a container with --privileged, or {flags}"
    if not privileges.has_all_ids(proc):
        remedy = "run it as root of the machine; start a container as root and with --privileged, not rootless"
        return "root of a user namespace alone, to which the kernel gives no eBPF", remedy
    return None


def _is_filtered(proc: Path) -> bool:
    """Whether system calls are filtered (seccomp(2)), as a container's profile does."""
    return any(line.split() == ["Seccomp:", FILTERED] for line in (proc / "status").read_text().splitlines())


def _remedy(proc: Path, otherwise: str) -> str:
    """The remedy for what the kernel refused: a missing privilege looks like a missing feature."""
    if (missing := _missing_privilege(proc)) is not None:
        return f"{missing[0]}; see privileges"
    if _is_filtered(proc):
        return f"{otherwise}; a filter of system calls may refuse it: --security-opt seccomp=unconfined of a container"
    return otherwise


def _tun(tun: Path, proc: Path) -> Check:
    try:
        os.close(os.open(tun, os.O_RDWR | os.O_CLOEXEC))
    except OSError as problem:
        remedy = "modprobe tun (CONFIG_TUN); in a container, pass the device in"
        if problem.errno == errno.EACCES and not privileges.is_root(proc=proc):
            remedy = f"as root: chmod 0666 {tun}, or add the user to its group ({_group_of(tun)})"
        elif problem.errno in (errno.EPERM, errno.EACCES):
            remedy = _remedy(proc, remedy)
        return Check("TUN", False, f"{tun}: {problem.strerror}", remedy)
    if not os.geteuid() and tun.stat().st_mode & OPEN_TO_ALL != OPEN_TO_ALL:
        text = f"{tun}, for root and the group {_group_of(tun)}"
        return Check("TUN", True, text, f"for ordinary users: chmod 0666 {tun}", without_root=False)
    return Check("TUN", True, str(tun))


def _group_of(path: Path) -> str:
    try:
        return path.group()
    except (KeyError, OSError):
        return "unknown"


def _namespaces(proc: Path) -> Check:
    argv = ["unshare", "--mount", "--net", "--pid", "--fork", "--mount-proc", "true"]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired) as problem:
        return Check("namespaces", False, str(problem), "apt-get install util-linux", without_root=True)
    remedy = "" if done.returncode == 0 else _remedy(proc, "run as root, outside of a restricted container")
    return Check("namespaces", done.returncode == 0, done.stderr.strip() or "mount, network and pid", remedy, without_root=True)


def _user_namespaces() -> Check:
    """Whether an ordinary user may be root of a user namespace, with all namespaces of a run."""
    refused = privileges.refusal(user=None if os.geteuid() else NOBODY)
    detail, remedy = refused or ("open to ordinary users", "")
    return Check("user namespaces", True, detail, remedy, without_root=refused is None)


def _cgroup2() -> Check:
    mount = cgroup.cgroup2_mount()
    remedy = "" if mount else cgroup.MOUNT_COMMAND
    return Check("cgroup2", mount is not None, str(mount or "not mounted"), remedy, without_root=True)


def _btf(btf: Path) -> Check:
    remedy = "" if btf.exists() else "use a kernel with CONFIG_DEBUG_INFO_BTF (Debian's has it)"
    return Check("BTF", btf.exists(), str(btf) if btf.exists() else f"{btf}: not there", remedy, without_root=True)


def _bpf(programs: Programs, proc: Path) -> Check:
    if not programs.kernel_tcp.exists():
        return Check("kernel-tcp", False, f"{programs.kernel_tcp}: not built", "run ./setup.sh")
    argv = [str(programs.kernel_tcp), "features", "--json"]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=30, check=False)
        features = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired) as problem:
        return Check("kernel-tcp", False, f"features: {problem}", "run ./setup.sh")
    shown = {key: value for key, value in features.items() if key != "format" and not isinstance(value, dict | list)}
    features_text = ", ".join(f"{key} {_yes_no(value)}" for key, value in shown.items())
    words = (done.stderr.strip().splitlines() or ["use a newer kernel"])[-1]
    remedy = "" if done.returncode == 0 else _remedy(proc, words)
    return Check("kernel-tcp", done.returncode == 0, features_text, remedy, without_root=True)


def _yes_no(value: object) -> str:
    return {True: "yes", False: "no"}.get(value, str(value)) if isinstance(value, bool) else str(value)


def _built(name: str, program: Path) -> Check:
    there = program.exists()
    return Check(name, there, str(program) if there else f"{program}: not built", "" if there else "run ./setup.sh")


def _tool(tool: str, package: str, path: str | None, *, needed: bool) -> Check:
    location = shutil.which(tool, path=path)
    return Check(tool, location is not None, location or "not found", "" if location else f"apt-get install {package}", needed)


def _ipv6() -> Check:
    there = IPV6.exists()
    return Check("IPv6", there, str(IPV6) if there else f"{IPV6}: not there", "" if there else IPV6_REMEDY, needed=False)


def _wireless(release: str) -> Check:
    """Whether hwsim radios are available. Debian's cloud kernel has none, and GRUB prefers it to the full kernel."""
    if modules.is_available(HWSIM):
        return Check("kernel wireless", True, f"{HWSIM} in {release}", needed=False)
    remedy = "not needed: TAP radios do without; hwsim radios work in a guest: ./manet vm -- run ..."
    if "-cloud-" in release:
        remedy += ", or apt-get install linux-image-amd64, apt-get remove linux-image-cloud-amd64 and its kernel, reboot"
    return Check("kernel wireless", False, f"{release} has no module {HWSIM}", remedy, needed=False)


def _mininet() -> Check:
    try:
        from mininet.net import VERSION
    except ImportError:
        return Check("Mininet", False, "not importable", "apt-get install mininet, then ./setup.sh")
    return Check("Mininet", True, VERSION)


def _mininet_wifi(path: str | None) -> Check:
    try:
        return Check("Mininet-WiFi", True, mininet_wifi.package_folder(path), needed=False)
    except UsageError as problem:
        return Check("Mininet-WiFi", False, str(problem), f"{mininet_wifi.REMEDY}; never required", needed=False)


def _routing(protocol: str, description: Description | None, programs: Programs, path: str | None) -> Check:
    missing = protocols.missing_requirement(protocol, description, programs=programs, path=path)
    detail, remedy = missing or (protocols.program_path(protocol, description, programs=programs, path=path), "")
    return Check(f"{ROUTING}{protocol}", missing is None, detail, remedy, needed=False)


def _own_routing(name: str, own: Description | UsageError, programs: Programs, path: str | None) -> Check:
    """A daemon of the user's own, in the folders of MANET_ROUTING_PATH."""
    if isinstance(own, UsageError):
        return Check(f"{ROUTING}{name}", False, str(own), "correct the file, or remove it", needed=False)
    return _routing(name, own, programs, path)


def timer_lateness_us(samples: int = LATENESS_SAMPLES) -> list[float]:
    """Lateness of `samples` sleeps of 1 ms, in microseconds, sorted."""
    late = []
    for _ in range(samples):
        due = time.monotonic_ns() + round(SLEEP_S * 1e9)
        time.sleep(SLEEP_S)
        late.append(max(0.0, (time.monotonic_ns() - due) / 1000))
    return sorted(late)


def _timers(late_us: list[float]) -> Check:
    p95_us = percentile(late_us, 95)
    of_all = f"{statistics.median(late_us):.0f} us (median), {p95_us:.0f} us (p95), {late_us[-1]:.0f} us (worst)"
    detail = f"a sleep of {SLEEP_S * 1000:g} ms ends late by {of_all}"
    good = p95_us < LATE_TIMER_US
    remedy = "" if good else "runs would now be suspect or void: stop other programs, or give the machine more cores"
    return Check("timers", good, detail, remedy, needed=False)


def percentile(values: list[float], percent: int) -> float:
    """Of sorted values; the highest is the 100th."""
    return values[min(len(values) - 1, len(values) * percent // 100)]


def _load(late_us: list[float]) -> Check:
    cores, busy = os.cpu_count() or 1, os.getloadavg()[0]
    spare = max(0.0, cores * BUSY_SHARE - busy)
    runs = 0 if percentile(late_us, 95) >= LATE_TIMER_US else int(spare / CORE_SHARE_PER_RUN)
    bears = f"{socket.gethostname()} has room for about {runs} more runs of ten stations side by side"
    detail = f"{cores} cores, load {busy:.2f} now: {bears}"
    return Check("safe load", runs > 0, detail, "" if runs else "wait until the host is quieter", needed=False)
