"""Bad input, as a table: a command line of `manet`, and the words that its one line of error must have.

`{file}` in the command line is the path of a file with the case's text (`file`, bytes or str; a callable makes the path itself).
Every line must also name a file, key or command; test_attacks.py checks what holds for all of them.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Attack:
    name: str
    command: tuple[str, ...]
    words: tuple[str, ...]
    file: str | bytes | Callable[[Path], object] = ""
    suffix: str = ".toml"
    status: int = 2


def scenario(name: str, text: str, *words: str) -> Attack:
    """A scenario file."""
    return Attack(name, ("run", "{file}", "--out", "out"), words, text)


def settings(name: str, *given: str, words: tuple[str, ...]) -> Attack:
    """A good scenario, `chain5`, with `--set`."""
    sets = [word for one in given for word in ("--set", one)]
    return Attack(name, ("run", "chain5", *sets, "--out", "out"), words)


def experiment(name: str, text: str, *words: str) -> Attack:
    return Attack(name, ("run", "{file}", "--out", "out"), words, f'question = "?"\n{text}')


def trace(name: str, content: str | bytes, *words: str, suffix: str = ".csv", status: int = 2) -> Attack:
    """A movement file."""
    return Attack(name, ("trace", "{file}"), words, content, suffix, status)


def request(name: str, *command: str, words: tuple[str, ...], status: int = 2) -> Attack:
    return Attack(name, command, words, status=status)


HUGE = "9" * 400
LONG = "x" * 1_000_000
DEEP = 3000
CHAIN = "[scenario]\nhops = 1\n"

SYNTAX = [
    scenario("empty file", "", "file.toml", 'a "chain" needs "hops"'),
    scenario("no value", "hops =\n", "file.toml: line 1: not TOML", "toml.io"),
    scenario("no key", "= 3\n", "line 1: not TOML"),
    scenario("twice the same key", "hops = 1\nhops = 2\n", 'file.toml: line 2: key "hops": stands twice'),
    scenario("a string without its end", 'hops = "1\n', "line 1: not TOML"),
    scenario("a table without its end", "[scenario\nhops = 1\n", "line 1: not TOML"),
    scenario("JSON", '{"hops": 1}\n', "line 1: not TOML"),
    scenario("lists 3000 deep", f"hops = {'[' * DEEP}{']' * DEEP}\n", "file.toml: tables or lists are nested too deep"),
    scenario("tables 3000 deep", f"hops = {'{a=' * DEEP}1{'}' * DEEP}\n", "file.toml: tables or lists are nested too deep"),
    scenario(
        "a dotted key 3000 deep", f"{'a.' * DEEP}a = 1\nhops = 1\n", "file.toml: line 1: a dotted key has more than 32 parts"
    ),
    scenario("a number of 400 digits", f"hops = {HUGE}\n", "line 1", "outside of 64 bits"),
    scenario("a date", "hops = 1979-05-27\n", 'key "hops"', "a whole number"),
    Attack("binary file", ("run", "{file}", "--out", "out"), ("is not UTF-8 text",), bytes(range(128, 256)) * 20),
    Attack("zero bytes", ("run", "{file}", "--out", "out"), ("not TOML",), bytes(1000)),
    Attack("an ELF program", ("run", "/bin/true", "--out", "out"), ("/bin/true: is not UTF-8 text",)),
    Attack("a folder without a run", ("run", "{file}", "--out", "out"), ("no run in it",), Path.mkdir, status=1),
    Attack("a FIFO", ("run", "{file}", "--out", "out"), ("there is no such file",), os.mkfifo),
    Attack("a device", ("run", "/dev/zero", "--out", "out"), ("/dev/zero: there is no such file",)),
    Attack(
        "a file of 20 MB", ("run", "{file}", "--out", "out"), ("has 20000002 bytes, of at most 1048576",), "# " + "x" * 20_000_000
    ),
]

KEYS = [
    scenario("unknown key", "hopps = 3\n", 'key "hopps": unknown key; did you mean "hops"?'),
    scenario("a key outside [scenario]", CHAIN.replace("[", "x = 1\n[", 1), 'key "x": unknown key outside [scenario]'),
    scenario("a word for a number", 'hops = "many"\n', 'key "hops": "many" is of the wrong type; give a whole number'),
    scenario("true for a number", "hops = true\n", 'key "hops": true is of the wrong type'),
    scenario("half a hop", "hops = 1.5\n", 'key "hops": 1.5 is of the wrong type; give a whole number'),
    scenario("no hops at all", "hops = 0\n", 'key "hops": 0 is out of range; give at least 1'),
    scenario("a million hops", "hops = 1000000\n", 'key "hops": 1000000 is out of range; give at most 1999'),
    scenario("hops and another number of nodes", "hops = 3\nnodes = 3\n", "3 nodes contradict 3 hops"),
    scenario("duration 1e-300", "hops = 1\nduration = 1e-300\n", 'key "duration": 1e-300 is out of range; give at least 0.1 s'),
    scenario("duration 0", "hops = 1\nduration = 0\n", 'key "duration": 0 is out of range; give at least 0.1 s'),
    scenario("duration nan", "hops = 1\nduration = nan\n", 'key "duration": nan is not a finite number'),
    scenario("duration inf", "hops = 1\nduration = inf\n", 'key "duration": inf is not a finite number'),
    scenario("duration 1e300", "hops = 1\nduration = 1e300\n", 'key "duration"', "give at most 86400 s"),
    scenario(
        "a time in metres", 'hops = 1\nduration = "3 m"\n', 'key "duration": "3 m" has the unit "m", but a time is expected'
    ),
    scenario("spacing -1", "hops = 1\nspacing = -1\n", 'key "spacing": -1 is out of range; give more than 0 m'),
    scenario("spacing in no unit", 'hops = 1\nspacing = "10 parsecs"\n', 'key "spacing": "10 parsecs" has the unit "parsecs"'),
    scenario("a flow to itself", 'hops = 1\nflows = [{ from = "sta1", to = "sta1" }]\n', '"sta1" is also "from"'),
    scenario("a flow to nobody", 'hops = 1\nflows = [{ from = "sta1", to = "sta9" }]\n', 'there is no station "sta9"'),
    scenario("a flow without an end", 'hops = 1\nflows = [{ from = "sta1" }]\n', 'key "flows.0.to": is missing; add it'),
    scenario("a flow that is a number", "hops = 1\nflows = [7]\n", 'key "flows.0"', "a table"),
    scenario("cbr without a rate", 'hops = 1\nflows = [{ from = "sta1", to = "sta2", traffic = "cbr" }]\n', 'needs "rate"'),
    scenario(
        "cbr of 5 bytes",
        'hops = 1\nflows = [{ from = "sta1", to = "sta2", traffic = "cbr", rate = 1000, bytes = 5 }]\n',
        'key "flows.0.bytes": 5 is out of range; give at least 29',
    ),
    scenario(
        "cbr at 1e-300 bit/s",
        'hops = 1\nflows = [{ from = "sta1", to = "sta2", traffic = "cbr", rate = 1e-300, bytes = 50 }]\n',
        'key "flows.0.rate": 1e-300 is out of range; give at least 1 bit/s',
    ),
    scenario("a start of -1", 'hops = 1\nflows = [{ from = "sta1", to = "sta2", start = -1 }]\n', "give at least 0 s"),
    scenario(
        "an event at -1", 'hops = 1\nevents = [{ at = -1, power = "sta1", on = false }]\n', 'key "events.0.at"', "at least 0 s"
    ),
    scenario("an event of nobody", 'hops = 1\nevents = [{ at = 1, power = "sta7", on = false }]\n', '"sta7"'),
    scenario("an event of nothing", "hops = 1\nevents = [{ at = 1 }]\n", 'key "events.0"', "add one of power, link, move, cut"),
    scenario("an unknown topology", 'topology = "ring"\n', 'key "topology": "ring" is not known; use one of'),
    scenario("a grid without rows", 'topology = "grid"\ncolumns = 3\n', "rows"),
    scenario("positions of one number", 'topology = "positions"\npositions = [[1]]\n', 'key "positions'),
    scenario("positions at nan", 'topology = "positions"\npositions = [[nan, 0], [1, 1]]\n', 'key "positions.0', "finite number"),
    scenario(
        "a station named by a path",
        'topology = "positions"\npositions = [{ name = "../../etc", at = [0, 0] }, { at = [1, 1] }]\n',
        'key "positions"',
        "../../etc",
    ),
    scenario(
        "a station named with a line break",
        'topology = "positions"\npositions = [{ name = "a\\nb", at = [0, 0] }, { at = [1, 1] }]\n',
        'key "positions"',
        r"a\nb",
    ),
    scenario("a host of a long name", f'hops = 1\nwires = [{{ station = "sta1", host = "{"h" * 300}" }}]\n', "is no host name"),
    scenario("a wire's delay -1", 'hops = 1\nwires = [{ station = "sta1", host = "h", delay = -1 }]\n', "give at least 0 s"),
    scenario("an unknown routing", 'hops = 1\nrouting = "rip"\n', 'key "routing": "rip" is not known; use one of', "aodv"),
    scenario(
        "a routing option nobody has",
        'hops = 1\nrouting = { protocol = "aodv", helo = 1 }\n',
        'key "routing.helo": unknown key',
    ),
    scenario("propagation without its sigma", 'hops = 1\npropagation = "shadowing"\n', 'the model "shadowing" needs "sigma_db"'),
    scenario("an error rate of 2", "hops = 1\nlinks = [{ error_rate = 2 }]\n", "2 is out of range; give at most 1"),
    scenario("a value of 1 MB", f'hops = 1\ntopology = "{LONG}"\n', 'key "topology": "xxxx', "(1000000 characters)"),
    scenario("a key of 1 MB", f"hops = 1\n{LONG} = 1\n", "unknown key"),
    scenario("seeds -1", "hops = 1\nseeds = -1\n", 'key "seeds": -1 is out of range; give at least 1'),
    scenario("a replay of no file", 'hops = 1\nmobility = "no-such.csv"\n', 'key "mobility": there is no trace file'),
    scenario("a replay of /dev/zero", 'hops = 1\nmobility = { file = "/dev/zero" }\n', 'key "mobility": there is no trace file'),
    scenario(
        "a model without its speed",
        'topology = "random"\nnodes = 3\narea = [500, 500]\nmobility = "random-waypoint"\n',
        "speed",
    ),
]

RADIO_AND_TCP = [
    settings("an unknown radio", "radio=ns3", words=('--set: key "radio": "ns3" is no radio profile', "ns2-dsss-2m")),
    settings("a key of the radio", "mcs=3", words=('key "mcs": unknown key; as one of the radio it is radio_overrides.mcs',)),
    settings("a radio by its path", "radio=../../etc/passwd", words=('--set: key "radio": there is no file ',)),
    settings("a radio that is a number", "radio=7", words=('--set: key "radio": 7 is of the wrong type',)),
    settings("an unknown radio key", "radio_overrides.cw_minn=3", words=('unknown key; did you mean "cw_min"?',)),
    settings(
        "a radio key that is a list",
        "radio_overrides.cw_min=[1]",
        words=('key "radio_overrides.cw_min": [1] is of the wrong type',),
    ),
    settings("tcp without a name", "tcp=", words=('--set: key "tcp"',)),
    settings("an unknown tcp", "tcp=tahooe", words=('key "tcp": this kernel has no "tahooe"', 'did you mean "tahoe"?')),
    settings("a tcp without its bracket", "tcp=elfn(newreno", words=('--set: key "tcp"',)),
    settings("a tcp with a parameter nobody has", "tcp=vegas(omega=1)", words=('--set: key "tcp"', "omega", "alpha")),
    settings("a tcp parameter that is nan", "tcp=vegas(alpha=nan)", words=('--set: key "tcp"', "nan")),
    settings("a tcp parameter that is -1", "tcp=vegas(alpha=-1)", words=('--set: key "tcp"', "-1")),
    settings("a probe without a unit", "tcp=elfn(newreno, probe=2)", words=("2 has no unit; write 2s or 2ms",)),
    settings("two layers", "tcp=elfn(tcpf(newreno))", words=('--set: key "tcp"',)),
    settings("a tcp 3000 deep", f"tcp={'elfn(' * DEEP}newreno{')' * DEEP}", words=('--set: key "tcp"',)),
    settings("a tcp of a path", "tcp=../../lib/tahoe", words=('--set: key "tcp"', "../../lib/tahoe")),
    settings("window 0", "window=0", words=('--set: key "window": 0 is out of range; give at least 1',)),
    settings("rto_min above rto_max", "rto_min=100", "rto_max=2", words=('--set: key "rto_min": 100 s is above rto_max = 2 s',)),
]

COMMAND_LINE = [
    settings("--set without a value", "hops", words=("--set hops: is not key=value",)),
    settings("--set without a key", "=3", words=("--set =3: is not key=value",)),
    settings("--set in no table", "hops.x=3", words=("--set hops.x=3: there is no table",)),
    settings("--set in no list", "flows.0.to=sta2", words=('flows.0.to=sta2: the scenario has no key "flows"',)),
    settings("--set 3000 deep", f"hops={'[' * DEEP}{']' * DEEP}", words=("--set", "nested too deep")),
    settings("--set of a line break", "hops=1\nwindow=2", words=("--set",)),
    settings("--set of a path", "mobility=../../../etc/passwd", words=('--set: key "mobility"', "/etc/passwd")),
    settings("--set of 10 MB", f"topology={LONG[:100_000]}", words=('--set: key "topology"', "(100000 characters)")),
    request("no such name", "run", "nowhere", words=("nowhere: there is no experiment or file of this name",)),
    request("a name of 5000 characters", "run", "n" * 5000, words=("(5000 characters): there is no experiment",)),
    request("a name with a line break", "run", "a\nb", words=(r"a\nb: there is no experiment",)),
    request("a path that leads out", "run", "../../../../etc/shadow.toml", words=("there is no such file",)),
    request("seeds 0", "run", "chain5", "--seeds", "0", words=('argument --seeds: "0" is not a whole number of at least 1',)),
    request("seeds nan", "run", "chain5", "--seeds", "nan", words=('argument --seeds: "nan" is not a whole number',)),
    request("seeds without end", "run", "chain5", "--seeds", HUGE, words=("seeds",)),
    request("a million seeds", "run", "chain5", "--seeds", "1000000", words=("1 cell x 1000000 seeds", "--seeds")),
    request("jobs -1", "run", "chain5", "--jobs", "-1", words=("argument --jobs",)),
    request("a folder without a name", "run", "chain5", "--out", "", words=("argument --out: give a folder's name",)),
    request("a folder that is a device", "run", "chain5", "--out", "/dev/null", words=("/dev/null", "--out")),
    request(
        "a variant nobody has", "run", "hv-fig1", "--variant", "x", words=("--variant x: ", "the variants are ns2, hv, hv-alt")
    ),
    request("a profile nobody has", "run", "chain5", "--profile", "old", words=("argument --profile: invalid choice: 'old'",)),
    request("an option nobody has", "run", "chain5", "--quik", words=("unrecognized arguments: --quik",)),
    request("a verb nobody has", "fly", words=("argument VERB: invalid choice: 'fly'",)),
    request("a verb of 100 kB", "v" * 100_000, words=("argument VERB: invalid choice",)),
    request("a report of nothing", "report", "nowhere", words=("nowhere: holds no experiment.json",)),
    request("a report of a device", "report", "/dev/null", words=("/dev/null: holds no experiment.json",)),
    request("a report of a long name", "report", "r" * 5000, words=("(5000 characters)", "holds no experiment.json")),
    request("a story of no run", "story", "nowhere", words=("nowhere: no such folder; name the directory of a run",), status=1),
    request("a plot of no run", "plot", "nowhere", words=("nowhere: no such folder; name the directory of a run",), status=1),
    request("a plot into no picture", "plot", "x", "--out", "plot.txt", words=("give one that ends in .png",)),
    request("a story of flow 0", "story", "x", "--flow", "0", words=("argument --flow",)),
    request("routes of a path", "routes", "../../etc", words=("../../etc: no such folder",), status=1),
    request("a map at nan", "map", "--at", "nan", words=('"nan" is not a time in seconds',)),
    request("a map with a range of -1", "map", "x.csv", "--range", "-1", words=("argument --range",)),
    request("a tcp of nobody", "tcp", "show", "tahooe", words=('"tahooe"', 'did you mean "tahoe"?')),
    request("a curve of nothing", "curve", "show", "nowhere", words=("nowhere: there is no experiment or file",)),
    request("a script of nothing", "script", "nowhere.py", words=("nowhere.py",)),
    request("checks nobody has", "validate", "--only", "nothing-such", words=("nothing-such",)),
    request("a kernel without a guest", "run", "chain5", "--kernel", "6.12", words=("--kernel 6.12: no run is in a guest",)),
]

EXPERIMENTS = [
    experiment("an axis without values", f"{CHAIN}[axes]\nhops = []\n", 'key "axes.hops": has no values'),
    experiment("an axis value twice", f"{CHAIN}[axes]\nhops = [1, 1]\n", 'key "axes.hops": 1 is listed twice'),
    experiment("an axis nobody has", f"{CHAIN}[axes]\nhopps = [1]\n", 'key "axes.hopps', "unknown key"),
    experiment("an axis that is no list", f"{CHAIN}[axes]\nhops = 3\n", 'key "axes.hops": 3 is of the wrong type; give a list'),
    experiment("an axis value out of range", f"{CHAIN}[axes]\nhops = [1, -1]\n", 'key "axes.hops.1": -1 is out of range'),
    experiment(
        "100,000 cells",
        f"{CHAIN}[axes]\nhops = {list(range(1, 101))}\nwindow = {list(range(1, 1001))}\n",
        'key "axes": 100 hops x 1000 window x 1 variants are 100000 cells, above 10000',
        "--set",
    ),
    experiment(
        "20,000 values of an axis",
        f"{CHAIN}[axes]\nwindow = {list(range(1, 20_001))}\n",
        'key "axes.window": has 20000 values, above the 10000 cells',
    ),
    experiment(
        "1000 axes",
        f"{CHAIN}[axes]\n" + "".join(f"a{number} = [1, 2]\n" for number in range(1000)),
        'key "axes": 2 a0 x 2 a1',
        "cells, above 10000",
    ),
    experiment(
        "10,000 values of an axis, one of them twice", f"{CHAIN}[axes]\nwindow = {[*range(1, 10_000), 1]}\n", "1 is listed twice"
    ),
    experiment("variants of one name", CHAIN + '[[variants]]\nname = "a"\n' * 2, 'two variants are named "a"'),
    experiment(
        "a variant named table.csv",
        f'{CHAIN}[[variants]]\nname = "table.csv"\n',
        '"table.csv" is a file or folder',
    ),
    experiment("a variant named void", f'{CHAIN}[[variants]]\nname = "void"\n', '"void" is a file or folder'),
    experiment("a variant of a path", f'{CHAIN}[[variants]]\nname = "../../x"\n', '"../../x" is not a name'),
    experiment("a variant with a line break", f'{CHAIN}[[variants]]\nname = "a\\nb"\n', "is not a name"),
    experiment("a figure nobody has", f'figure = "pie"\n{CHAIN}', 'key "figure": no such figure "pie"; there are'),
    experiment("a figure of a path", f'figure = "../../x"\n{CHAIN}', 'key "figure": there is no figure '),
    experiment("a table nobody has", f'ns2 = "no"\n{CHAIN}', 'key "ns2": no such table "no"'),
    experiment("an expectation of nobody", f'{CHAIN}[[expect.checks]]\nvariants = ["x"]\nwithin_percent = 1\n', 'no variant "x"'),
    experiment(
        "an expectation of nan", f"{CHAIN}[[expect.checks]]\nwithin_percent = nan\n", 'key "expect.checks.0.within_percent"'
    ),
    experiment("no scenario", "", "file.toml: line 1: the table [scenario] is missing; add it"),
    experiment("seeds of a size", f"{CHAIN}[full]\nseeds = 0\n", 'key "full.seeds": 0 is out of range'),
]

HEADER = "time_s,station,x_m,y_m,z_m,speed_mps\n"
TRACES = [
    trace("an empty trace", "", "file.csv"),
    trace("a trace of words", "the quick brown fox\n", "file.csv"),
    trace("a binary trace", bytes(range(256)) * 8, "file.csv"),
    trace("an ns-2 script of words", "hello\n", "file.tcl", suffix=".tcl"),
    trace("a GPX track that is no XML", "hello\n", "file.gpx", suffix=".gpx"),
    trace("a BonnMotion file of words", "a b c\n", "file.movements", suffix=".movements"),
    trace("a file of an ending nobody has", "x", "file.xyz", suffix=".xyz"),
    request("a trace of nothing", "trace", "nowhere.csv", words=("nowhere.csv",)),
    request("a trace of a folder", "trace", "/", words=("/",)),
    request("a model nobody has", "trace", "random-waypoimt", words=("random-waypoimt",)),
]

ATTACKS = SYNTAX + KEYS + RADIO_AND_TCP + COMMAND_LINE + EXPERIMENTS + TRACES
