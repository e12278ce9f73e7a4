"""`manet replay`: replay the medium of a recorded run from its log of inputs, and compare the air logs."""

import argparse
from pathlib import Path

from testbed.commands.options import add_verb

EXAMPLES = """
  ./manet replay results/chain5/all/seed-1
                    equal, or the first line of the air log that differs
  ./manet replay results/chain5 --json
                    a folder with one run is enough

Only the medium is replayed, in virtual time, from the frames that the stations'
kernels gave it. ./manet run RUN repeats the whole run in real time; its result
differs, because neither a host's load nor its kernel follows from a seed.
"""


def add(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = add_verb(verbs, "replay", "feed a recorded run's frames to the medium; compare the air logs", EXAMPLES)
    parser.add_argument("run", metavar="RUN", type=Path, help="directory of a run: results/NAME/CELL/seed-N")
    parser.add_argument("--json", action="store_true", help="print the answer as one JSON object")


def run(options: argparse.Namespace) -> int:
    """Replay the run and print the comparison. The exit status: 1 if the air logs differ."""
    import json
    from dataclasses import asdict

    from testbed.runs.recorded import Recorded
    from testbed.runs.replayed import AIR_LOG, replay
    from testbed.runs.verdict import reasons_of

    recorded = Recorded.read(options.run)
    comparison = replay(recorded.directory)
    equal, notes = comparison.line is None, []
    if not equal:
        missing = [reason for reason in reasons_of(recorded.directory) if "rows are missing" in reason]
        notes = [*recorded.differences(), *missing]
    if options.json:
        answer = {"format": "manet-replay/1", "directory": str(recorded.directory), "equal": equal}
        print(json.dumps(answer | asdict(comparison) | {"notes": notes}, indent=1))
        return 0 if equal else 1
    air = recorded.directory / AIR_LOG
    if equal:
        print(f"equal     {air}: {comparison.lines} lines, byte for byte")
        return 0
    print(f"differs   {air}: line {comparison.line}")
    print(f"recorded  {_line(comparison.recorded)}")
    print(f"replayed  {_line(comparison.replayed)}")
    for note in notes:
        print(f"note      {note}")
    return 1


def _line(text: str | None) -> str:
    return "(the log has ended)" if text is None else text
