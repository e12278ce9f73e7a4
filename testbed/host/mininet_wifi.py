"""Mininet-WiFi on this machine: `net = "mininet-wifi"` takes its stations if the user has installed it.

It is in no package registry and is optional. It may need another Python than this testbed, with other library versions:
MANET_MININET_WIFI names that Python, which runs only as a separate process (testbed/stages/mininet_wifi.py).
"""

import os
import shutil
import subprocess
from collections.abc import Mapping

from testbed.errors import UsageError

PYTHON = "/usr/bin/python3"  # what the installer of Mininet-WiFi installs for
VARIABLE = "MANET_MININET_WIFI"
HOME = "https://github.com/intrig-unicamp/mininet-wifi"
REMEDY = f"install it by its own instructions ({HOME}); {VARIABLE}=PYTHON names the Python that has it"
# Programs that create its stations (mn_wifi/module.py, mn_wifi/link.py). Mininet-WiFi does not report a missing one.
PROGRAMS = ("hwsim_mgmt", "iw", "rfkill", "pgrep", "ethtool", "mnexec")
# Finding it takes no time; importing it takes seconds, in an emulated machine half a minute. fmtBps came after Mininet 2.3.0.
FIND_SCRIPT = """
import importlib.util, sys
if importlib.util.find_spec("mn_wifi") is None:
    sys.exit("no module mn_wifi")
import mininet.util
mininet.util.fmtBps
print(importlib.util.find_spec("mn_wifi").submodule_search_locations[0])
"""
DEADLINE_S = 60.0


def python(environment: Mapping[str, str] = os.environ) -> str:
    """The Python that should have Mininet-WiFi."""
    return environment.get(VARIABLE) or PYTHON


def package_folder(path: str | None = None) -> str:
    """The folder of the package mn_wifi. Raises UsageError, without a remedy, if it is unusable. `path` replaces PATH."""
    try:
        # -I: ignore packages of the same name in PYTHONPATH and in our checkout
        done = subprocess.run(
            [python(), "-I", "-c", FIND_SCRIPT], capture_output=True, text=True, timeout=DEADLINE_S, check=False
        )
    except FileNotFoundError:
        raise UsageError(f"{python()}: not found") from None
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise UsageError(f"{python()}: {problem}") from None
    if done.returncode != 0:
        raise UsageError(f"{python()}: {(done.stderr.strip().splitlines() or ['ended without a message'])[-1]}")
    search = os.pathsep.join([*os.get_exec_path(), "/usr/sbin", "/sbin"]) if path is None else path
    missing = [program for program in PROGRAMS if shutil.which(program, path=search) is None]
    if missing:
        raise UsageError(f"{', '.join(missing)}: not found")
    return done.stdout.strip()


def require_net(net: str) -> None:
    """Raise UsageError if this machine cannot run the `net` of a scenario."""
    if net != "mininet-wifi":
        return
    try:
        package_folder()
    except UsageError as problem:
        raise UsageError(f'net "mininet-wifi": {problem}; {REMEDY}') from None
