"""The errors a user may see. Each message is one line that names the file, key or command, and the remedy.

The class decides the exit status of `manet`: 2 for what was asked wrongly, 1 for what failed while running.
Anything else that escapes is a bug in the testbed and is shown with its traceback.
"""

LONGEST_VALUE = 80  # characters of what the user wrote that an error repeats


def shortened(text: str, most: int = LONGEST_VALUE) -> str:
    """One line of it: control characters as escapes, and of a long text its begin and its length."""
    plain = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text[: most + 1])
    return plain if len(text) <= most else f"{plain[:most]}... ({len(text)} characters)"


class ManetError(Exception):
    """A failure with a message meant for the user."""

    exit_status = 1


class UsageError(ManetError):
    """A wrong file, key, argument or machine: found before anything was started."""

    exit_status = 2


class RunError(ManetError):
    """Something failed after the run had started; what was captured until then is kept."""

    exit_status = 1


class HostLateError(RunError):
    """The host was too slow or too busy: nothing is wrong with the run, which is void and worth doing over."""
