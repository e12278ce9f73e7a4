"""The errors a user may see. Each message is one line that names the file, key or command, and the remedy.

The class decides the exit status of `manet`: 2 for a wrong request, 1 for a failure while running. The errors of wrong
definitions belong to `scenarios`. Any other exception that escapes is a bug in the testbed and is shown with its traceback.
"""

from keys.errors import ManetError as ManetError
from keys.errors import UsageError as UsageError
from keys.errors import did_you_mean as did_you_mean
from keys.errors import shortened as shortened


class KeyRefused(UsageError):
    """A key of a checked scenario asks for what this machine lacks, was not allowed, or a program refuses. The command that read
    the scenario's file words it again with the key's line."""

    def __init__(self, name: str, scenario: object, path: tuple[str | int, ...], text: str) -> None:
        super().__init__(f'{name}: key "{".".join(map(str, path))}": {text}')
        self.scenario, self.path, self.text = scenario, path, text


class RunError(ManetError):
    """Something failed after the run had started; what was captured until then is kept."""

    exit_status = 1


class HostLateError(RunError):
    """The host was too slow or too busy: nothing is wrong with the run, which is void and worth repeating."""
