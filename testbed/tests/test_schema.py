"""`manet schema` against the programs: every definition of the project is valid by both, wrong ones are refused by both."""

import json
import subprocess
import tomllib

import jsonschema
import pytest

from scenarios import owned
from scenarios.definition import load_scenario
from scenarios.json_schema import of_scenario
from scenarios.propagation import TABLES
from scenarios.routing import OWN_DAEMONS
from testbed.__main__ import main
from testbed.campaigns.experiment import load as load_experiment
from testbed.campaigns.experiment_schema import of_experiment
from testbed.errors import UsageError
from testbed.programs import BUILT, ROOT

SCENARIO = jsonschema.Draft202012Validator(of_scenario())
EXPERIMENT = jsonschema.Draft202012Validator(of_experiment())
FOLDER = ROOT / "experiments"
EXPERIMENTS = sorted(FOLDER.glob("*.toml"))
SCENARIOS = [*sorted(FOLDER.glob("scenarios/*.toml")), ROOT / "formats" / "examples" / "scenario.toml"]
PRINTED_BY = {"medium": ["medium", "medium"], "radio": ["medium", "radio"], **{name: [name] for name in OWN_DAEMONS}}

# Each is refused by the schema and by `load_scenario`.
WRONG = {
    "unknown key": "hops = 2\nspaceing = 100",
    "unknown topology": 'topology = "doughnut"\nhops = 2',
    "no hops": "hops = 0",
    "too many hops": "hops = 2000",
    "half a hop": "hops = 1.5",
    "text for a count": 'hops = "two"',
    "a count of packets below 1": "hops = 2\nqueue = 0",
    "a count of packets above the medium's": "hops = 2\nqueue = 100001",
    "no distance": "hops = 2\nspacing = 0",
    "a distance in seconds": 'hops = 2\nspacing = "5 s"',
    "a distance without unit": 'hops = 2\nspacing = "200"',
    "an MTU below RFC 791's": "hops = 2\nmtu = 575",
    "an MTU above 802.11's": "hops = 2\nmtu = 2297",
    "a flag as text": 'hops = 2\nipv6 = "yes"',
    "a flag as number": "hops = 2\ncontrol_first = 1",
    "unknown radio": 'hops = 2\nradio = "ns2-dsss-3m"',
    "unknown key of a radio": "hops = 2\nradio_overrides = { slto_us = 20 }",
    "a power of nothing": "hops = 2\nradio_overrides = { tx_power_w = 0 }",
    "a gain above the medium's": "hops = 2\nradio_overrides = { antenna_gain_db = 101 }",
    "a slot in text": 'hops = 2\nradio_overrides = { slot_us = "20 us" }',
    "unknown propagation": 'hops = 2\npropagation = "three-ray"',
    "a deviation above the medium's": 'hops = 2\npropagation = { model = "shadowing", sigma_db = 31 }',
    "shadowing without deviation": 'hops = 2\npropagation = { model = "shadowing" }',
    "a key of another model": 'hops = 2\npropagation = { model = "disc", range_m = 9, sense_m = 9, exponent = 2 }',
    "a disc without sensing": 'hops = 2\npropagation = { model = "disc", range_m = 100 }',
    "an exponent of nothing": 'hops = 2\npropagation = { model = "log-distance", exponent = 0 }',
    "a loss above the medium's": 'hops = 1\n[propagation]\nmodel = "matrix"\n'
    'matrix = [{ from = "sta1", to = "sta2", loss_db = 301 }]',
    "unknown interference": 'hops = 2\ninterference = "none"',
    "an unknown event of a daemon": 'hops = 2\nrouting = "aodv"\nevents = [{at = 1, station = "sta1", daemon = "end"}]',
    "a command as one text": 'hops = 2\nevents = [{at = 1, station = "sta1", command = "iperf3 -s"}]',
    "an error rate above 1": "hops = 2\nlinks = [{ error_rate = 1.01 }]",
    "a link without a rate": 'hops = 2\nlinks = [{ from = "sta1" }]',
    "unknown unit of errors": 'hops = 2\nlinks = [{ error_rate = 0.1, unit = "bit" }]',
    "a wire slower than the medium's": 'hops = 2\nwires = [{ station = "sta1", host = "h1", rate = 999 }]',
    "a wire that waits too long": 'hops = 2\nwires = [{ station = "sta1", host = "h1", delay = 11 }]',
    "a wire without a host": 'hops = 2\nwires = [{ station = "sta1" }]',
    "unknown protocol": 'hops = 2\nrouting = "aodw"',
    "an option of another protocol": 'hops = 2\nrouting = { protocol = "dsr", hello_interval = 1 }',
    "a table without its protocol": 'hops = 2\nrouting = { link = "hello" }',
    "no diameter": 'hops = 2\nrouting = { protocol = "aodv", net_diameter = 0 }',
    "a diameter of more than a byte": 'hops = 2\nrouting = { protocol = "aodv", net_diameter = 256 }',
    "more retries than the daemon's": 'hops = 2\nrouting = { protocol = "aodv", rreq_retries = 11 }',
    "a period below the daemon's": 'hops = 2\nrouting = { protocol = "dsdv", period = 0.009 }',
    "a jitter of 1": 'hops = 2\nrouting = { protocol = "dsdv", jitter = 1 }',
    "more willing than always": 'hops = 2\nrouting = { protocol = "olsr", willingness = 8 }',
    "more coverage than a byte": 'hops = 2\nrouting = { protocol = "olsr", mpr_coverage = 256 }',
    "a route longer than 60 hops": 'hops = 2\nrouting = { protocol = "dsr", max_hops = 61 }',
    "a wait of no time": 'hops = 2\nrouting = { protocol = "adv", buffer_udp = 0 }',
    "unknown link": 'hops = 2\nrouting = { protocol = "dsr", link = "hello" }',
    "a day and more": 'hops = 2\nrouting = { protocol = "olsr", hna_hold = 86401 }',
    "unknown profile": 'hops = 2\nprofile = "future"',
    "no window": "hops = 2\nwindow = 0",
    "a window above TCP's": "hops = 2\nwindow = 32768",
    "no duration": "hops = 2\nduration = 0",
    "a movement's unknown option": 'hops = 2\nmobility = { model = "random-walk", speeed = 5 }',
    "a share above 1": 'hops = 2\nmobility = { model = "gauss-markov", memory = 1.1 }',
    "a flow without an end": 'hops = 2\nflows = [{ from = "sta1" }]',
    "a transfer of nothing": 'hops = 1\nflows = [{ from = "sta1", to = "sta2", traffic = "transfer", size = 0 }]',
    "a command as text": 'hops = 1\nflows = [{ from = "sta1", to = "sta2", traffic = "command", command = "ping" }]',
    "a port of more than two bytes": 'hops = 1\nflows = [{ from = "sta1", to = "sta2", traffic = "command", '
    'command = ["true"], server = ["nc"], ready_port = 65536 }]',
    "a negative variance": 'hops = 2\nflows = [{ from = "sta1", to = "sta2", traffic = "vbr", variance = -1 }]',
    "an unknown preset": 'hops = 2\nflows = [{ from = "sta1", to = "sta2", traffic = "vbr", preset = "video" }]',
    "an event without time": 'hops = 2\nevents = [{ power = "sta1", on = false }]',
    "unknown mode": 'hops = 2\nstations = "hwsim"\nhwsim = { mode = "ap" }',
    "a key beside the table": "seeds = 2\n[scenario]\nhops = 2",
}
# What the schema cannot refuse: why, and the scenario.
ONLY_THE_PROGRAM = {
    'a "chain" needs hops or nodes: an experiment may have them as an axis': "spacing = 100",
    "which keys fit a topology": "hops = 2\nrows = 2",
    "names of stations follow from the topology": 'hops = 2\nflows = [{ from = "sta1", to = "sta9" }]',
    "two keys that contradict each other": "hops = 2\nrto_min = 2\nrto_max = 1",
    "hold times and intervals of olsr": 'hops = 2\nrouting = { protocol = "olsr", hello_interval = 6 }',
    "the limits of a quantity in text": 'hops = 2\nduration = "1 us"',
    "the text of a TCP is a language of its own": 'hops = 2\ntcp = "vegas(alpa=2)"',
    "whether a movement's file is there": 'hops = 2\nmobility = "nowhere.csv"',
    "a variance that no distribution has": 'hops = 2\nflows = [{ from = "sta1", to = "sta2", traffic = "vbr", variance = 1e6 }]',
    "whether a file of sizes is there": "hops = 2\n"
    'flows = [{ from = "sta1", to = "sta2", traffic = "vbr", interval = 1, sizes = "x" }]',
    "the keys that a kind of event or flow needs": 'hops = 2\nflows = [{ from = "sta1", to = "sta2", traffic = "cbr" }]',
    "the fields of a command's words": 'hops = 1\nflows = [{ from = "sta1", to = "sta2", traffic = "command", '
    'command = ["ping", "{targt}"] }]',
}


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_every_scenario_of_the_project_is_valid(path):
    SCENARIO.validate(tomllib.loads(path.read_text()))
    load_experiment(path)


@pytest.mark.parametrize("path", EXPERIMENTS, ids=lambda path: path.stem)
def test_every_experiment_of_the_project_is_valid(path):
    EXPERIMENT.validate(tomllib.loads(path.read_text()))


@pytest.mark.parametrize("path", EXPERIMENTS, ids=lambda path: path.stem)
def test_a_misspelt_key_of_an_experiment_is_found(path):
    raw = tomllib.loads(path.read_text())
    for table in (raw, raw.setdefault("scenario", {}), raw.setdefault("quick", {})):
        table["spaceing"] = 1
        assert not EXPERIMENT.is_valid(raw)
        del table["spaceing"]


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_scenario_is_refused_by_schema_and_program(tmp_path, case):
    path = tmp_path / "x.toml"
    path.write_text(WRONG[case])
    assert not SCENARIO.is_valid(tomllib.loads(WRONG[case]))
    with pytest.raises(UsageError):
        load_scenario(path)


@pytest.mark.parametrize("case", ONLY_THE_PROGRAM)
def test_errors_beyond_the_schema_are_refused_by_the_program(tmp_path, case):
    path = tmp_path / "x.toml"
    path.write_text(ONLY_THE_PROGRAM[case])
    assert SCENARIO.is_valid(tomllib.loads(ONLY_THE_PROGRAM[case])), "move it to WRONG"
    with pytest.raises(UsageError):
        load_scenario(path)


@pytest.mark.parametrize(
    "text",
    [
        'hops = 2\nspacing = "0.2 km"\nduration = "2 min"',
        'hops = 2.0\nqueue = 1e2\nrouting = { protocol = "aodv", hello_interval = "500 ms" }',
        'hops = 2\nwires = [{ station = "sta1", host = "h1", rate = "10 Mbit/s", delay = "5 ms" }]',
        'topology = "positions"\npositions = [[0, 0], { name = "gw1", at = [100, 0, 5] }]',
        'hops = 2\npropagation = { model = "log-distance", reference_m = "1 m" }\nrouting = "dsr-ns2"',
        'hops = 2\nradio_overrides = { data_rate_bps = 1e6, capture_db = 10 }',
        'topology = "random"\nnodes = 4\narea = [500, 500]\nmobility = { model = "random-walk", speed = "36 km/h" }',
        'hops = 2\nrouting = "aodv"\n[[events]]\nat = "1 s"\nstation = "sta1"\ncommand = ["ping", "{sta2}"]\nname = "ping"\n'
        '[[events]]\nat = 2\ncommand = "kill"\nname = "ping"\n[[events]]\nat = 3\nstation = "sta1"\ndaemon = "restart"',
    ],
)  # fmt: skip
def test_a_valid_scenario_is_accepted_by_schema_and_program(tmp_path, text):
    path = tmp_path / "x.toml"
    path.write_text(text)
    SCENARIO.validate(tomllib.loads(text))
    load_scenario(path)


def test_a_flow_may_name_a_traffic_kind_of_the_users_own(tmp_path):
    (tmp_path / "burst.toml").write_text(
        'about = "Bursts."\ncommand = ["true", "{count}"]\n[keys.count]\nabout = "Packets."\ndefault = 5\n'
    )
    own = 'hops = 2\nflows = [{ from = "sta1", to = "sta2", traffic = "./burst.toml", count = 7 }]'
    path = tmp_path / "x.toml"
    path.write_text(own)
    SCENARIO.validate(tomllib.loads(own))
    assert load_scenario(path).flows[0].traffic == "command"
    for wrong in (own.replace("./burst.toml", "burst"), own.replace("./burst.toml", "bulk"), own.replace(', to = "sta2"', "")):
        assert not SCENARIO.is_valid(tomllib.loads(wrong))


def test_the_command_prints_the_schema_for_editors(capsys):
    assert main(["schema"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed == of_scenario()
    jsonschema.Draft202012Validator.check_schema(printed)
    spacing = printed["properties"]["spacing"]
    sentence, _, limits = spacing["description"].partition(" m. ")
    assert sentence == "Distance between neighbours of `chain`, `grid` and `cross`; default: 200"
    assert limits == "Distance in m, more than 0, at most 1e+07; as text with a unit: m, km, cm."
    hello = printed["$defs"]["olsr"]["properties"]["hello_interval"]
    assert (hello["default"], hello["anyOf"][0]) == (2.0, {"type": "number", "minimum": 0.01, "maximum": 86400})
    assert main(["schema", "experiment"]) == 0
    assert json.loads(capsys.readouterr().out) == of_experiment()


@pytest.mark.parametrize("name", sorted(path.stem for path in owned.FOLDER.glob("*.json")))
def test_the_generated_files_equal_the_output_of_the_programs(name):
    program, *of = PRINTED_BY[name]
    path = BUILT.medium if program == "medium" else BUILT.daemon(program)
    if not path.exists():
        pytest.skip(f"{path} is not built: formats/schema/{name}.json is NOT compared; run ./setup.sh")
    printed = subprocess.run([path, "schema", *of], capture_output=True, text=True, check=True).stdout
    assert (owned.FOLDER / f"{name}.json").read_text() == printed, "run make schema"


def test_every_program_has_its_generated_file():
    assert sorted(PRINTED_BY) == sorted(path.stem for path in owned.FOLDER.glob("*.json"))


def test_the_contract_names_every_propagation_model_and_its_keys():
    contract = (ROOT / "formats" / "medium.md").read_text()
    row = next(line for line in contract.splitlines() if line.startswith("| `propagation.model` |"))
    names = {name for model, table in TABLES.items() for name in (model, *table["properties"])} - {"model"}
    assert len(names) > 10
    assert [name for name in sorted(names) if f"`{name}`" not in row] == []


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("verdict", {"late_ms": 5}),
        ("verdict", {"late_us": -1}),
        ("verdict", {"void_late_share": 1.1}),
        ("verdict", {"suspect_stall_ms": "150"}),
        ("outputs", {"air": "air.csv"}),
        ("outputs", {"air_log": 1}),
    ],
)
def test_thresholds_and_outputs_of_the_medium_have_types_and_limits(key, value):
    example = json.loads((ROOT / "formats" / "examples" / "medium.json").read_text())
    schema = jsonschema.Draft202012Validator(owned.schema("medium"))
    schema.validate(example | {"verdict": {"late_us": 7, "void_late_share": 1}})
    assert not schema.is_valid(example | {key: value})


@pytest.mark.parametrize("routing", ["./my-daemon.toml", "daemons/mine", {"protocol": "./my-daemon.toml", "period": 2}])
def test_the_path_of_a_description_is_a_routing(routing):
    assert list(SCENARIO.iter_errors({"hops": 2, "routing": routing})) == []
