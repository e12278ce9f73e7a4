"""Where the testbed is that does the work. This package is its client, and may be installed without it.

In this order: the folder that MANET_HOME names; the checkout that this file is in; the Debian package; the image, in a job that
runs in it. The client runs no testbed in a container from outside of it: descriptors and process ids do not cross that border.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

OWN = Path(__file__).resolve().parent.parent
PLACES = (Path("/usr/lib/manet"), Path("/opt/manet"))  # of the Debian package (debian/rules), of the image (image/build.sh)
VERSION = re.compile(r'^__version__ = "([^"]+)"$', re.MULTILINE)


@dataclass(frozen=True)
class Testbed:
    """A testbed in a folder. `python` has its libraries."""

    home: Path

    @property
    def python(self) -> Path:
        """The interpreter of the testbed's own environment."""
        return self.home / ".venv" / "bin" / "python"

    @property
    def manet(self) -> Path:
        """The command."""
        return self.home / "manet"

    @property
    def version(self) -> str | None:
        """Its version; None if it has no such file."""
        try:
            found = VERSION.search((self.home / "testbed" / "__init__.py").read_text(encoding="utf-8"))
        except OSError:
            return None
        return found and found[1]


def find(environment: Mapping[str, str] = os.environ, own: Path = OWN, places: tuple[Path, ...] = PLACES) -> Testbed | None:
    """The testbed to use; None if there is none. The arguments replace this machine's in tests."""
    named = environment.get("MANET_HOME")
    candidates = [Path(named).absolute()] if named else [own, *places]
    return next((found for home in candidates if (found := Testbed(home)).version is not None), None)


def missing_testbed(
    client: str, environment: Mapping[str, str] = os.environ, own: Path = OWN, places: tuple[Path, ...] = PLACES
) -> str | None:
    """Why there is no testbed that a client of the version `client` can use, with the remedy; None if there is one."""
    found = find(environment, own, places)
    if found is None:
        if named := environment.get("MANET_HOME"):
            return f"MANET_HOME={named}: is no checkout of the testbed; name the folder that has its setup.sh"
        remedy = (
            "install the Debian package manet, set MANET_HOME to a checkout that its ./setup.sh has set up, or run in the image"
        )
        return f"no testbed on this machine, and manet_testbed is only its client; {remedy}"
    if not found.python.exists():
        return f"{found.python}: missing; run {found.home}/setup.sh"
    if found.version != client:
        return f"{found.home}: is the testbed {found.version}, and this client is {client}; install the client of that version"
    return None
