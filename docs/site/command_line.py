"""The reference of the command line, from the parsers that the commands use."""

import argparse
from collections.abc import Iterator
from itertools import takewhile

from docs.site.table import cell, row
from testbed.__main__ import parser

HEAD = """# Command line

Generated from the parsers of `./manet`; `./manet VERB --help` prints the same. Exit status: 0 success, 1 a failure or a failed
check, 2 wrong usage or a missing requirement, 130 Ctrl-C. Each error is one line that names the remedy.
"""


def page() -> str:
    """The page, in Markdown: each verb with its options and examples."""
    top = parser()
    verbs = subcommands(top)
    about = summaries(top)
    index = [row("verb", "use"), row("---", "---"), *(row(f"[`{name}`](#{name})", cell(about[name])) for name in verbs)]
    return "\n".join([HEAD, *index, "", *(line for name in verbs for line in _verb(name, verbs[name]))])


def subcommands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """The parsers below a parser, by name."""
    found = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    return dict(found[0].choices) if found else {}


def options(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Options and arguments of a parser, except for --help and the names of its actions."""
    skipped = (argparse._HelpAction, argparse._SubParsersAction)
    return (action for action in parser._actions if not isinstance(action, skipped) and action.help != argparse.SUPPRESS)


def summaries(parser: argparse.ArgumentParser) -> dict[str, str]:
    """The line about each of the parsers below a parser, by name."""
    found = next(action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    return {choice.dest: choice.help or "" for choice in found._choices_actions}


def _verb(name: str, verb: argparse.ArgumentParser) -> list[str]:
    lines = [f"## {name}", "", verb.description or "", "", *_usage(verb), *_table(verb)]
    for action, below in subcommands(verb).items():
        lines += [f"### {name} {action}", "", below.description or "", "", *_usage(below), *_table(below), *_examples(below)]
    return [*lines, *_examples(verb)]


def _usage(parser: argparse.ArgumentParser) -> list[str]:
    words = parser.format_usage().removeprefix("usage: ").rstrip()
    return ["```text", words, "```", ""]


def _table(parser: argparse.ArgumentParser) -> list[str]:
    rows = [row(_code(action), cell(_help(parser, action))) for action in options(parser)]
    return [row("argument", "meaning"), row("---", "---"), *rows, ""] if rows else []


def spelled(action: argparse.Action) -> str:
    """`--jobs N`, or the name of a positional argument; several spellings of an option are separated by commas."""
    formatter = argparse.HelpFormatter("")
    value = formatter._format_args(action, formatter._get_default_metavar_for_optional(action)) if action.nargs != 0 else ""
    if not action.option_strings:
        return str(action.metavar or action.dest)
    return ", ".join(f"{name} {value}".rstrip() for name in action.option_strings)


def _code(action: argparse.Action) -> str:
    return ", ".join(f"`{word}`" for word in spelled(action).split(", ")).replace("|", "\\|")


def _help(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    return parser._get_formatter()._expand_help(action) if action.help else ""


def _examples(parser: argparse.ArgumentParser) -> list[str]:
    """The text below the options: examples as they are written, then remarks."""
    if not parser.epilog:
        return []
    lines = parser.epilog.strip("\n").split("\n")[1:]
    commands = list(takewhile(lambda line: line.startswith("  ") or not line.strip(), lines))
    remarks = "\n".join(lines[len(commands) :]).strip()
    return ["```text", "\n".join(line[2:] for line in commands).strip("\n"), "```", "", *([remarks, ""] if remarks else [])]
