"""Which routing protocols this machine can run, and how to get those it cannot.

`routing` of a scenario is refused here before anything is started; `manet doctor` shows the same for all. Nothing of
this is needed for the testbed itself: set-up builds our own daemons; third-party ones are the user's to install.
"""

import shutil
from dataclasses import dataclass

from scenarios.routing import OUR_DAEMONS
from testbed.errors import UsageError
from testbed.host import modules
from testbed.programs import BUILT, Programs

OLSRD = "https://github.com/OLSR/olsrd"
AODV_UU = "https://github.com/ramonfontes/aodv-uu"


@dataclass(frozen=True)
class Foreign:
    """What a third-party protocol needs: programs, a kernel module, and the way to get them."""

    programs: tuple[str, ...]
    remedy: str
    version: str  # the word that makes the first program print its version
    module: str | None = None
    loads_module: bool = False  # whether the module may be loaded before there are stations, and is here


FOREIGN = {
    "babeld": Foreign(("babeld",), "apt-get install babeld", "-V"),
    "batmand": Foreign(("batmand",), "apt-get install batmand", "-v"),
    "olsrd": Foreign(("olsrd",), f"build it from {OLSRD} (its README says how) and put it on the PATH", "-v"),
    "aodv-uu": Foreign(
        ("aodvd",),
        f"build daemon and module from {AODV_UU}, a port to current kernels of https://github.com/erimatnor/aodv-uu",
        "-V",
        module="kaodv",
    ),
    "batman-adv": Foreign(
        ("batctl",),
        "apt-get install batctl, on a kernel with CONFIG_BATMAN_ADV (Debian's; ./manet vm -- COMMAND boots one)",
        "-v",
        module="batman_adv",
        loads_module=True,
    ),
}


def protocols() -> list[str]:
    """Those that need anything of the machine."""
    return [*OUR_DAEMONS, *FOREIGN]


def found(protocol: str, *, programs: Programs = BUILT, path: str | None = None) -> str:
    """Where the protocol's program is; empty if it is not there."""
    if protocol in OUR_DAEMONS:
        daemon = programs.daemon(protocol)
        return str(daemon) if daemon.exists() else ""
    return shutil.which(FOREIGN[protocol].programs[0], path=path) or ""


def why_not(protocol: str, *, programs: Programs = BUILT, path: str | None = None) -> tuple[str, str] | None:
    """What is missing for the protocol, and the remedy; None if it can be used."""
    if protocol in OUR_DAEMONS:
        daemon = programs.daemon(protocol)
        return None if daemon.exists() else (f"{daemon}: not built", "run ./setup.sh")
    foreign = FOREIGN.get(protocol)
    if foreign is None:
        return None
    missing = [f"{program}: not found" for program in foreign.programs if shutil.which(program, path=path) is None]
    if foreign.module is not None and not modules.is_there(foreign.module):
        missing.append(f"this kernel has no module {foreign.module}")
    return (", ".join(missing), foreign.remedy) if missing else None


def version_command(protocol: str, programs: Programs = BUILT) -> list[str] | None:
    """What prints the version of the protocol's program; None for those without one."""
    if protocol in OUR_DAEMONS:
        return [str(programs.daemon(protocol)), "--version"]
    return [FOREIGN[protocol].programs[0], FOREIGN[protocol].version] if protocol in FOREIGN else None


def require_protocol(protocol: str, *, programs: Programs = BUILT) -> None:
    """UsageError if this machine cannot run the protocol. Its kernel module is loaded here, before there are namespaces."""
    missing = why_not(protocol, programs=programs)
    if missing is not None:
        raise UsageError(f'routing "{protocol}": {missing[0]}; {missing[1]}')
    foreign = FOREIGN.get(protocol)
    if foreign is not None and foreign.module is not None and foreign.loads_module:
        modules.load(foreign.module, f'routing "{protocol}"')
