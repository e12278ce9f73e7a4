"""The exceptions of the interface. Each message is one line that names the station and command, the file or the key, and the
remedy."""

import math
import subprocess
from collections.abc import Sequence
from numbers import Real

MAX_QUOTED = 300  # characters of a program's output in a message
LAST_CHARACTERS = 4096  # of an output, in which the last line is looked for


class MeshError(Exception):
    """The mesh, or a run, cannot do what was requested, or has failed."""


class WrongRequest(MeshError, ValueError):
    """A key, argument or name is wrong: nothing was started or changed."""


class WrongScenario(WrongRequest):
    """A key of a scenario or an experiment is wrong: nothing was started."""


class UnreadableResults(MeshError):
    """A file of results is missing, incomplete, or not in its format."""


class MissingRequirement(MeshError):
    """This machine lacks a requirement: root, /dev/net/tun, a set-up checkout, a routing daemon."""


class MissingLibraries(MissingRequirement, ImportError):
    """This Python lacks the testbed's libraries, which Scenario, Experiment and Results need."""


class MeshTimeout(MeshError, TimeoutError):
    """A condition or a command took longer than its timeout."""


class CommandFailed(MeshError, subprocess.SubprocessError):
    """A command on a station ended with a status other than 0. `stdout` and `stderr` are its whole output."""

    def __init__(self, station: str, argv: Sequence[str], returncode: int, stdout: str, stderr: str) -> None:
        self.station, self.argv, self.returncode, self.stdout, self.stderr = station, list(argv), returncode, stdout, stderr
        super().__init__(f"{station}: {' '.join(argv)}: status {returncode}{quoted(stderr or stdout)}")


# The errors of the run, by the kind that its answer names; any other is a MeshError.
KINDS: dict[str, type[MeshError]] = {"wrong": WrongRequest, "missing": MissingRequirement}


def seconds(value: float | None, about: str) -> float | None:
    """A time limit, s; None without one. Raises WrongRequest for another value."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, Real) or math.isnan(value)):
        raise WrongRequest(f"{about}: timeout={value!r}: give seconds, or None for no limit")
    return None if value is None or value == math.inf else float(value)


def number(value: object, about: str) -> float:
    """A finite number. Raises WrongRequest."""
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
        raise WrongRequest(f"{about}={value!r}: give a number")
    return float(value)


def quoted(output: str) -> str:
    """The last line of an output as part of a message; empty without any."""
    lines = [line.strip() for line in output[-LAST_CHARACTERS:].splitlines() if line.strip()]
    return f': "{lines[-1][:MAX_QUOTED]}"' if lines else ""
