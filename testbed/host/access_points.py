"""The programs of access points and their stations, from Debian."""

import shutil

from testbed.errors import UsageError

PACKAGES = {"hostapd": "hostapd", "iw": "iw", "wpa_supplicant": "wpasupplicant"}
SEARCHED = "/usr/local/sbin:/usr/sbin:/sbin"  # not in every user's PATH


def require_programs(*, encrypted: bool, path: str | None = None) -> None:
    """Raise UsageError for the first program that is missing. `encrypted`: stations need wpa_supplicant. `path` replaces PATH in
    tests."""
    for program in ["hostapd", "wpa_supplicant" if encrypted else "iw"]:
        if shutil.which(program, path=path) is None and shutil.which(program, path=SEARCHED if path is None else path) is None:
            raise UsageError(f"access points: {program}: not found; apt-get install {PACKAGES[program]} (./setup.sh --guests)")
