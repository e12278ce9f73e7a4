"""The privileges that the kernel grants this process.

User 0 of a user namespace, or of a container without capabilities, has fewer than root of the machine (user_namespaces(7),
capabilities(7)); to such a user the kernel answers as one that lacks a feature would.
"""

from pathlib import Path

SELF = Path("/proc/self")
NEEDED = {  # number of the capability, use; CAP_SYS_ADMIN includes CAP_BPF and CAP_PERFMON
    "CAP_SYS_ADMIN": (21, "namespaces, eBPF"), "CAP_NET_ADMIN": (12, "interfaces, routes"), "CAP_NET_RAW": (13, "captures"),
}  # fmt: skip
ALL_IDS = ["0", "0", "4294967295"]  # uid_map of the machine's own user namespace
FILTERED = "2"  # Seccomp: of /proc/self/status (proc(5))


def missing_privilege(proc: Path = SELF) -> tuple[str, str] | None:
    """The missing privilege and the remedy; None for root of the machine with the capabilities of a run."""
    status = dict(line.partition(":")[::2] for line in (proc / "status").read_text().splitlines())
    effective = int(status["CapEff"], 16)
    lacking = [f"{name} ({use})" for name, (number, use) in NEEDED.items() if not effective >> number & 1]
    if lacking:
        flags = " ".join(f"--cap-add {name.split()[0].removeprefix('CAP_')}" for name in lacking)
        return f"without {', '.join(lacking)}", f"run it as root; start a container with --privileged, or {flags}"
    if (proc / "uid_map").read_text().split() != ALL_IDS:
        remedy = "run it as root of the machine; start a container as root and with --privileged, not rootless"
        return "root of a user namespace alone, to which the kernel gives no eBPF", remedy
    return None


def is_filtered(proc: Path = SELF) -> bool:
    """Whether system calls are filtered (seccomp(2)), as a container's profile does."""
    return any(line.split() == ["Seccomp:", FILTERED] for line in (proc / "status").read_text().splitlines())
