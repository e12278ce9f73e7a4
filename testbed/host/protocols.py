"""The routing protocols that this machine can run, and how to get the others.

A run refuses the `routing` of its scenario here, before anything starts; `manet doctor` shows the state of all. The testbed
itself needs none of the third-party daemons: set-up builds our own, users install the others.
"""

import shutil
from dataclasses import dataclass

from scenarios.routing import OWN_DAEMONS
from testbed.errors import UsageError
from testbed.host import modules
from testbed.programs import BUILT, Programs

OLSRD = "https://github.com/OLSR/olsrd"
AODV_UU = "https://github.com/ramonfontes/aodv-uu"


@dataclass(frozen=True)
class ThirdParty:
    """Requirements of a third-party protocol: programs, a kernel module, and the remedy if they are missing."""

    programs: tuple[str, ...]
    remedy: str
    version: str  # the option by which the first program prints its version
    module: str | None = None
    loads_module: bool = False  # whether to load the module before the stations exist


THIRD_PARTY = {
    "babeld": ThirdParty(("babeld",), "apt-get install babeld", "-V"),
    "batmand": ThirdParty(("batmand",), "apt-get install batmand", "-v"),
    "olsrd": ThirdParty(("olsrd",), f"build it from {OLSRD} (its README says how) and put it on the PATH", "-v"),
    "aodv-uu": ThirdParty(
        ("aodvd",),
        f"build daemon and module from {AODV_UU}, a port to current kernels of https://github.com/erimatnor/aodv-uu",
        "-V",
        module="kaodv",
    ),
    "batman-adv": ThirdParty(
        ("batctl",),
        "apt-get install batctl, on a kernel with CONFIG_BATMAN_ADV (Debian's; ./manet vm -- COMMAND boots one)",
        "-v",
        module="batman_adv",
        loads_module=True,
    ),
}


def protocols() -> list[str]:
    """The protocols that need a program or a kernel module, by name."""
    return [*OWN_DAEMONS, *THIRD_PARTY]


def program_path(protocol: str, *, programs: Programs = BUILT, path: str | None = None) -> str:
    """The path of the protocol's program; empty if it is not installed. `path` replaces PATH."""
    if protocol in OWN_DAEMONS:
        daemon = programs.daemon(protocol)
        return str(daemon) if daemon.exists() else ""
    return shutil.which(THIRD_PARTY[protocol].programs[0], path=path) or ""


def missing_requirement(protocol: str, *, programs: Programs = BUILT, path: str | None = None) -> tuple[str, str] | None:
    """(What is missing for the protocol, the remedy), or None if this machine can run it. `path` replaces PATH."""
    if protocol in OWN_DAEMONS:
        daemon = programs.daemon(protocol)
        return None if daemon.exists() else (f"{daemon}: not built", "run ./setup.sh")
    third_party = THIRD_PARTY.get(protocol)
    if third_party is None:
        return None
    missing = [f"{program}: not found" for program in third_party.programs if shutil.which(program, path=path) is None]
    if third_party.module is not None and not modules.is_available(third_party.module):
        missing.append(f"this kernel has no module {third_party.module}")
    return (", ".join(missing), third_party.remedy) if missing else None


def version_command(protocol: str, programs: Programs = BUILT) -> list[str] | None:
    """The command that prints the version of the protocol's program; None for a protocol without a program."""
    if protocol in OWN_DAEMONS:
        return [str(programs.daemon(protocol)), "--version"]
    return [THIRD_PARTY[protocol].programs[0], THIRD_PARTY[protocol].version] if protocol in THIRD_PARTY else None


def require_protocol(protocol: str, *, programs: Programs = BUILT) -> None:
    """Raise UsageError if this machine cannot run the protocol; load its kernel module, before there are namespaces."""
    missing = missing_requirement(protocol, programs=programs)
    if missing is not None:
        raise UsageError(f'routing "{protocol}": {missing[0]}; {missing[1]}')
    third_party = THIRD_PARTY.get(protocol)
    if third_party is not None and third_party.module is not None and third_party.loads_module:
        modules.load(third_party.module, f'routing "{protocol}"')
