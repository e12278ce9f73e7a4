"""The `manet` command: parses its arguments, calls a verb of testbed/commands, turns errors into one line and a status.

Exit status 0: success. 1: failure while running, or a failed check. 2: wrong usage, or this machine cannot do it. 130: Ctrl-C.
"""

import argparse
import atexit
import importlib
import os
import re
import signal
import sys
import threading
import time
from typing import Any, NoReturn

from testbed import __version__, output
from testbed.commands import GROUPS, SHOWN, VERBS, WITH_NETWORKS
from testbed.commands.options import Help
from testbed.errors import ManetError, did_you_mean, shortened
from testbed.programs import INSTALLATION

EXAMPLES = """examples:
  ./manet demo                           the main experiment at its quick size
  ./manet list experiments               what can be run, one line each
  ./manet run hv-fig1 --set hops=[1,5]   part of an experiment
  ./manet cli chain5                     a prompt on a running network
  ./manet test                           all tests
  ./manet run --help                     every verb has help with examples
"""


MAX_ERROR_LENGTH = 1000  # characters; names and values of the user are shortened
ANSWERING = "AnyIO worker thread"  # the name of the threads in which a server of testbed/web computes its answers
LEAVE_WITHIN_S = 1.0
REMEDY = "correct the path or its permissions"  # for an error of the file system that no verb has worded


class Parser(argparse.ArgumentParser):
    """Wrong usage is one line, like every other error. A word such as `-5m` is a value, which the type of its option refuses in
    its own words; argparse would take it for an option, and miss the value."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._negative_number_matcher = re.compile(r"-\.?\d")

    def error(self, message: str) -> NoReturn:
        """Print one line and exit with status 2."""
        print(f"{self.prog}: {shortened(message, MAX_ERROR_LENGTH)}; see {self.prog} --help", file=sys.stderr)
        raise SystemExit(2)


class Top(Parser):
    """The parser of `manet` itself, whose help shows the verbs by groups."""

    def format_help(self) -> str:
        """The usage, the groups with their verbs, the options and the examples."""
        verbs = next(action for action in self._actions if isinstance(action, argparse._SubParsersAction))
        summaries = {verb.dest: verb for verb in verbs._choices_actions}
        formatter = self._get_formatter()
        formatter.add_usage(self.usage, self._actions, [])
        formatter.add_text(self.description)
        for title, names in GROUPS.items():
            formatter.start_section(title)
            formatter.add_arguments([summaries[name] for name in names])
            formatter.end_section()
        formatter.start_section("options")
        formatter.add_arguments(action for action in self._actions if action.option_strings)
        formatter.end_section()
        formatter.add_text(self.epilog)
        return formatter.format_help()


def parser() -> argparse.ArgumentParser:
    """The parser with all verbs."""
    top = Top(
        prog="manet", description="Kernel TCP over 802.11 ad hoc networks, emulated frame by frame.",
        epilog=EXAMPLES, formatter_class=Help,
    )  # fmt: skip
    top.add_argument("--version", action="version", version=f"manet {__version__}")
    verbs = top.add_subparsers(dest="verb", metavar="VERB", required=True, parser_class=Parser)
    for name in VERBS:
        importlib.import_module(f"testbed.commands.{name}").add(verbs)
    return top


def main(arguments: list[str] | None = None) -> int:
    """Run the command line (default: sys.argv) and return the exit status."""
    if "_ARGCOMPLETE" in os.environ:  # the shell requests completions
        importlib.import_module("testbed.commands.completion").answer(parser())
    words = sys.argv[1:] if arguments is None else arguments
    if not words or words == ["help"]:
        words = ["--help"]
    with output.guarded():
        return _run(words)


def _run(words: list[str]) -> int:
    verb = words[0]
    try:
        try:
            _take_signals()
            if not verb.startswith("-") and verb not in VERBS:  # argparse would list those for programs, too
                meant = did_you_mean(verb, SHOWN) or f"the verbs are {', '.join(SHOWN)}"
                Parser(prog="manet").error(f"argument VERB: invalid choice: {shortened(verb)!r}; {meant}")
            options, rest = parser().parse_known_args(words)
            if rest and verb != "test":  # `test` passes unknown arguments to pytest
                Parser(prog=f"manet {verb}").error(f"unrecognized arguments: {' '.join(rest)}{_meant(verb, rest)}")
            options.rest = rest
            if verb in WITH_NETWORKS:
                from testbed.host.state import enter_user_namespace

                enter_user_namespace()
            return importlib.import_module(f"testbed.commands.{verb}").run(options)
        finally:
            sys.stdout.flush()
    except KeyboardInterrupt:
        sys.stderr.write(f"manet {verb}: interrupted; everything was taken down\n")  # at once: another Ctrl-C may follow
        return 130
    except BrokenPipeError:  # `manet ... | head` is no error, but nothing more can be printed
        output.let_go()
        return 1
    except Exception as problem:
        status = _status_of(problem)
        if status is None:
            raise
        if isinstance(problem, output.OutputError):
            output.let_go()
        print(f"manet {verb}: {_one_line(problem)}", file=sys.stderr)
        return status


def _meant(verb: str, rest: list[str]) -> str:
    """`; did you mean "--quick"?` for the first word that resembles an option of the verb."""
    top = argparse.ArgumentParser()
    importlib.import_module(f"testbed.commands.{verb}").add(verbs := top.add_subparsers())
    options = verbs.choices[verb]._option_string_actions
    hints = (did_you_mean(word.partition("=")[0], options) for word in rest if word.startswith("-"))
    return next((f"; {close}" for close in hints if close), "")


def _status_of(problem: Exception) -> int | None:
    """The exit status for an expected error; None for a defect of this program, which is shown with its traceback."""
    if isinstance(problem, ManetError):
        return problem.exit_status
    expected = type(problem).__module__ == "record.errors" or (isinstance(problem, OSError) and problem.filename is not None)
    return 1 if expected else None


def _one_line(problem: Exception) -> str:
    text = f"{problem.filename}: {problem.strerror}; {REMEDY}" if isinstance(problem, OSError) else str(problem)
    return shortened(INSTALLATION.reworded(text), MAX_ERROR_LENGTH)


def _take_signals() -> None:
    """Handle SIGTERM, and SIGHUP of a closed terminal, like Ctrl-C; further signals are ignored. Under nohup(1) SIGHUP stays
    ignored."""

    def as_ctrl_c(_number: int, _frame: object) -> None:
        for number in taken:
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    taken = [n for n in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(n) != signal.SIG_IGN]
    for number in taken:
        signal.signal(number, as_ctrl_c)


def _program() -> NoReturn:
    """`manet` as a process: a Ctrl-C that comes while an earlier one is answered, or at the end, shows no traceback."""

    uncaught, ignored = sys.excepthook, sys.unraisablehook
    sys.excepthook = lambda kind, *more: None if kind is KeyboardInterrupt else uncaught(kind, *more)
    sys.unraisablehook = lambda problem: None if problem.exc_type is KeyboardInterrupt else ignored(problem)
    atexit.register(output.end_errors)
    try:
        status = main()
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    _leave(status)


def _leave(status: int) -> NoReturn:
    """End the process. Python would wait for every thread, also for those of a server that has ended: they may compute for
    minutes what no client takes any more."""
    until_s = time.monotonic() + LEAVE_WITHIN_S
    answering = [thread for thread in threading.enumerate() if thread.name == ANSWERING]
    for thread in answering:
        thread.join(max(0.0, until_s - time.monotonic()))
    if any(thread.is_alive() for thread in answering):
        atexit._run_exitfuncs()
        os._exit(status)  # all is written: main() has flushed standard output
    sys.exit(status)


if __name__ == "__main__":
    _program()
