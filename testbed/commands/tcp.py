"""`manet tcp`: the table of names (kernel-tcp/names), and our own algorithms loaded for the whole machine.

A run loads what it needs by itself, as private copies, which are removed when it ends. `load` is for other programs: it makes
an algorithm available to every connection of the machine by its name, until `unload` or the next boot.
"""

import argparse
from typing import TYPE_CHECKING, Any

from testbed.commands.options import add_action, add_verb

if TYPE_CHECKING:
    import subprocess

    from scenarios.tcp_names import Name, Parameter

FORMAT = "manet-tcp-names/1"
LOAD_DEADLINE_S = 60.0
OBJECT = ".o"
EXAMPLES = """
  ./manet tcp list                  all algorithms, layers, and the kernel's
  ./manet tcp show elfn             parameters: unit, default and range
  ./manet tcp show 'elfn(vegas, probe=500ms)'
                                    the meaning of that text
  ./manet tcp load vegas alpha=2    for every program: iperf3 -C vegas
  ./manet tcp unload vegas
  ./manet tcp load mine.bpf.o --name mine
                                    an object of your own

In a scenario: tcp = "elfn(newreno, probe=2s)" (formats/scenario.md). A run
loads what it needs by itself.
"""
# Descriptions of the kernel's own algorithms, from its Documentation and the heads of net/ipv4/tcp_NAME.c.
KERNEL_SUMMARIES = {
    "bbr": "BBR: paced by the bottleneck's rate and the least round trip time",
    "bic": "BIC: binary increase",
    "cdg": "CDG: backs off by the gradient of the delay",
    "cubic": "CUBIC (RFC 9438)",
    "dctcp": "DCTCP (RFC 8257): by the share of ECN marks",
    "highspeed": "HighSpeed TCP (RFC 3649)",
    "htcp": "H-TCP: by the time since the last loss",
    "hybla": "Hybla: for long round trips",
    "illinois": "Illinois: by loss, its steps by delay",
    "lp": "TCP-LP: uses what others leave",
    "nv": "NV: Vegas for data centres",
    "scalable": "Scalable TCP",
    "vegas": "the kernel's Vegas",
    "veno": "Veno: tells random loss from congestion as Vegas would",
    "westwood": "Westwood+: the window after a loss by the estimated bandwidth",
    "yeah": "YeAH: fast and slow by the queue's length",
}


def add(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = add_verb(verbs, "tcp", "list and explain the TCPs of scenarios; load one for all programs", EXAMPLES)
    actions = parser.add_subparsers(dest="action", metavar="list|show|load|unload", required=True)
    listing = add_action(actions, "list", "list all names, and whether this machine can use them")
    listing.add_argument("--json", action="store_true", help="print one JSON object")
    showing = add_action(actions, "show", "explain one name, or the text of a scenario's `tcp`")
    showing.add_argument("name", metavar="NAME|TEXT", help='such as elfn, or "elfn(vegas, probe=500ms)"')
    showing.add_argument("--json", action="store_true", help="print one JSON object")
    loading = add_action(actions, "load", "register one of our algorithms for every program of this machine")
    loading.add_argument("name", metavar="NAME|FILE.o", help="an algorithm of this testbed, or an object file of your own")
    loading.add_argument("parameters", metavar="PARAMETER=VALUE", nargs="*", help="as `manet tcp show NAME` lists them")
    loading.add_argument("--name", metavar="NAME", dest="as_name", help="its name in the kernel (default: its own)")
    loading.add_argument(
        "--operations", metavar="VARIABLE", help="of several congestion controls in FILE.o, the one of this variable"
    )
    unloading = add_action(actions, "unload", "remove an algorithm that was loaded")
    unloading.add_argument("name", metavar="NAME", help="its name in the kernel")


def run(options: argparse.Namespace) -> int:
    """Execute the action. Raises UsageError or RunError."""
    from scenarios.tcp import TcpError
    from testbed.errors import UsageError

    try:
        match options.action:
            case "list":
                return _list(options.json)
            case "show":
                return _show(options.name, options.json)
            case "load":
                return _load(options.name, options.parameters, options.as_name, options.operations)
            case _:
                _check_loadable(options.name)
                return _loader("unload", options.name)
    except TcpError as problem:
        raise UsageError(str(problem)) from None


# --- list -------------------------------------------------------------------------------------------------------------


def _list(as_json: bool) -> int:
    import json

    from testbed.columns import folded, hanging

    rows = entries()
    if as_json:
        print(json.dumps({"format": FORMAT, "names": rows, "loaded": _loaded()}, indent=1))
        return 0
    width = max(len(row["name"]) for row in rows)
    for kind, heading in (("algorithm", "algorithms"), ("layer", "layers around an algorithm"), ("kernel", "this kernel's own")):
        print(f"{heading}:")
        for row in (row for row in rows if row["kind"] == kind):
            print(hanging(f"  {row['name']:{width}}  ", row["summary"]))
        print()
    for loaded in _loaded():
        print(folded(f"loaded for every program of this machine: {_one_line(loaded)}"))
    reasons = list(dict.fromkeys(row["why_not"] for row in rows if row["why_not"]))
    for reason in reasons:
        names = ", ".join(row["name"] for row in rows if row["why_not"] == reason)
        print(folded(f"not usable here: {names}: {reason}"))
    print('manet tcp show NAME prints the parameters; in a scenario: tcp = "elfn(newreno)"')
    return 0


def entries() -> list[dict[str, Any]]:
    """All names, as `--json` has them: the table's, then the kernel's own; `why_not` is null for what can be used here."""
    from scenarios.tcp import KERNEL, parse
    from scenarios.tcp_names import table
    from testbed.host.algorithms import available, missing_struct_ops

    missing = missing_struct_ops() or None
    loaded = {row["name"] for row in _loaded()}
    rows = [_entry(listed, missing if parse(name).wants_struct_ops else None) for name, listed in table().items()]
    for name in available():
        if name == "reno" or name in loaded:
            continue  # newreno; algorithms of this testbed
        of_scenario = KERNEL + name if name in table() else name
        summary = KERNEL_SUMMARIES.get(name, "the kernel's own")
        rows.append(
            {"name": of_scenario, "kind": "kernel", "summary": summary, "source": None, "parameters": [], "why_not": None}
        )
    return rows


def _entry(listed: "Name", why_not: str | None) -> dict[str, Any]:
    parameters = [_parameter(parameter) for parameter in listed.parameters.values()]
    entry: dict[str, Any] = {"name": listed.name, "kind": listed.kind, "summary": listed.summary, "source": listed.source}
    return entry | {"parameters": parameters, "why_not": why_not}


def _loaded_entry(row: dict[str, Any]) -> dict[str, Any]:
    """An entry for a name that `manet tcp load` has registered and that is not in the table."""
    from scenarios.tcp_names import table

    algorithm = row.get("algorithm") or "an object"
    listed = table().get(algorithm)
    values = row.get("parameters", {})
    bare = {"type": None, "unit": None, "default": None, "allowed": None, "text": ""}
    described = {parameter["name"]: parameter for parameter in (_entry(listed, None)["parameters"] if listed else [])}
    parameters = [{"name": key, **bare, **described.get(key, {}), "loaded": f"{value:g}"} for key, value in values.items()]
    summary = f"{algorithm}: {listed.summary}" if listed else f"{algorithm}, an object of your own"
    source = listed.source if listed else None
    return {
        "name": row["name"], "kind": "loaded", "summary": summary, "source": source, "parameters": parameters, "why_not": None,
    }  # fmt: skip


def _parameter(parameter: "Parameter") -> dict[str, Any]:
    entry: dict[str, Any] = {"name": parameter.name, "type": parameter.type, "unit": parameter.unit or None}
    entry |= {"default": parameter.spelled(parameter.default), "allowed": parameter.allowed(), "text": parameter.text}
    return entry | ({"choices": list(parameter.choices)} if parameter.choices else {})


# --- show -------------------------------------------------------------------------------------------------------------


def _show(text: str, as_json: bool) -> int:
    import json

    from scenarios.tcp import parse
    from scenarios.tcp_names import table
    from testbed.columns import folded
    from testbed.errors import UsageError
    from testbed.host.algorithms import missing_algorithm

    tcp = parse(text)
    missing = missing_algorithm(tcp.kernel_algorithm or "", list(table())) if tcp.of_table is None else ""
    if missing:
        raise UsageError(missing)
    rows = [*entries(), *(_loaded_entry(row) for row in _loaded() if row["name"] not in table())]
    named_rows = [row for row in rows if row["name"] in {part.name for part in (*tcp.layers, tcp.inner)}]
    named = [row for row in named_rows if row["name"] == text.strip()] or named_rows
    if as_json:
        spelled = {"spelled": tcp.spelled, "in_full": tcp.in_full, "settings": tcp.settings()}
        print(json.dumps({"format": FORMAT, "names": named, **spelled}, indent=1))
        return 0
    for row in named:
        print("\n".join(folded(line) for line in _described(row, table().get(row["name"]))))
    print(f'\nin a scenario:\n  tcp = "{tcp.spelled}"')
    if tcp.in_full != tcp.spelled:
        print(f'which is\n  tcp = "{tcp.in_full}"')
    return 0


def _described(row: dict[str, Any], listed: "Name | None") -> list[str]:
    """The description of one name, as lines."""
    kinds = {"kernel": "congestion control of this kernel", "algorithm": "algorithm", "layer": "layer"}
    kind = kinds.get(row["kind"], "loaded for every program of this machine")
    lines = [f"{row['name']}: {kind}", f"  {row['summary']}"]
    if row["source"]:
        lines.append(f"  source: {row['source']}")
    if listed is not None and listed.is_layer:
        lines.append(f"  around: {listed.inner}, where nothing else is named")
    elif listed is not None:
        on = "as the profile has it" if listed.sack is None else "on" if listed.sack else "off"
        lines.append(f"  SACK: {on}" + (f"; the kernel's {listed.kernel}" if listed.kernel else ""))
    if row["why_not"]:
        lines.append(f"  not usable here: {row['why_not']}")
    for p in row["parameters"]:
        is_now = f"default {p['default']}" if row["kind"] != "loaded" else f"loaded with {p['loaded']}"
        lines += [f"  {p['name']}: {p['text']}", f"    {p['allowed']}; {is_now}"] if p["text"] else [f"  {p['name']}: {is_now}"]
    return lines if row["parameters"] else [*lines, "  no parameters"]


# --- load, unload -----------------------------------------------------------------------------------------------------


def _load(name: str, parameters: list[str], as_name: str | None, operations: str | None) -> int:
    """Load an algorithm with all parameters of the table, whose defaults take precedence over the program's. The loader knows the
    parameters of the user's own object file."""
    from scenarios.tcp import parse, quoted
    from scenarios.tcp_names import table
    from testbed.errors import UsageError
    from testbed.host.algorithms import missing_names_file

    _check_loadable(name)
    if unnamed := missing_names_file(name):
        raise UsageError(unnamed)
    if name in table():
        tcp = parse(f"{name}({', '.join(parameters)})")
        parameters = [f"{key}={value}" for key, value in tcp.parameters.items()]
    elif not name.endswith(OBJECT):
        algorithms = ", ".join(name for name, listed in table().items() if not (listed.is_layer or listed.kernel))
        raise UsageError(
            f"{quoted(name)} is not an algorithm of this testbed; use one of {algorithms}, or your own object (FILE{OBJECT})"
        )
    chosen = [*(["--name", as_name] if as_name else []), *(["--operations", operations] if operations else [])]
    return _loader("load", name, *parameters, *chosen)


def _check_loadable(name: str) -> None:
    """Raise UsageError for a name of the table that is not an algorithm of this testbed."""
    from scenarios.tcp_names import table
    from testbed.errors import UsageError

    listed = table().get(name)
    if listed is not None and listed.is_layer:
        text = f'"{name}" is a layer, which works within a run only, on its connections; write tcp = "{name}({listed.inner})"'
        raise UsageError(f"{text} in a scenario")
    if listed is not None and listed.kernel:
        raise UsageError(f'"{name}" is the kernel\'s own {listed.kernel}, which is there without being loaded')


def _loader(*arguments: str) -> int:
    """Call `manet-tcp load|unload` and pass on its messages. Raises UsageError or RunError."""
    import os

    from testbed.errors import RunError, UsageError
    from testbed.host.algorithms import missing_struct_ops

    if os.geteuid() != 0:
        raise UsageError("not root: to register congestion control the kernel needs it; run it with sudo")
    missing = missing_struct_ops()
    if missing:
        raise UsageError(missing)
    done = _manet_tcp(*arguments)
    if done.returncode != 0:
        errors = ([line for line in done.stderr.splitlines() if line.strip()] or ["refused without a message"])[-1]
        error = UsageError if done.returncode == 2 else RunError
        raise error(errors.removeprefix("manet-tcp: ").replace("manet-tcp", "manet tcp"))
    print(done.stdout or f"{arguments[0]}ed {arguments[1]}\n", end="")
    return 0


def _loaded() -> list[dict[str, Any]]:
    """The algorithms loaded for the whole machine, as `manet-tcp list --json` prints them; empty if that fails."""
    import json

    from testbed.errors import RunError

    try:
        answer = json.loads(_manet_tcp("list", "--json").stdout)
    except (OSError, ValueError, RunError):
        return []
    return answer.get("loaded", [])


def _one_line(loaded: dict[str, Any]) -> str:
    """`mine: vegas (alpha=2), connections: 3`; without `mine:` if that is the algorithm's own name."""
    algorithm = loaded.get("algorithm") or loaded["name"]
    name = loaded["name"] + (f": {algorithm}" if algorithm != loaded["name"] else "")
    parameters = ", ".join(f"{key}={value:g}" for key, value in loaded.get("parameters", {}).items())
    uses = loaded.get("connections")
    return name + (f" ({parameters})" if parameters else "") + ("" if uses is None else f", connections: {uses}")


def _manet_tcp(*arguments: str) -> "subprocess.CompletedProcess[str]":
    import subprocess

    from testbed.errors import RunError
    from testbed.programs import BUILT

    argv = [str(BUILT.kernel_tcp), *arguments]
    try:
        return subprocess.run(argv, capture_output=True, text=True, timeout=LOAD_DEADLINE_S, check=False)
    except subprocess.TimeoutExpired:
        raise RunError(f"manet-tcp {arguments[0]} did not end within {LOAD_DEADLINE_S:g} s; try it again") from None
