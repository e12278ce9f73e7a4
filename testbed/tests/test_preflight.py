"""The checks of all cells of an experiment before the first run: by the medium, the routing daemons, the kernel, and
whether static routes have a path for each flow."""

from collections import Counter
from pathlib import Path

import pytest

from scenarios.scenario import Scenario
from testbed import __main__ as manet
from testbed.errors import UsageError
from testbed.programs import BUILT, Programs
from testbed.runs import preflight
from testbed.stages import kernel_tcp


@pytest.fixture
def refused(monkeypatch, tmp_path, capsys):
    """The one line by which `manet run` refuses a file, with nothing started and nothing written."""

    def started(*_arguments, **_options):
        raise AssertionError("a run was started")

    monkeypatch.setattr("testbed.host.requirements.require_for_runs", lambda *_arguments, **_options: None)
    monkeypatch.setattr("testbed.runs.run.run_scenario", started)
    monkeypatch.chdir(tmp_path)

    def run(text, *arguments):
        Path("e.toml").write_text(text)
        assert manet.main(["run", "e.toml", *arguments, "--out", "out"]) == 2
        assert [path.name for path in tmp_path.iterdir()] == ["e.toml"]
        output = capsys.readouterr()
        assert (output.out, output.err.count("\n")) == ("", 1)
        return output.err.rstrip("\n")

    return run


@pytest.fixture
def question_count(monkeypatch):
    """The number of calls of each program."""
    count, ask = Counter(), preflight.refusal

    def counted(program, *question):
        count[program.name] += 1
        return ask(program, *question)

    monkeypatch.setattr(preflight, "refusal", counted)
    monkeypatch.setattr(preflight, "_checked_routing", set())
    return count


def of(**keys):
    return Scenario.model_validate({"hops": 2, **keys})


def test_a_cell_that_the_medium_refuses_is_refused_before_the_first_run(refused):
    text = 'question = "?"\n[scenario]\nhops = 1\n[axes]\n"radio_overrides.cw_min" = [31, 4095]\n'
    output = refused(text)
    assert output == 'manet run: e.toml: line 5: key "axes.radio_overrides.cw_min.1": 4095 is above cw_max 1023; give both'


@pytest.mark.parametrize(
    ("keys", "wanted"),
    [
        ({"radio_overrides": {"cw_min": 30}}, 'key "radio_overrides.cw_min": 30 is not 2^k - 1; give 15 or 31'),
        (
            {"radio": "dot11n-ht20", "access": "edca", "radio_overrides": {"access_categories": {"voice": {"cw_min": 4}}}},
            'key "radio_overrides.access_categories.voice.cw_min": 4 is not 2^k - 1; give 3 or 7',
        ),
        ({"access": "edca"}, 'key "access": EDCA has the standard\'s rules, and rules.'),
        ({"radio": "dot11b-11m", "aggregation": True}, 'key "aggregation": dsss and ofdm have none; leave it out'),
    ],
)
def test_the_scenario_is_blamed_for_what_it_changes_in_a_profile(keys, wanted):
    with pytest.raises(UsageError) as problem:
        preflight.check_medium(of(**keys), 1, BUILT)
    assert str(problem.value).startswith(f"scenario: {wanted}")


def test_measured_links_that_never_join_the_ends_of_a_flow_are_refused_before_the_start(tmp_path):
    file = tmp_path / "links.csv"

    def check(*links: str) -> None:
        rows = "".join(f"{number},{link}\n" for number, link in enumerate(links))
        file.write_text(f"# manet-links/1\ntime_s,from,to,delivery\n{rows}")
        scenario = of(propagation={"model": "trace", "file": str(file)})
        preflight.check_paths({"s": scenario}, [1], BUILT)

    check("sta1,sta2,1", "sta2,sta1,0.5", "sta2,sta3,1", "sta3,sta2,1")  # at different times: the run decides
    for missing in ("sta3,sta2,0", "sta3,sta2,", "sta3,sta1,1"):
        with pytest.raises(
            UsageError, match=rf'^s: key "flows.0": no links of {file} lead from sta1 to sta3 and back, at any time'
        ):
            check("sta1,sta2,1", "sta2,sta1,1", "sta2,sta3,1", missing)


def test_a_cell_that_its_daemon_refuses_is_named(question_count):
    good = of(routing="dsr")
    wrong = good.model_copy(update={"routing": good.routing.model_copy(update={"max_hops": 0})})  # past the checks of here
    with pytest.raises(UsageError, match=r'^e, cell b: key "routing": .*max_hops is 0; give 1 to 60$'):
        preflight.check_programs({"e, cell a": good, "e, cell b": wrong}, 1, BUILT)


def test_equal_queries_are_made_once(rights, question_count):
    cells = {f"{tcp} {window}": of(routing="aodv", tcp=tcp, window=window) for tcp in ("newreno", "vegas") for window in (4, 8)}
    preflight.check_programs(cells | {"other": of(routing="dsdv", mtu=1400)}, 1, BUILT)
    assert question_count == {"manet-medium": 1, "manet-aodv": 1, "manet-dsdv": 1}
    preflight.check_programs({"same": of(routing="aodv"), "other": of(routing="dsdv", mtu=1400)}, 2, BUILT)  # another run
    assert question_count == {"manet-medium": 2, "manet-aodv": 1, "manet-dsdv": 1}
    preflight.check_paths({name: of(tcp="vegas") for name in "abc"} | {"far": of(spacing=240)}, [1], BUILT)
    assert question_count["manet-medium"] == 2 + 2


@pytest.mark.parametrize(
    "change",
    [
        {"spacing": 100}, {"queue": 5}, {"radio": "hv-dsss-2m"}, {"duration": 99},
        {"area": [900, 900], "mobility": "random-walk", "speed": 3}, {"links": [{"from": "sta1", "error_rate": 0.1}]},
    ],
)  # fmt: skip
def test_a_different_input_of_the_medium_is_another_query(question_count, change):
    preflight.check_programs({"a": of(), "b": of(**change)}, 1, BUILT)
    assert question_count["manet-medium"] == 2


def test_a_chain_out_of_range_is_refused_before_anything_starts(refused):
    assert refused("hops = 2\nspacing = 251\n") == (
        'manet run: e: key "spacing": there is no path from sta1 to sta3 at the start positions; '
        'place the stations within range of each other, 250 m (key "spacing")'
    )


def test_a_cell_without_a_path_is_refused_before_the_first_run(refused):
    output = refused('question = "?"\n[scenario]\nhops = 2\n[axes]\nspacing = [200, 300]\n')
    assert output.startswith('manet run: e, cell spacing300: key "spacing": there is no path from sta1 to sta3')


def test_a_path_leads_over_the_gateway_to_a_wired_host():
    positions, wires = [[0, 0], [200, 0], [900, 0]], [{"station": "sta2", "host": "server"}]
    flows = [{"from": "sta1", "to": "server"}, {"from": "server", "to": "sta3"}]
    scenario = Scenario.model_validate({"topology": "positions", "positions": positions, "wires": wires, "flows": flows})
    with pytest.raises(UsageError, match=r'^x: key "flows.1": there is no path from server to sta3 .*\(key "positions"\)'):
        preflight.check_paths({"x": scenario}, [1], BUILT)
    preflight.check_paths({"x": scenario.model_copy(update={"flows": scenario.flows[:1]})}, [1], BUILT)


def test_the_losses_of_a_matrix_are_queried_from_the_medium():
    near, far = ([{"from": "sta1", "to": "sta2", "loss_db": loss_db}] for loss_db in (60, 200))
    preflight.check_paths({"x": of(hops=1, propagation={"model": "matrix", "matrix": near})}, [1], BUILT)
    with pytest.raises(UsageError, match=r'there is no path from sta1 to sta2 .*\(key "propagation.matrix"\)'):
        preflight.check_paths({"x": of(hops=1, propagation={"model": "matrix", "matrix": far})}, [1], BUILT)


def test_links_that_depend_on_the_seed_are_queried_for_a_single_seed():
    drawn = Scenario.model_validate({"topology": "random", "nodes": 2, "area": [50_000, 50_000]})
    with pytest.raises(UsageError, match=r'\(key "area"\)'):
        preflight.check_paths({"x": drawn}, [3], BUILT)
    preflight.check_paths({"x": drawn}, [1, 2], BUILT)


def test_with_several_rates_a_chain_is_as_long_as_the_lowest_usable_rate_reaches():
    """802.11g: 219 m at 54 Mbit/s; at 399 m the start of a frame is no longer sensed."""
    adapting: list[dict[str, object]] = [{"rate_control": "minstrel"}, {"stations": "hwsim", "hwsim": {"rates": "kernel"}}]
    for keys in adapting:
        preflight.check_paths({"x": of(radio="dot11g-54m", spacing=390, **keys)}, [1], BUILT)
    for keys in ({}, {"stations": "hwsim"}, {"rate_control": "minstrel", "radio_overrides": {"rules": {"thresholds": "one"}}}):
        with pytest.raises(UsageError, match="there is no path from sta1 to sta"):
            preflight.check_paths({"x": of(radio="dot11g-54m", spacing=225, **keys)}, [1], BUILT)
    with pytest.raises(UsageError, match="there is no path from sta1 to sta"):
        preflight.check_paths({"x": of(radio="dot11g-54m", spacing=405, **adapting[0])}, [1], BUILT)


def test_a_refusal_names_the_range_of_the_mode_in_use_and_a_rate_control_that_reaches_further():
    """dot11ac-vht80: MCS 7 needs -65 dBm, MCS 9 5.9 dB more, two streams 3 dB; from -76 dBm on the start of a frame is sensed.
    dot11b-11m: 11 Mbit/s need -82 dBm, broadcasts at 2 Mbit/s 4 dB less. dot11g-54m: 54 Mbit/s need -72 dBm, an RTS at 24 Mbit/s
    9 dB less."""

    def refusal(radio: str = "dot11ac-vht80", **keys: object) -> str:
        with pytest.raises(UsageError) as refused:
            preflight.check_paths({"x": of(radio=radio, hops=1, **keys)}, [1], BUILT)
        return str(refused.value).partition("of each other")[2]

    further = ', or set rate_control = "minstrel-ht", with which it is 409 m'
    assert refusal(spacing=120) == f', 115 m at its fixed rate (key "spacing"){further}'
    assert refusal(spacing=100, radio_overrides={"mcs": 9}) == f', 58 m at its fixed rate (key "spacing"){further}'
    assert refusal(spacing=270, radio_overrides={"mcs": 4}) == f', 264 m at its fixed rate (key "spacing"){further}'
    assert refusal(spacing=100, radio_overrides={"streams": 2}) == f', 81 m at its fixed rate (key "spacing"){further}'
    assert refusal(spacing=420, rate_control="minstrel-ht", radio_overrides={"mcs": 9}) == ', 409 m (key "spacing")'
    by_kernel = ', or set hwsim.rates = "kernel", with which it is 399 m'
    assert refusal("dot11g-54m", spacing=225, stations="hwsim") == f', 219 m at its fixed rate (key "spacing"){by_kernel}'
    further = ', or set rate_control = "minstrel-ht", with which it is 502 m'
    assert refusal("dot11b-11m", spacing=540) == f', 399 m at its fixed rate (key "spacing"){further}'
    for rate_control in ("minstrel-ht", "arf"):
        assert refusal("dot11b-11m", spacing=540, rate_control=rate_control) == ', 502 m (key "spacing")'
    at_6_mbps = {"radio_overrides": {"data_rate_bps": 6e6}}
    assert refusal("dot11g-54m", spacing=390, **at_6_mbps).startswith(', 377 m at its fixed rate (key "spacing")')
    near: list[dict[str, object]] = [
        {"spacing": 57, "radio_overrides": {"mcs": 9}}, {"spacing": 258, "radio_overrides": {"mcs": 4}},
        {"spacing": 400, "rate_control": "minstrel-ht"}, {"spacing": 400, "radio_overrides": {"mcs": 0}},
    ]  # fmt: skip
    for keys in near:
        preflight.check_paths({"x": of(radio="dot11ac-vht80", hops=1, **keys)}, [1], BUILT)
    preflight.check_paths({"x": of(radio="dot11b-11m", hops=1, spacing=495, rate_control="arf")}, [1], BUILT)
    preflight.check_paths({"x": of(radio="dot11g-54m", hops=1, spacing=370, **at_6_mbps)}, [1], BUILT)


def test_a_path_that_movement_or_a_daemon_may_bring_is_the_runs_own_matter():
    preflight.check_paths({"x": of(spacing=300, routing="aodv")}, [1], BUILT)
    moving = {"mobility": "random-walk", "speed": 9, "area": [900, 900]}
    preflight.check_paths({"x": of(spacing=300, **moving)}, [1], BUILT)


def test_an_rto_that_this_kernel_cannot_give_is_refused_before_anything_starts(as_root, refused, monkeypatch, tmp_path):
    monkeypatch.setattr(kernel_tcp, "RTO_MIN_FILE", tmp_path / "not there")
    assert refused("hops = 1\nrto_min = 1\n").startswith("manet run: rto_min = 1: this kernel takes at most 0.2 s")


def test_a_route_gives_any_rto(as_user, monkeypatch, tmp_path):
    monkeypatch.setattr(kernel_tcp, "RTO_MIN_FILE", tmp_path / "not there")
    preflight.check_machine([of(rto_min=1)], BUILT, "x")


def test_notes_about_runs_are_said_only_where_runs_follow(rights, refused, tmp_path, capsys):
    """The notes of a run without root, and of today's algorithm under the profile `period`."""
    (tmp_path / "out").write_text("")
    Path("e.toml").write_text('hops = 1\ntcp = "cubic"\n')
    assert manet.main(["run", "e.toml", "--out", "out"]) == 2
    assert capsys.readouterr().err == "manet run: out: File exists; give another folder with --out\n"
    (tmp_path / "out").unlink()
    with pytest.raises(AssertionError, match="a run was started"):
        manet.main(["run", "e.toml", "--out", "out"])
    notes = [line for line in capsys.readouterr().err.splitlines() if line.startswith("manet run: ")]
    assert ["without root" in line for line in notes] == ([True, False] if rights == "user" else [False])


def test_a_program_that_is_not_built_is_named(tmp_path):
    with pytest.raises(UsageError, match=r"manet-medium: not built; run ./setup.sh$"):
        preflight.check_programs({"x": of()}, 1, Programs(medium=tmp_path / "manet-medium"))


def test_a_daemon_that_guests_of_a_virtual_clock_would_miss_is_refused_before_the_first_run(refused, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    text = 'question = "?"\n[scenario]\nhops = 1\nclock = "virtual"\n[axes]\nrouting = ["aodv", "olsrd"]\n'
    assert refused(text).startswith('manet run: routing "olsrd": olsrd: not found; build it from')
