"""The man page of `manet`, from the parsers that the command uses: `python -m docs.site.man_page >manet.1` (debian/rules).

Macros of man(7). The page names the command as an installed package has it. Differs from help2man and argparse-manpage: all
verbs are on one page, in the groups of `manet --help`, and examples keep their lines.
"""

import argparse
import re
import sys
from collections.abc import Iterator
from dataclasses import replace

from docs.site.command_line import options, spelled, subcommands, summaries
from testbed import __version__
from testbed.__main__ import EXAMPLES, parser
from testbed.commands import GROUPS
from testbed.programs import INSTALLATION

# ASCII that roff would print as typographic characters (groff_char(7))
ESCAPES = str.maketrans({"\\": "\\e", "-": "\\-", "`": "\\(ga", "'": "\\(aq", "^": "\\(ha", "~": "\\(ti"})
PACKAGED = replace(INSTALLATION, package="manet")
LAST = r""".SH FILES
.TP
.I results/
In the current folder: the runs that
.B manet
makes, unless an option names another folder. In a folder of the system
.I ~/manet-results
is used.
.TP
.I /usr/share/doc/manet/docs
The documentation.
.TP
.I /usr/share/doc/manet/examples
Scripts, lessons, workflows of CI.
.SH EXIT STATUS
.TP
.B 0
Success.
.TP
.B 1
A failure, or a failed check.
.TP
.B 2
Wrong usage, or a missing requirement.
.TP
.B 130
Ctrl\-C.
.SH SEE ALSO
.BR ip\-netns (8),
.BR tc (8),
.BR tcpdump (8),
.BR mn (1)"""


def page() -> str:
    """The page, in roff."""
    top = parser()
    verbs, about = subcommands(top), summaries(top)
    lines = [
        f'.TH MANET 1 "" "manet {__version__}" "User Commands"',
        ".SH NAME",
        rf"manet \- {roff((top.description or '').rstrip('.'))}",
    ]
    lines += [".SH SYNOPSIS", ".B manet", r".I VERB", r"[\fIarguments\fR]", ".SH DESCRIPTION"]
    lines += [r"Each verb has a help of its own, \fBmanet\fR \fIVERB\fR \fB\-\-help\fR."]
    for title, names in GROUPS.items():
        lines += [f".SS {roff(title)}"]
        lines += [line for name in names for line in (".TP", _bold(name), roff(about[name]))]
    lines += [".SH EXAMPLES", *_verbatim(EXAMPLES.split("\n", 1)[1])]
    for names in GROUPS.values():
        lines += [line for name in names for line in _verb(verbs[name])]
    return "\n".join([*lines, LAST]) + "\n"


def roff(text: str) -> str:
    """Text that roff prints as it is: no escapes, no requests, hyphens that can be copied. It names a package's commands."""
    return re.sub(r"^\.", r"\\&.", PACKAGED.reworded(text).translate(ESCAPES), flags=re.MULTILINE)


def _verb(verb: argparse.ArgumentParser) -> Iterator[str]:
    yield f".SH {roff(verb.prog.upper())}"
    yield from _parser(verb)
    for below in subcommands(verb).values():
        yield f".SS {roff(below.prog)}"
        yield from _parser(below)


def _parser(parser: argparse.ArgumentParser) -> Iterator[str]:
    yield from [roff(parser.description or ""), ".PP", *_verbatim(parser.format_usage().removeprefix("usage: "))]
    for action in options(parser):
        yield from (".TP", _bold(spelled(action)), roff(parser._get_formatter()._expand_help(action)) if action.help else r"\&")
    if parser.epilog:
        yield from [".PP", "Examples:", *_verbatim(parser.epilog.strip("\n").split("\n", 1)[1])]


def _bold(text: str) -> str:
    return rf"\fB{roff(text)}\fR"


def _verbatim(text: str) -> list[str]:
    return [".nf", roff(text.strip("\n")), ".fi"]


if __name__ == "__main__":
    sys.stdout.write(page())
