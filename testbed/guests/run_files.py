"""The files of a run in virtual time: all that its programs read, so that a guest has them in memory (initramfs.py).

A guest that reads nothing of the host's while it works is a function of these files and its seed: it does the same at the same
instant in each run. Included are programs with their libraries, Python with the modules of a run, the parts of the checkout that
a run reads, and modules of the guest's kernel. `missing` names what cannot be listed beforehand: programs of the user's own.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

from scenarios.routing import OWN_DAEMONS
from scenarios.scenario import Scenario
from testbed.errors import RunError
from testbed.guests import guest
from testbed.guests.initramfs import Files
from testbed.guests.kernels import Unpacked
from testbed.programs import BUILT, ROOT
from testbed.runs import template

PROGRAMS = (
    "bash", "cat", "env", "ethtool", "grep", "ifconfig", "ip", "iperf3", "kmod", "mnexec", "modinfo", "modprobe", "mount", "ping",
    "ps", "sh", "sleep", "sysctl", "tc", "umount", "unshare", "which",
)  # fmt: skip
# Routing without a daemon; and third-party daemons that read nothing but their own configuration.
WITHOUT_DAEMON = ("static", "none")
THIRD_PARTY = {"batman-adv": ("batctl",), "babeld": ("babeld",)}
CHECKOUT = (
    "analysis", "formats", "kernel-tcp", "medium/radios", "mobility", "record", "routing/third-party", "scenarios",
    "keys", "traffic", "testbed",
    "topologies",
)  # fmt: skip
MODULES = ("testbed.guests.virtual_run", "testbed.runs.isolation", *template.MODULES)
STANDARD = Path(sysconfig.get_path("stdlib"))
# Parts of Python's standard library that no run imports.
NOT_STANDARD = (
    "dist-packages", "ensurepip", "idlelib", "lib2to3", "pydoc_data", "site-packages", "test", "tests", "tkinter", "turtledemo",
)  # fmt: skip
LIST_MODULES = """
import importlib, json, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
print(json.dumps(sorted({module.__file__ for module in list(sys.modules.values()) if getattr(module, "__file__", None)})))
"""
# What the C library, Python, ip, iperf3, kmod and nginx read beside their own files, where it exists.
SYSTEM = (
    "/bin", "/lib", "/lib64", "/sbin",
    "/etc/group", "/etc/host.conf", "/etc/hosts", "/etc/ld.so.cache", "/etc/localtime", "/etc/nsswitch.conf", "/etc/os-release",
    "/etc/passwd", "/etc/protocols", "/etc/services", "/etc/ssl/openssl.cnf", "/usr/lib/ssl/openssl.cnf",
    "/usr/lib/x86_64-linux-gnu/gconv/gconv-modules.cache", "/usr/lib/x86_64-linux-gnu/libgcc_s.so.1", "/usr/share/zoneinfo/UTC",
)  # fmt: skip
SYSTEM_TREES = ("/etc/iproute2", "/etc/modprobe.d", "/usr/lib/locale/C.utf8", "/usr/lib/modprobe.d", "/usr/share/iproute2")
EMPTY_FOLDERS = ("/dev", "/proc", "/root", "/run", "/sys", "/tmp", "/var/log", "/var/tmp")
# Of the kernel's modules: networks, their devices, ciphers of radios, and the file system that takes the results to the host.
KERNEL_TREES = ("arch", "crypto", "fs/9p", "fs/netfs", "lib", "net", "drivers/net/wireless/virtual", "drivers/virtio")
KERNEL_DEVICES = ("dummy", "ifb", "macvlan", "tun", "veth", "virtio_net")  # of drivers/net


def missing(scenario: Scenario) -> str | None:
    """Describe inputs missing from the guest image; None if complete."""
    if scenario.net != "manet":
        return f'net "{scenario.net}"'
    if scenario.reaches_internet:
        return "a wire with nat"
    protocol = scenario.routing.protocol
    if protocol not in (*WITHOUT_DAEMON, *OWN_DAEMONS, *THIRD_PARTY):
        return f'the daemon of routing "{protocol}"'
    if any(event.words for event in scenario.events):
        return "the commands of events"
    own = next((flow for flow in scenario.flows if flow.kind.own_programs(flow.own_keys())), None)
    return None if own is None else f'the programs of traffic "{own.traffic}"'


def programs_of(scenario: Scenario) -> tuple[str, ...]:
    """The programs of a run of this scenario that not every run has: paths, or names to look up."""
    protocol = scenario.routing.protocol
    daemon = (str(BUILT.daemon(protocol)),) if protocol in OWN_DAEMONS else THIRD_PARTY.get(protocol, ())
    kinds = {program for flow in scenario.flows for program in flow.kind.programs}
    capture = str(BUILT.capture) if scenario.capture_program == "manet-capture" else scenario.capture_program
    joining = ("iw",) if scenario.radio_devices == "hwsim" else ()
    return (*daemon, capture, *joining, *sorted(kinds))


def of_run(kernel: Unpacked, programs: Sequence[str]) -> Files:
    """The files of each run with this kernel and these additional programs. Raises RunError for a program that is missing."""
    files = Files()
    for empty in EMPTY_FOLDERS:
        files.folder(empty)
    for path in filter(Path.exists, map(Path, SYSTEM)):
        files.add(path)
    for tree in filter(Path.is_dir, map(Path, SYSTEM_TREES)):
        files.add_tree(tree)
    started: tuple[str | Path, ...] = (*PROGRAMS, *programs, BUILT.medium, BUILT.kernel_tcp, sys.executable)
    binaries = [_add_program(files, program) for program in started]
    for path in sorted(BUILT.kernel_tcp.parent.glob("*.o")):
        files.add(path)
    for part in CHECKOUT:
        files.add_tree(ROOT / part, without=("tests",))
    binaries += _add_python(files)
    for library in libraries(frozenset(map(str, binaries))):
        files.add(library)
    _add_kernel(files, kernel)
    return files


def search_path(programs: Sequence[str]) -> str:
    """PATH in a guest with the files of `of_run`: Debian's, and before it the folders of programs that are elsewhere."""
    paths = [shutil.which(program, path=guest.search_path()) for program in (*PROGRAMS, *programs) if "/" not in program]
    usual = guest.PATH.split(":")
    return guest.search_path([folder for path in paths if path and (folder := str(Path(path).parent)) not in usual])


def _add_program(files: Files, program: str | Path) -> Path:
    """Add a program, and the interpreter of a script. Returns the file to find libraries of."""
    executable = shutil.which(program, path=guest.search_path())
    if executable is None:
        raise RunError(
            f"{program}: not found, and a run in virtual time has it in memory; install it, or run ./setup.sh --guests"
        )
    path = files.add(executable)
    with path.open("rb") as file:
        head = file.readline(256)
    if head.startswith(b"#!"):
        return _add_program(files, head[2:].split()[0].decode())
    return path


def _add_python(files: Files) -> list[Path]:
    """Add the interpreter's files and the modules of a run. Returns the shared libraries among them."""
    added = files.add_tree(STANDARD, without=(*NOT_STANDARD, *(path.name for path in STANDARD.glob("config-*"))))
    sites = [Path(place) for place in sys.path if place.endswith(("site-packages", "dist-packages")) and Path(place).is_dir()]
    for package in sorted({package for module in _modules() for package in _packages(Path(module), sites)}):
        added += files.add_tree(package, without=("tests",)) if package.is_dir() else [files.add(package)]
        if package.suffix == ".py":
            files.add_python(package)
    for site in sites:
        files.add(site)
        for path in site.glob("*.pth"):
            files.add(path)
    settings = Path(sys.prefix) / "pyvenv.cfg"
    if settings.exists():
        files.add(settings)
    return [path for path in added if ".so" in path.suffixes]


def _packages(module: Path, sites: Iterable[Path]) -> list[Path]:
    """The top-level package or module of a module that is neither of the standard library nor of the checkout's own."""
    for site in sites:
        if module.is_relative_to(site):
            return [site / module.relative_to(site).parts[0]]
    own = module.is_relative_to(STANDARD) or module.is_relative_to(ROOT)
    return [] if own else [module]


@cache
def _modules() -> list[str]:
    """The files of all Python modules that a run imports."""
    argv = [sys.executable, "-P", "-c", LIST_MODULES, *MODULES]
    done = subprocess.run(argv, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False)
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or ["no output"]
        raise RunError(f"the modules of a run cannot be imported: {lines[-1][:300]}; run ./setup.sh")
    modules: list[str] = json.loads(done.stdout)
    return modules


@cache
def libraries(binaries: frozenset[str]) -> list[str]:
    """The shared libraries of these files, by the dynamic linker's answer."""
    done = subprocess.run(["ldd", *sorted(binaries)], capture_output=True, text=True, check=False)
    return sorted(set(re.findall(r"(/\S+) \(0x", done.stdout)))


def _add_kernel(files: Files, kernel: Unpacked) -> None:
    """Add modules of the guest's kernel, where its modprobe looks for them."""
    folder = kernel.folder / "lib" / "modules" / kernel.release
    place = Path("/usr/lib/modules") / kernel.release
    trees = [path for tree in KERNEL_TREES for path in sorted((folder / "kernel" / tree).rglob("*.ko*"))]
    devices = [path for device in KERNEL_DEVICES for path in sorted((folder / "kernel/drivers/net").glob(f"{device}.ko*"))]
    for path in (*trees, *devices, *sorted(folder.glob("modules.*"))):
        files.put(place / path.relative_to(folder), path.read_bytes())
