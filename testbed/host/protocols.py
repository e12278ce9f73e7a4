"""The routing protocols that this machine can run, and how to get the others.

A run refuses the `routing` of its scenario here, before anything starts; `manet doctor` shows the state of all. The testbed
itself needs none of the third-party daemons: set-up builds our own, users install the others. A `description` is that of a
daemon of the user's own, which no table here has.
"""

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from scenarios.daemon_description import Description
from scenarios.routing import OWN_DAEMONS, SHIPPED
from testbed.errors import UsageError
from testbed.host import modules
from testbed.programs import BUILT, Programs


@dataclass(frozen=True)
class ThirdParty:
    """Requirements of a third-party protocol: programs, a kernel module, and the remedy if they are missing."""

    programs: tuple[str, ...]
    remedy: str
    version: str  # the option by which the first program prints its version
    module: str | None = None
    loads_module: bool = False  # whether to load the module before the stations exist

    @classmethod
    def of(cls, description: Description) -> Self:
        """The requirements of a described daemon."""
        module = description.module
        before = module is not None and module.load == "before"
        name = module.name if module else None
        return cls(description.required_programs(), description.how_to_get(), description.version, name, before)


THIRD_PARTY = {
    **{name: ThirdParty.of(routing.DESCRIPTION) for name, routing in SHIPPED.items() if routing.DESCRIPTION},
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


def program_path(
    protocol: str, description: Description | None = None, *, programs: Programs = BUILT, path: str | None = None
) -> str:
    """The path of the protocol's program; empty if it is not installed. `path` replaces PATH."""
    if protocol in OWN_DAEMONS:
        daemon = programs.daemon(protocol)
        return str(daemon) if daemon.exists() else ""
    third_party = _third_party(protocol, description)
    return (third_party and shutil.which(third_party.programs[0], path=path)) or ""


def missing_requirement(
    protocol: str,
    description: Description | None = None,
    *,
    programs: Programs = BUILT,
    path: str | None = None,
    own_kernel: bool = True,
) -> tuple[str, str] | None:
    """(What is missing for the protocol, the remedy), or None if this machine can run it. `path` replaces PATH; without
    `own_kernel` a guest's kernel runs it, and this machine has the programs."""
    if protocol in OWN_DAEMONS:
        daemon = programs.daemon(protocol)
        return None if daemon.exists() else (f"{daemon}: not built", "run ./setup.sh")
    third_party = _third_party(protocol, description)
    if third_party is None:
        return None
    missing = [_not_usable(program) for program in third_party.programs if shutil.which(program, path=path) is None]
    if own_kernel and third_party.module is not None and not modules.is_available(third_party.module):
        missing.append(f"this kernel has no module {third_party.module}")
    return (", ".join(missing), third_party.remedy) if missing else None


def version_command(protocol: str, description: Description | None = None) -> list[str] | None:
    """The command that prints the version of the protocol's program; None for a protocol without a program."""
    if protocol in OWN_DAEMONS:
        return [str(BUILT.daemon(protocol)), "--version"]
    third_party = _third_party(protocol, description)
    return [third_party.programs[0], third_party.version] if third_party and third_party.version else None


def require_protocol(
    protocol: str, description: Description | None = None, *, programs: Programs = BUILT, own_kernel: bool = True
) -> None:
    """Raise UsageError if this machine cannot run the protocol; load its kernel module, before there are namespaces.
    `own_kernel`: as of missing_requirement."""
    missing = missing_requirement(protocol, description, programs=programs, own_kernel=own_kernel)
    if missing is not None:
        raise UsageError(f'routing "{protocol}": {missing[0]}; {missing[1]}')
    third_party = _third_party(protocol, description)
    if own_kernel and third_party is not None and third_party.module is not None and third_party.loads_module:
        modules.load(third_party.module, f'routing "{protocol}"')


def _not_usable(program: str) -> str:
    return f"{program}: not executable" if "/" in program and Path(program).is_file() else f"{program}: not found"


def _third_party(protocol: str, description: Description | None) -> ThirdParty | None:
    return THIRD_PARTY.get(protocol) or (ThirdParty.of(description) if description else None)
