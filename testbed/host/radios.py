"""The radios that a scenario needs from this kernel.

TAP radios need only the requirements of every run. `stations = "hwsim"` needs the kernel module mac80211_hwsim, which is
loaded here, without radios, unless it is loaded already.
"""

from testbed.host import modules

MODULE = "mac80211_hwsim"


def require_radios(stations: str) -> None:
    """Raise UsageError if this machine cannot run the `stations` of a scenario (`tap` or `hwsim`)."""
    if stations == "hwsim":
        modules.load(MODULE, 'stations = "hwsim"', options=("radios=0",))
