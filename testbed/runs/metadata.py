"""The environment of a run, so that it can be repeated and compared: versions, kernel, commit, host, sysctls."""

import os
import platform
import subprocess
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from scenarios.daemon_description import Description
from testbed.host.protocols import version_command
from testbed.programs import BUILT, INSTALLATION, ROOT

COMMIT = "MANET_COMMIT"  # set by `manet vm`

# The settings of a station's TCP and IP that may change a result, read back from the kernel.
SYSCTLS = [
    *(
        f"net.ipv4.{name}"
        for name in [
            "ip_forward",
            "ip_default_ttl",
            "ip_no_pmtu_disc",
            "tcp_congestion_control",
            "tcp_sack",
            "tcp_dsack",
            "tcp_timestamps",
            "tcp_window_scaling",
            "tcp_ecn",
            "tcp_frto",
            "tcp_recovery",
            "tcp_early_retrans",
            "tcp_autocorking",
            "tcp_no_metrics_save",
            "tcp_slow_start_after_idle",
            "tcp_reordering",
            "tcp_min_tso_segs",
            "tcp_limit_output_bytes",
            "tcp_rmem",
            "tcp_wmem",
            "tcp_rto_max_ms",
            "tcp_rto_min_us",
            "tcp_pacing_ss_ratio",
            "tcp_pacing_ca_ratio",
            "tcp_moderate_rcvbuf",
            "tcp_comp_sack_nr",
            "tcp_thin_linear_timeouts",
            "tcp_syn_linear_timeouts",
        ]
    ),
    "net.ipv4.conf.all.rp_filter",
    "net.ipv4.conf.all.send_redirects",
    "net.ipv4.neigh.wlan0.unres_qlen",
    "net.ipv6.conf.all.disable_ipv6",
]


def now() -> str:
    """The time in UTC, ISO 8601, milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def host() -> dict[str, object]:
    """CPUs, load averages and name of this machine."""
    return {"cpus": os.cpu_count(), "load": [round(load, 2) for load in os.getloadavg()], "name": platform.node()}


def kernel() -> str:
    """The kernel's release, as `uname -r`."""
    return platform.release()


@cache
def commit() -> str | None:
    """The commit of this checkout, with `+` if files differ from it; None outside of git. In a guest the host's answer
    (MANET_COMMIT), because git would read every file of the checkout again there."""
    if COMMIT in os.environ:
        return os.environ[COMMIT] or None
    if INSTALLATION.package is not None:
        return INSTALLATION.commit
    head = _first_line("git", "-C", str(ROOT), "rev-parse", "HEAD")
    if head is None:
        return None
    status = _first_line("git", "-C", str(ROOT), "status", "--porcelain", "--untracked-files=no")
    return head + ("+" if status else "")


def versions(routing: str, description: Description | None = None) -> dict[str, str | None]:
    """Versions of the programs and libraries that a result may depend on; `routing` is the scenario's protocol, `description`
    that of a daemon of the user's own."""
    daemon = version_command(routing, description)
    return {**_of_tools(), **({} if daemon is None else {Path(daemon[0]).name: _first_line(*daemon)})}


@cache
def _of_tools() -> dict[str, str | None]:
    return {
        "manet-medium": _first_line(str(BUILT.medium), "--version"),
        "manet-capture": _first_line(str(BUILT.capture), "--version"),
        "iperf3": _first_line("iperf3", "--version"),
        "tcpdump": _first_line("tcpdump", "--version"),
        "iproute2": _first_line("ip", "-V"),
        "python": platform.python_version(),
        "mininet": _mininet_version(),
        "system": _system(),
    }


def _mininet_version() -> str | None:
    try:
        from mininet.net import VERSION
    except ImportError:
        return None
    return VERSION


def _system() -> str | None:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME")
    except OSError:
        return None


@cache
def _first_line(*argv: str) -> str | None:
    if "/" in argv[0] and not Path(argv[0]).exists():
        return None
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = (done.stdout or done.stderr).strip().splitlines()
    return lines[0] if lines and done.returncode == 0 else None
