"""Whether this kernel has the radios that a scenario asks for.

TAP radios need no more than the requirements of every run. `stations = "hwsim"` are radios of the kernel's mac80211_hwsim: its
module is loaded here, without radios of its own, where it is not there yet.
"""

from testbed.host import modules

MODULE = "mac80211_hwsim"


def require_radios(stations: str) -> None:
    """UsageError if this machine cannot have such stations."""
    if stations == "hwsim":
        modules.load(MODULE, 'stations = "hwsim"', options=("radios=0",))
