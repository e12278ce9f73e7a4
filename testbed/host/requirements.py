"""The requirements of runs, checked before they start; `manet doctor` shows those of every run. Those of a run without root are
user namespaces and a TAP device that the user may open, and neither eBPF nor control groups.

The paths are arguments, so that a test can describe a machine that lacks them.
"""

import errno
import importlib.util
import os
import shutil
from pathlib import Path

from testbed.errors import UsageError
from testbed.host import cgroup, modules, privileges
from testbed.programs import BUILT, Programs

TUN = Path("/dev/net/tun")
BTF = Path("/sys/kernel/btf/vmlinux")
IPV6 = Path("/proc/sys/net/ipv6")  # there if the kernel has IPv6, which only some scenarios need
IPV6_REMEDY = "boot without ipv6.disable=1, or take a kernel with CONFIG_IPV6"
HWSIM = "mac80211_hwsim"  # the kernel module of radios of `stations = "hwsim"`
FORWARDS = Path("/proc/sys/net/ipv4/ip_forward")
# programs of access points and their stations, and the Debian packages that have them
ACCESS_POINT_PACKAGES = {"hostapd": "hostapd", "iw": "iw", "wpa_supplicant": "wpasupplicant"}
SEARCHED = "/usr/local/sbin:/usr/sbin:/sbin"  # not in every user's PATH
TCPDUMP = "tcpdump"  # only of a run whose scenario chooses it
# program: the Debian package that has it
TOOLS = {
    "mnexec": "mininet",
    "ifconfig": "net-tools",  # without it `import mininet` ends the process
    "unshare": "util-linux",
    "ip": "iproute2",
    "iperf3": "iperf3",
    "bash": "bash",
}


def require_capture(program: str, path: str | None = None) -> None:
    """UsageError if the scenario's `capture_program` is not installed; manet-capture is one of our own."""
    if program == TCPDUMP and shutil.which(program, path=path) is None:
        raise UsageError(f'key "capture_program": {program}: not found; apt-get install {program}, or leave the key out')


def require_for_runs(
    *,
    tun: Path = TUN,
    btf: Path = BTF,
    path: str | None = None,
    user: int | None = None,
    programs: Programs = BUILT,
) -> None:
    """Raise UsageError for the first missing requirement, in the order in which a user would install them. `user`: another user
    than this process's, in tests."""
    rootless = privileges.rootless() if user is None else user != 0
    if rootless and (refused := privileges.refusal()) is not None:
        raise UsageError(f"not root, and no user namespaces ({refused[0]}); run it with sudo, or {refused[1]}")
    missing = {tool: package for tool, package in TOOLS.items() if shutil.which(tool, path=path) is None}
    if missing:
        raise UsageError(f"{', '.join(missing)}: not found; apt-get install {' '.join(sorted(set(missing.values())))}")
    if importlib.util.find_spec("mininet") is None:
        raise UsageError("the Python package mininet: not found; apt-get install mininet, then ./setup.sh")
    if not tun.exists():
        raise UsageError(f"{tun}: missing, and every radio is a TAP device; modprobe tun (the kernel needs CONFIG_TUN)")
    try:
        os.close(os.open(tun, os.O_RDWR | os.O_CLOEXEC))
    except OSError as problem:
        closed = problem.errno == errno.EACCES
        remedy = f"as root: chmod 0666 {tun}, or run it with sudo" if closed else "in a container, pass the device in"
        raise UsageError(f"{tun}: {problem.strerror}, and every radio is a TAP device; {remedy}") from None
    if not rootless and not btf.exists():
        raise UsageError(
            f"{btf}: missing, and kernel-tcp's programs need it; use a kernel with CONFIG_DEBUG_INFO_BTF (Debian's has it)"
        )
    if not rootless:
        cgroup.require_mount()
    built = ((programs.medium, "the medium"), (programs.kernel_tcp, "kernel-tcp's loader"), (programs.capture, "the capture"))
    for binary, what in built:
        if not binary.exists():
            raise UsageError(f"{binary}: {what} is not built; run ./setup.sh")


def require_radios(stations: str) -> None:
    """Raise UsageError if this machine cannot run the `stations` of a scenario (`tap` or `hwsim`). hwsim needs its kernel
    module, which is loaded here, without radios, unless it is loaded already; those of TAP need nothing more."""
    if stations == "hwsim":
        modules.load(HWSIM, 'stations = "hwsim"', options=("radios=0",))


def require_access_points(*, encrypted: bool, path: str | None = None) -> None:
    """Raise UsageError for the first program of access points that is missing. `encrypted`: stations need wpa_supplicant. `path`
    replaces PATH in tests."""
    for program in ["hostapd", "wpa_supplicant" if encrypted else "iw"]:
        if shutil.which(program, path=path) is None and shutil.which(program, path=SEARCHED if path is None else path) is None:
            package = ACCESS_POINT_PACKAGES[program]
            raise UsageError(f"access points: {program}: not found; apt-get install {package} (./setup.sh --guests)")


def require_uplink(*, allowed: bool) -> None:
    """UsageError if the user did not allow `nat = true` of a wire, the real network (`allowed`), or this machine does not forward
    packets. The testbed does not switch forwarding on: it concerns the whole machine, and nothing would switch it off after
    `kill -9`."""
    if not allowed:
        text = "processes of the run would reach this machine's networks and the Internet; "
        raise UsageError(text + "add --allow-internet if that is wanted (docs/internet.md), or leave the key out")
    if FORWARDS.read_text().strip() != "1":
        raise UsageError("this machine does not forward packets; sysctl -w net.ipv4.ip_forward=1")
