"""The distributions of web sessions, and the exchanges drawn from them."""

import json
from pathlib import Path
from random import Random
from statistics import fmean, median

import pytest

from keys.errors import UsageError
from scenarios.definition import load_scenario
from scenarios.flows import Flow
from traffic.shared.distributions import Distribution
from traffic.shared.exchanges import REPLY_HEADER_BYTES, body_bytes, distributions_of, drawn, presets, written
from traffic.shared.kind import FlowPlan
from traffic.web import KIND

ENDS = {"from": "sta1", "to": "sta2", "traffic": "web"}
OWN = """
request_bytes = { value = 300 }
replies = { cdf = [[1, 0.5], [3, 1.0]], whole = true }
reply_bytes = { mean = 8000, variance = 4e8, min = 200, max = 1e6 }
think_s = { cdf = [[1.0, 0.0], [15.0, 1.0]] }
"""
SEED = "1 flow1"


def draws(number: int = 20_000, **keys: object) -> list[float]:
    rng = Random(1)
    distribution = Distribution.model_validate(keys)
    return [distribution.draw(rng) for _ in range(number)]


def test_a_value_is_drawn_always() -> None:
    assert set(draws(value=7, number=10)) == {7}


def test_a_cdf_is_inverted_between_its_points() -> None:
    """A quarter at 10, then uniform between 10 and 30: median 10 + 20 * (0.5 - 0.25) / 0.75 = 16.67."""
    values = draws(cdf=[[10, 0.25], [30, 1.0]])
    assert (min(values), max(values) <= 30) == (10, True)
    assert values.count(10) / len(values) == pytest.approx(0.25, abs=0.02)
    assert median(values) == pytest.approx(10 + 20 / 3, rel=0.03)


def test_whole_values_are_those_of_the_points() -> None:
    values = draws(cdf=[[1, 0.5], [4, 0.9], [9, 1.0]], whole=True)
    assert {value: round(values.count(value) / len(values), 1) for value in set(values)} == {1: 0.5, 4: 0.4, 9: 0.1}


def test_a_step_of_a_cdf_has_its_share() -> None:
    """The think times of 1995: all above 15 s are 15 s."""
    values = draws(cdf=[[1, 0.0], [15, 0.4], [15, 1.0]])
    assert values.count(15) / len(values) == pytest.approx(0.6, abs=0.02)


def test_a_log_normal_has_its_mean_and_variance() -> None:
    values = draws(mean=100, variance=2500, number=100_000)
    assert fmean(values) == pytest.approx(100, rel=0.01)
    assert fmean((value - 100) ** 2 for value in values) == pytest.approx(2500, rel=0.05)
    assert draws(mean=5, variance=0, number=3) == pytest.approx([5, 5, 5])


def test_minimum_and_maximum_cut() -> None:
    values = draws(mean=100, variance=10_000, min=50, max=120)
    assert (min(values), max(values)) == (50, 120)


@pytest.mark.parametrize("name", presets())
def test_a_preset_is_complete_and_names_its_source(name: str) -> None:
    distributions = distributions_of(name)
    assert distributions.source
    assert (distributions.http, distributions.connections) == {"1995": ("1.0", 4), "2020s": ("1.1", 6)}[name]
    assert max(draws(**presets()[name]["think_s"])) == 15


def test_the_replies_of_1995_are_those_of_mah() -> None:
    """INFOCOM 1997's traces in ns-2: median 2112 bytes (share 0.50244), 3/4 up to 4797; 51.2 % of the documents are one file."""
    sizes = draws(**presets()["1995"]["reply_bytes"], number=50_000)
    assert median(sizes) == pytest.approx(2112, rel=0.02)
    assert sorted(sizes)[37_500] == pytest.approx(4797, rel=0.03)
    counts = draws(**presets()["1995"]["replies"])
    assert counts.count(1) / len(counts) == pytest.approx(0.512, abs=0.01)


def test_the_median_page_of_the_2020s_weighs_2311_kb() -> None:
    """Web Almanac 2024, mobile; the sizes of objects are reconstructed from it."""
    cycles = drawn(distributions_of("2020s"), 2000, 1.0, SEED)["cycles"]
    weights = [sum(one["body_bytes"] + 204 for one in cycle["objects"]) for cycle in cycles]
    assert median(weights) == pytest.approx(2_311_000, rel=0.05)
    assert median(len(cycle["objects"]) for cycle in cycles) == pytest.approx(66, abs=4)


def test_seed_and_name_alone_decide_the_exchanges() -> None:
    distributions = distributions_of("1995")
    session = drawn(distributions, 20, 1.0, SEED)
    assert session == drawn(distributions, 20, 1.0, SEED)
    assert session != drawn(distributions, 20, 1.0, "1 flow2") and session != drawn(distributions, 20, 1.0, "2 flow1")


def test_a_longer_session_begins_with_a_shorter_one() -> None:
    distributions = distributions_of("1995")
    assert drawn(distributions, 30, 1.0, SEED)["cycles"][:20] == drawn(distributions, 20, 1.0, SEED)["cycles"]


def test_the_scale_changes_sizes_only() -> None:
    whole, tenth = (drawn(distributions_of("2020s"), 3, scale, SEED)["cycles"] for scale in (1.0, 0.1))
    assert [len(cycle["objects"]) for cycle in whole] == [len(cycle["objects"]) for cycle in tenth]
    assert [cycle["think_s"] for cycle in whole] == [cycle["think_s"] for cycle in tenth]
    pairs = [(a["body_bytes"], b["body_bytes"]) for x, y in zip(whole, tenth, strict=True)
             for a, b in zip(x["objects"], y["objects"], strict=True)]  # fmt: skip
    assert all(b == pytest.approx((a + 204) / 10 - 204, abs=6) for a, b in pairs if b)


@pytest.mark.parametrize("http", ["1.0", "1.1"])
def test_header_and_body_have_the_size_of_the_reply(http: str) -> None:
    header = REPLY_HEADER_BYTES[http]
    assert (body_bytes(0, http), body_bytes(header + 1, http)) == (0, 0)
    for size in (header + 2, 300, 2112, 1_636_039):
        body = body_bytes(size, http)
        # one digit more of Content-Length takes two bytes of a size: one of the body too
        assert size - (header + len(str(body)) + body) in (0, 1)


def test_the_file_of_the_exchanges_is_json(tmp_path: Path) -> None:
    session = drawn(distributions_of("1995"), 5, 1.0, SEED)
    written(session, tmp_path / "x.json")
    assert json.loads((tmp_path / "x.json").read_text()) == session


def test_the_kind_writes_the_exchanges_of_the_run(tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text("cycles = 3\n" + OWN)
    flow = Flow.model_validate({**ENDS, "distributions": str(own)})
    ends = {"source": "10.0.0.1", "target": "10.0.0.2", "port": 5201}
    plan = FlowPlan("flow1", flow.own_keys(), **ends, seconds=7.0, seed=1, report=tmp_path / "flow1.json", log=tmp_path)
    KIND.receiver(plan)
    session = json.loads((tmp_path / "flow1-exchanges.json").read_text())
    assert session == drawn(distributions_of(str(own)), 3, 1.0, SEED)
    assert (session["http"], session["connections"], len(session["cycles"])) == ("1.1", 6, 3)


def test_a_file_is_found_beside_the_scenario(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(OWN)
    path = tmp_path / "x.toml"
    path.write_text('hops = 1\nflows = [{ from = "sta1", to = "sta2", traffic = "web", distributions = "./own.toml" }]\n')
    assert load_scenario(path).flows[0].distributions == str(tmp_path / "own.toml")


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ('distributions = "1996"', ["flows.0.distributions", '"1996"', "1995"]),
        ('distributions = "none"', ["flows.0.distributions", '"1995", "2020s"', "with / or ending in .toml"]),
        ('distributions = "./gone.toml"', ["flows.0.distributions", "there is no file", "gone.toml"]),
        ("cycles = 0", ["flows.0.cycles"]),
        ("scale = 0", ["flows.0.scale"]),
        ("rate = 1000", ["flows.0.rate", 'has no "rate"']),
    ],
)
def test_wrong_keys_are_refused_by_name(tmp_path: Path, keys: str, words: list[str]) -> None:
    path = tmp_path / "x.toml"
    path.write_text(f'hops = 1\nflows = [{{ from = "sta1", to = "sta2", traffic = "web", {keys} }}]\n')
    with pytest.raises(UsageError) as problem:
        load_scenario(path)
    assert all(word in str(problem.value) for word in words), str(problem.value)
    assert "\n" not in str(problem.value)


@pytest.mark.parametrize("other", ["sta9", "h1"])
def test_a_server_that_is_no_station_or_host_is_refused(tmp_path: Path, other: str) -> None:
    path = tmp_path / "x.toml"
    path.write_text(f'hops = 1\nflows = [{{ from = "sta1", to = "{other}", traffic = "web" }}]\n')
    with pytest.raises(UsageError, match=rf"flows.0.to.*{other}"):
        load_scenario(path)


@pytest.mark.parametrize(
    ("text", "key", "words"),
    [
        ("reply_bytes = { mean = 10, variance = -3 }", "reply_bytes.variance", "-3 is negative"),
        ("reply_bytes = { mean = 10, variance = 3, min = 9, max = 8 }", "reply_bytes.min", "above max = 8"),
        ("reply_bytes = { mean = 0, variance = 3 }", "reply_bytes.mean", "not above 0"),
        ("reply_bytes = { mean = 10 }", "reply_bytes", "together"),
        ("reply_bytes = { value = 10, mean = 10, variance = 1 }", "reply_bytes", "exactly one"),
        ("reply_bytes = {}", "reply_bytes", "exactly one"),
        ("reply_bytes = { value = -1 }", "reply_bytes", "cannot be negative"),
        ("reply_bytes = { value = nan }", "reply_bytes.value", "finite"),
        ('reply_bytes = { value = "10" }', "reply_bytes.value", "number"),
        ("reply_bytes = 10", "reply_bytes", "10"),
        ("reply_bytes = { cdf = [[5, 0.5], [4, 1.0]] }", "reply_bytes.cdf", "does not rise at point 2: [4, 1] follows [5, 0.5]"),
        ("reply_bytes = { cdf = [[5, 0.5], [6, 0.4], [7, 1.0]] }", "reply_bytes.cdf", "does not rise at point 2"),
        ("reply_bytes = { cdf = [[5, 0.5], [6, 0.9]] }", "reply_bytes.cdf", "0.5 to 0.9"),
        ("reply_bytes = { cdf = [] }", "reply_bytes.cdf", "no points"),
        ("reply_bytes = { cdf = [[1, 0.5, 2], [2, 1.0]] }", "reply_bytes.cdf.0", "2"),
        ("reply_bytes = { value = 1, whole = true }", "reply_bytes.whole", "for a cdf"),
        ("", "reply_bytes", "is missing"),
        ("reply_bytes = { value = 1 }\nspeed = 3", "speed", "not known"),
        ('reply_bytes = { value = 1 }\nhttp = "2"', "http", "1.0"),
        ("reply_bytes = { value = 1 }\nconnections = 0", "connections", "correct it"),
        ("reply_bytes = {", "", "not TOML"),
    ],
)
def test_wrong_distributions_are_refused_with_file_and_key(tmp_path: Path, text: str, key: str, words: str) -> None:
    own = tmp_path / "own.toml"
    own.write_text("\n".join(line for line in OWN.splitlines() if not line.startswith("reply_bytes")) + f"\n{text}\n")
    path = tmp_path / "x.toml"
    path.write_text('hops = 1\nflows = [{ from = "sta1", to = "sta2", traffic = "web", distributions = "own.toml" }]\n')
    with pytest.raises(UsageError) as problem:
        load_scenario(path)
    message = str(problem.value)
    assert str(own) in message and words in message and "\n" not in message, message
    assert f'key "{key}"' in message or not key, message
