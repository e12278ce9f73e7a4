"""Whether this kernel has the radios that a scenario asks for.

TAP radios need no more than the requirements of every run. `stations = "hwsim"` are radios of the kernel's mac80211_hwsim: its
module is loaded here, without radios of its own, where it is not there yet.
"""

import subprocess
from pathlib import Path

from testbed.errors import UsageError

MODULE = Path("/sys/module/mac80211_hwsim")
LOAD = ("modprobe", "mac80211_hwsim", "radios=0")


def require_radios(stations: str, *, module: Path = MODULE, load: tuple[str, ...] = LOAD) -> None:
    """UsageError if this machine cannot have such stations."""
    if stations != "hwsim" or module.exists():
        return
    try:
        done = subprocess.run(load, capture_output=True, text=True, check=False)
        words = done.stderr.strip()
    except FileNotFoundError:
        words = f"{load[0]}: not found"
    if not module.exists():
        why = words.splitlines()[-1] if words else "the module does not come up"
        raise UsageError(
            f'stations = "hwsim": this kernel has no mac80211_hwsim ({why}); run it in a guest that has it: ./manet vm -- run ...'
        )
