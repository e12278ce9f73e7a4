"""Any command line of the user's: `command` at the source, for the flow's time, and before it `server` at the target.

The programs are started by programs/command.py, which ends them with all processes of their groups. A command may end early and
with any status; the server must run until it is ended. Their output is in log/<flow>-sender.log and log/<flow>-receiver.log.
"""

import re
import string
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from keys.models import KeyProblem, Strict, as_tuple, check_length
from keys.quantities import Seconds, Whole
from traffic.shared.kind import (
    After,
    FlowPlan,
    Kind,
    Listening,
    Metric,
    Printed,
    Program,
    Readiness,
    Report,
    Shown,
    python_program,
)

PROGRAM = Path(__file__).with_name("programs") / "command.py"
FIELDS = ("source", "target", "port", "seconds")
BRACES = "write {{ and }} for braces of the word itself"
SEE_LOG = "see its output in log/ of the run"


def _checked_word(word: str) -> str:
    """A word whose fields, as of str.format, are known."""
    listed = ", ".join(f"{{{name}}}" for name in FIELDS)
    try:
        parts = list(string.Formatter().parse(word))
    except ValueError as problem:
        raise ValueError(f'"{word}": {problem}; {BRACES}') from None
    for _text, name, spec, conversion in parts:
        if name is not None and (name not in FIELDS or spec or conversion):
            raise ValueError(f'"{word}" has the unknown field {{{name}}}; the fields are {listed}; {BRACES}')
    return word


def _checked_line(words: tuple[str, ...]) -> tuple[str, ...]:
    if not words or not words[0] or words[0] != words[0].format_map(dict.fromkeys(FIELDS, "")):
        raise ValueError("its first word must be the name or path of a program; write it there")
    check_length(words)
    return words


def _checked_pattern(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as problem:
        raise ValueError(f'"{pattern}" is not a regular expression ({problem}); correct it') from None
    return pattern


Words = Annotated[
    tuple[Annotated[str, AfterValidator(_checked_word)], ...], BeforeValidator(as_tuple), AfterValidator(_checked_line)
]


class CommandKeys(Strict):
    """`command` and `server`: words of command lines, with fields; `ready_...`: when the server is ready (default: at once)."""

    command: Words = Field(examples=[["ping", "-c", "10", "{target}"]])
    server: Words | None = None
    ready_port: Annotated[Whole, Field(ge=0, le=65535)] | None = None
    ready_line: Annotated[str, AfterValidator(_checked_pattern)] | None = None
    ready_after: Annotated[Seconds, Field(ge=0, le=3600)] | None = None

    @model_validator(mode="after")
    def _one_condition(self) -> Self:
        conditions = [key for key in ("ready_port", "ready_line", "ready_after") if getattr(self, key) is not None]
        if conditions and self.server is None:
            raise KeyProblem((conditions[0],), 'is without a "server"; add server, or remove it')
        if len(conditions) > 1:
            raise KeyProblem((conditions[1],), f'contradicts "{conditions[0]}"; remove one of them')
        return self


class Command(Kind[CommandKeys]):
    """See the head of this file."""

    keys = CommandKeys
    transport = None
    measured = "opened"
    readiness = After(0.0)
    own_metrics = (
        Metric("exit_status", "1", "status with which the command ended, negative for the signal that killed it; `null` if it "
               "was running at the end of the traffic"),
        Metric("ended_by_run", "1", "whether it was ended for that reason"),
    )  # fmt: skip
    shown = (
        Shown("delivered_kbps", "delivered", "kbit/s"),
        Shown("back_delivered_kbps", "back", "kbit/s"),
        Shown("retransmissions", "re-sent", ""),
        Shown("rtt_ms_mean", "RTT", "ms"),
        Shown("latency_ms_mean", "latency", "ms"),
        Shown("exit_status", "exit status", ""),
        Shown("ended_by_run", "ended by the run", "% of runs", 100.0),
    )

    def readiness_of(self, keys: CommandKeys) -> Readiness:
        """The sign of readiness, by the key `ready_...`."""
        if keys.ready_port is not None:
            return Listening(None, keys.ready_port or None, f"correct server or ready_port; {SEE_LOG}")
        if keys.ready_line is not None:
            return Printed(keys.ready_line, f"correct server or ready_line; {SEE_LOG}")
        return self.readiness if keys.ready_after is None else After(keys.ready_after)

    def own_programs(self, keys: CommandKeys) -> Mapping[str, str]:
        """The first word of each command line."""
        return {key: words[0] for key, words in keys if isinstance(words, tuple)}

    def chosen_port(self, keys: CommandKeys) -> tuple[str, int] | None:
        """The port of `ready_port`."""
        return ("ready_port", keys.ready_port) if keys.ready_port else None

    def receiver(self, plan: FlowPlan[CommandKeys]) -> Program | None:
        """`command.py serve` with the server."""
        if plan.keys.server is None:
            return None
        return Program(python_program(PROGRAM, "serve", *_placed(plan.target_place), *filled_in(plan.keys.server, plan)))

    def sender(self, plan: FlowPlan[CommandKeys], receiver_pid: int) -> Program:
        """`command.py run` with the command."""
        own = ["--seconds", plan.seconds, "--out", plan.report]
        return Program(python_program(PROGRAM, "run", *own, *_placed(plan.source_place), *filled_in(plan.keys.command, plan)))

    def remark(self, report: Report) -> str | None:
        """A remark about a status other than 0."""
        status = report.get("exit_status")
        if not status:
            return None
        ended = f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
        return f"{ended}: {Path(report['argv'][0]).name}, after {report['seconds']:.1f} s"


KIND = Command()


def _placed(place: Sequence[str]) -> list[object]:
    """The options of command.py before a command that runs in this place."""
    return ["--place-words", len(place), "--", *place] if place else ["--"]


def filled_in(words: tuple[str, ...], plan: FlowPlan[CommandKeys]) -> list[str]:
    """The words with the values of the flow in place of the fields; the seconds without a fraction of zeros."""
    values = {"source": plan.source, "target": plan.target, "port": plan.port, "seconds": f"{plan.seconds:.15g}"}
    return [word.format_map(values) for word in words]
