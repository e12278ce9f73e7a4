"""The congestion controls that this kernel has: built in, loadable as a module, or from this testbed (struct_ops)."""

import json
import platform
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

from testbed.errors import UsageError, did_you_mean
from testbed.host import privileges
from testbed.programs import BUILT, ROOT, Programs

AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
MODULES = Path("/lib/modules")
KERNEL_TCP = ROOT / "kernel-tcp"
RUN_MARK = "."  # in the names of a run's private copies
FEATURES_DEADLINE_S = 30.0
STRUCT_OPS_REMEDY = (
    "use Linux 6.1 or newer with CONFIG_DEBUG_INFO_BTF, CONFIG_BPF_JIT and CONFIG_BPF_SYSCALL (Debian 12's has them)"
)


def available(listed: Path = AVAILABLE, modules: Path = MODULES, release: str | None = None) -> list[str]:
    """Names of the kernel's congestion controls, sorted. Algorithms that `manet tcp load` has registered are among them,
    the private copies of other runs (`tahoe.1f3a`) are not."""
    names = {name for name in listed.read_text().split() if RUN_MARK not in name}
    folder = modules / (release or platform.release()) / "kernel" / "net" / "ipv4"
    for module in folder.glob("tcp_*.ko*"):
        name = module.name.partition(".")[0].removeprefix("tcp_")
        if name not in ("diag",):  # the socket monitor, no congestion control
            names.add(name)
    return sorted(names)


def require_algorithm(algorithm: str, place: str, own: list[str], names: list[str] | None = None) -> None:
    """Raise UsageError if the kernel lacks one of its own algorithms. `place` names the experiment or its file; `own` are
    the names of kernel-tcp/names, for a suggestion."""
    why = missing_algorithm(algorithm, own, names)
    if why:
        raise UsageError(f'{place}: key "tcp": {why}')


def missing_algorithm(algorithm: str, own: list[str], names: list[str] | None = None, folder: Path = KERNEL_TCP) -> str:
    """Reason why this kernel has no `algorithm` of its own, with the names that it has; empty if it has it."""
    names = available() if names is None else names
    if algorithm in names:
        return ""
    if algorithm not in own and (unnamed := missing_names_file(algorithm, folder)):
        return unnamed
    close = did_you_mean(algorithm, [*own, *names])
    meant = f" ({close})" if close else ""
    if algorithm in own:  # written kernel-NAME
        meant = f' of its own; tcp = "{algorithm}" is this testbed\'s'
    choices = ", ".join([*own, *(name for name in names if name not in own)])
    return f'this kernel has no "{algorithm}"{meant}; use one of {choices}'


def missing_names_file(algorithm: str, folder: Path = KERNEL_TCP) -> str:
    """Reason why an algorithm of kernel-tcp/algorithms has no name yet (its names file is missing); empty otherwise."""
    programs = {path.name.removesuffix(".bpf.c") for path in folder.glob("algorithms/*.bpf.c")}
    if algorithm not in programs or (folder / "names" / f"{algorithm}.toml").exists():
        return ""
    names = f"{folder.name}/names/{algorithm}.toml"
    return f"{folder.name}/algorithms/{algorithm}.bpf.c has no {names}; write that file (formats/tcp.md says what it holds)"


def missing_struct_ops(programs: Programs = BUILT) -> str:
    """Reason why this kernel cannot load this testbed's congestion control, with the remedy; empty if it can."""
    if not programs.kernel_tcp.exists():
        return f"{programs.kernel_tcp} is not built; run ./setup.sh"
    if privileges.rootless():
        return "an ordinary user loads no eBPF programs; run it as root"
    try:
        features = _features(programs.kernel_tcp)
    except (OSError, ValueError, subprocess.TimeoutExpired) as problem:
        return f"{programs.kernel_tcp} features: {problem}; run ./setup.sh"
    if features.get("struct_ops"):
        return ""
    return f"this kernel ({features.get('kernel', platform.release())}) takes no BPF congestion control; {STRUCT_OPS_REMEDY}"


def require_struct_ops(tcp: str, place: str, programs: Programs = BUILT) -> None:
    """Raise UsageError if this kernel cannot load a TCP of this testbed; `tcp` is its spelling, `place` names the experiment
    or its file."""
    why = missing_struct_ops(programs)
    if why:
        raise UsageError(f'{place}: key "tcp": "{tcp}": {why}')


@cache
def _features(kernel_tcp: Path) -> dict[str, Any]:
    """The features of this kernel, as the loader `kernel_tcp` reports them: once per process, not once per run."""
    argv = [str(kernel_tcp), "features", "--json"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=FEATURES_DEADLINE_S, check=False)
    features: dict[str, Any] = json.loads(done.stdout)
    return features
