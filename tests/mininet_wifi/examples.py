"""Mininet-WiFi's own examples, unchanged, by `manet script`: which run, which are refused and why; for docs/mininet-wifi.md.

    .venv/bin/python -m tests.mininet_wifi.examples CHECKOUT [--out DIR] [--write] [NAME ...]

CHECKOUT is a folder of Mininet-WiFi (the table is of commit eaa5accb), of which nothing is in this repository. Each example is
started by root without arguments and display, and gets `exit` at its prompt after one line that prints what the network is. An
example that runs is compared with its own text: stations, addresses, places and names of radios. A difference that no note of
the run explains is the result `differs`, which the table must not have.
"""

import argparse
import ast
import json
import math
import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "mininet-wifi.md"
BEGIN, END = "<!-- examples: begin -->", "<!-- examples: end -->"
NETWORK = "Mininet_wifi("
EDITOR = "miniedit.py"  # a graphical editor, which writes scripts, and is none
LIMIT_S = 1800.0  # of an example that moves into an emulated guest
RUNS, REFUSED, FAILS, DIFFERS = "runs", "refused", "fails", "differs"
FACTS = "FACTS "
# what `py` of the prompt prints of each station
ASK = (
    'py "' + FACTS + '" + __import__("json").dumps({n.name: {"ip": n.IP(), "wlan": list(n.params["wlan"]), '
    '"intfs": list(n.intfNames()), "position": [float(x) for x in n.position] if hasattr(n, "position") else None} '
    "for n in net.stations})"
)
NODES = ("addStation", "addCar")
# what the README of an example tells to do before it: a folder, and a command there
PREPARED = {"eap-tls/eap-tls-auth.py": ("eap-tls/CA", ["sh", "gencerts.sh"])}
MOVERS = ("setMobilityModel", "startMobility", "ReplayingMobility", "ReplayingRSSI", "setPosition", "useExternalProgram")


@dataclass(frozen=True)
class Outcome:
    """The result of one example. `why`: the line that refused or ended it. `notes`: arguments without effect, as the run printed
    them. `differences`: between the script's text and its network."""

    name: str
    result: str
    why: str = ""
    notes: tuple[str, ...] = ()
    differences: tuple[str, ...] = field(default=())

    @property
    def row(self) -> str:
        """The row of the table."""
        why = "; ".join([self.why] * bool(self.why) + list(self.differences))
        notes = f"notes: {', '.join(self.notes)}" if self.notes else ""
        cell = " ".join(part for part in (why, notes) if part).replace("|", "\\|")
        return f"| `{self.name}` | {self.result} | {cell} |"


def examples(checkout: Path) -> list[Path]:
    """The scripts of the checkout that make a network."""
    files = sorted((checkout / "examples").rglob("*.py"))
    return [path for path in files if path.name != EDITOR and NETWORK in path.read_text(encoding="utf-8", errors="replace")]


def run(script: Path, checkout: Path, out: Path) -> Outcome:
    """Execute one example."""
    name = str(script.relative_to(checkout / "examples"))
    argv = [sys.executable, "-P", "-m", "testbed", "script", "--out", str(out), str(script)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "MPLBACKEND": "Agg"}
    if name in PREPARED:
        folder, command = PREPARED[name]
        subprocess.run(command, cwd=checkout / "examples" / folder, capture_output=True, check=True)
    try:
        done = subprocess.run(
            argv, input=f"{ASK}\nexit\n", capture_output=True, text=True, check=False, cwd=checkout,
            timeout=LIMIT_S, env=environment
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return Outcome(name, FAILS, f"not ended within {LIMIT_S:g} s")
    return outcome_of(name, script.read_text(encoding="utf-8"), done.returncode, done.stdout, done.stderr)


def outcome_of(name: str, source: str, status: int, printed: str, errors: str) -> Outcome:
    """The outcome by what the example printed."""
    notes = tuple(dict.fromkeys(re.findall(r"^\*\*\* note: (\w+: \w+)=", printed + errors, re.MULTILINE)))
    said = re.findall(rf"^manet script: (?:{re.escape(Path(name).name)}: (?:line \d+: )?)?(.*)$", errors, re.MULTILINE)
    line = said[-1] if said else ""  # the first may be that it moves into a guest
    if status == 0 or (status == 1 and line.startswith("void (")):
        facts = re.search(rf"{FACTS}(.*)$", printed, re.MULTILINE)
        differences = differing(source, json.loads(facts.group(1)) if facts else None, notes)
        return Outcome(name, DIFFERS if differences else RUNS, "", notes, tuple(differences))
    if status == 2 and line:
        return Outcome(name, REFUSED, line)
    last = [text for text in errors.splitlines() if text.strip() and not text.startswith("manet:")]
    return Outcome(name, FAILS, line or (last[-1].strip() if last else f"status {status}"))


def differing(source: str, stations: dict[str, dict] | None, notes: tuple[str, ...]) -> list[str]:
    """What of the script's own text the network is not. `stations`: what it is, None if the prompt was never reached."""
    if stations is None:
        return ["its network could not be asked"]
    found: list[str] = []
    moving = any(re.search(rf"\b{mover}\b", source) for mover in MOVERS)
    for name, given in declared(source).items():
        station = stations.get(name)
        if station is None:
            found.append(f"{name} is missing")
            continue
        if "ip" in given and given["ip"].partition("/")[0] != station["ip"]:
            found.append(f"{name} has {station['ip']}, not {given['ip']}")
        if not moving and "position" in given and station["position"] is not None:
            place = [float(part) for part in given["position"].split(",")]
            if not all(math.isclose(a, b, abs_tol=1e-6) for a, b in zip(place, station["position"], strict=False)):
                found.append(f"{name} is at {station['position']}, not {given['position']}")
        if not set(station["wlan"]) <= set(station["intfs"]):
            found.append(f"{name} has the interfaces {station['intfs']}, not {station['wlan']}")
    return found


def declared(source: str) -> dict[str, dict[str, str]]:
    """The stations of the script with literal names, and those of their arguments that are literal texts. A call in a branch or a
    loop is left out, for it need not be made."""
    found = {}
    for body in _straight(ast.parse(source)):
        for node in ast.walk(body):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in NODES):
                continue
            if node.args and isinstance(node.args[0], ast.Constant):
                texts = {k.arg: k.value.value for k in node.keywords if k.arg and isinstance(k.value, ast.Constant)}
                found[str(node.args[0].value)] = {key: text for key, text in texts.items() if isinstance(text, str)}
    return found


def _straight(tree: ast.Module) -> list[ast.stmt]:
    """The statements of the module and its functions that are in no branch and no loop."""
    bodies = [tree.body, *(node.body for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))]
    plain = (ast.Assign, ast.Expr, ast.Return)
    return [statement for body in bodies for statement in body if isinstance(statement, plain)]


def table(outcomes: list[Outcome]) -> str:
    """The table with its counts, in Markdown."""
    count = {result: sum(outcome.result == result for outcome in outcomes) for result in (RUNS, REFUSED, FAILS, DIFFERS)}
    head = (
        f"{len(outcomes)} examples: {count[RUNS]} run, {count[REFUSED]} refused with the reason, {count[FAILS]} failed by "
        f"themselves, {count[DIFFERS]} silently different."
    )
    return "\n".join(
        [head, "", "| example | result | reason; arguments without effect |", "|---|---|---|", *(o.row for o in outcomes)]
    )


def write(text: str, page: Path = PAGE) -> None:
    """Put the table between its marks of the page."""
    before, rest = page.read_text().split(BEGIN)
    page.write_text(f"{before}{BEGIN}\n{text}\n{END}{rest.split(END)[1]}")


def main(words: list[str] | None = None) -> int:
    """The command line; status 1 if an example differs silently."""
    parser = argparse.ArgumentParser(
        prog="tests.mininet_wifi.examples", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "mininet-wifi-examples")
    parser.add_argument("--write", action="store_true", help=f"replace the table of {PAGE.relative_to(ROOT)}")
    parser.add_argument("names", nargs="*", help="some examples only, by their paths below examples/")
    options = parser.parse_args(words)
    checkout = options.checkout.resolve()
    scripts = [
        path for path in examples(checkout) if not options.names or str(path.relative_to(checkout / "examples")) in options.names
    ]
    outcomes = []
    for script in scripts:
        outcomes.append(run(script, checkout, options.out / script.relative_to(checkout / "examples").with_suffix("")))
        print(outcomes[-1].row, flush=True)
    print(f"\n{table(outcomes)}")
    if options.write:
        write(table(outcomes))
    return int(any(outcome.result == DIFFERS for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
