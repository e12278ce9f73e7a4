"""The testbed's errors as those of the interface: the same lines, with the arguments of Python in place of options."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from manet_testbed.errors import MeshError, UnreadableResults, WrongRequest
from record.errors import RecordError
from testbed.errors import ManetError, UsageError

# an option in a remedy: the argument that does the same
ARGUMENTS = (
    (r"--resume\b", "resume=True"),
    (r"--quick\b", "quick=True"),
    (r"--allow-internet\b", "allow_internet=True"),
    (r"--clock virtual\b", '"clock": "virtual"'),
    (r"--from\b", "begin_s"),
    (r"--to\b", "end_s"),
    (r"\bwith --(\w+)", r"with \1="),
    (r"--(set|variant|seeds|kernel|jobs)\b:?", r"\1:"),
)


@contextmanager
def translated(wrong: type[WrongRequest] = WrongRequest) -> Iterator[None]:
    """Raise `wrong` for a UsageError of the block, UnreadableResults for files that cannot be analysed, MeshError for a failed
    run and for what the system refuses."""
    try:
        yield
    except UsageError as problem:
        raise wrong(worded(str(problem))) from None
    except RecordError as problem:
        raise UnreadableResults(worded(str(problem))) from None
    except ManetError as problem:
        raise MeshError(worded(str(problem))) from None
    except OSError as problem:
        raise MeshError(f"{problem.filename or 'the system'}: {problem.strerror or problem}") from None


def worded(text: str) -> str:
    """The text with arguments in place of the command line's options, except in a whole command."""
    text, command, words = text.partition("./manet ")
    for option, argument in ARGUMENTS:
        text = re.sub(option, argument, text)
    return text + command + words
