"""The five lessons (docs/teaching): each effect has the sign that the lesson states, and each link fits the recorded run."""

import json
import re
import subprocess
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import pytest

from analysis.captures.rundir import RunDirectory
from analysis.metrics.analyse import analyse_run
from analysis.metrics.radio_range import radio_of
from analysis.story.story import read_story
from record.files import read_object
from testbed.campaigns.experiment import load
from testbed.campaigns.library import find
from testbed.campaigns.request import Request
from testbed.programs import BUILT, ROOT
from testbed.runs.replayed import replay
from testbed.runs.run import run_scenario
from testbed.tests.running import needs_runs
from testbed.view.recorded import RecordedRun

LESSONS = ROOT / "examples" / "lessons"
PAGES = ROOT / "docs" / "teaching"
NAMES = sorted(path.stem for path in LESSONS.glob("*.toml"))
REPAIR_S = 29.3  # of examples/lessons/elfn.toml
VIEW = re.compile(r"^\./manet view /tmp/lessons/(\S+)$|^\| `#(t=\S+)` \|", re.MULTILINE)


def links():
    """(run, link) for each link of the lessons; a link belongs to the run of the command above it."""
    found = []
    for page in sorted(PAGES.glob("*.md")):
        run = ""
        for command, link in VIEW.findall(page.read_text()):
            run = command or run
            found += [(run, link)] if link else []
    return found


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """The folder with all recorded runs, unpacked as the lessons say."""
    folder = tmp_path_factory.mktemp("lessons")
    for bundle in sorted((LESSONS / "recorded").glob("*.zip")):
        with zipfile.ZipFile(bundle) as archive:
            archive.extractall(folder)
    return folder


def test_each_lesson_has_a_scenario_a_page_and_a_recorded_run():
    assert sorted(page.stem for page in PAGES.glob("*.md") if page.stem != "README") == NAMES
    assert {f"recorded/{path.name}" for path in (LESSONS / "recorded").iterdir()} == set(
        re.findall(r"recorded/[\w-]+\.zip", (LESSONS / "README.md").read_text().split("\n\n")[1])
    )
    assert len(links()) >= 12


@pytest.mark.parametrize("bundle", sorted((LESSONS / "recorded").glob("*.zip")), ids=lambda path: path.stem)
def test_a_recorded_run_replays_where_it_was_not_recorded(bundle, tmp_path):
    with zipfile.ZipFile(bundle) as archive:
        archive.extractall(tmp_path)
    (config,) = tmp_path.rglob("medium.json")
    assert replay(config.parent).line is None
    assert radio_of(read_object(config), config.parent) is not None


@pytest.mark.parametrize("bundle", sorted((LESSONS / "recorded").glob("*.zip")), ids=lambda path: path.stem)
def test_a_recorded_run_is_small_and_as_it_was_bundled(bundle):
    assert bundle.stat().st_size < 300_000
    argv = [sys.executable, "-P", "-m", "testbed", "bundle", "--verify", str(bundle)]
    done = subprocess.run(
        argv, capture_output=True, text=True, check=False, env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(("run", "link"), links())
def test_a_link_names_an_instant_a_frame_and_a_segment_of_the_recorded_run(recorded, run, link):
    view = RecordedRun(recorded / run)
    keys = dict(part.split("=") for part in link.split("&"))
    begin_s, end_s = (float(keys["t"]) + side * float(keys["span"]) / 2 for side in (-1, 1))
    start_ns = view.traffic_ns
    assert 0 <= float(keys["t"]) <= (view.end_ns - start_ns) / 1e9
    if "frame" in keys:
        frame = view.frame(int(keys["frame"]))
        assert begin_s <= (int(frame["t_ns"]) - start_ns) / 1e9 <= end_s
    if "segment" in keys:
        sent = view.story(keys["flow"], int(keys["segment"]), None)["transmissions"]
        assert any(begin_s <= one["sent_s"] <= end_s for one in sent)


@pytest.mark.parametrize(
    ("run", "row", "fate"),
    [
        ("hidden-terminals/hidden", 2, "hidden"),
        ("hidden-terminals/hidden", 15, "delivered"),
        ("hidden-terminals/hidden", 29, "hidden"),
        ("chain-capacity/hops4", 1173, "delivered"),
        ("chain-capacity/hops4", 223, "hidden"),
        ("chain-capacity/hops4", 1104, "hidden"),
        ("misread-loss/errors", 411, "error"),
        ("elfn-newreno/newreno", 1073, "weak"),
        ("rates/minstrel-ht", 14, "delivered"),
        ("rates/minstrel-ht", 449, "weak"),
        ("rates/minstrel-ht", 712, "retry-short"),
        ("rates/minstrel-ht", 954, "weak"),
    ],
)
def test_a_frame_of_a_link_has_the_fate_that_its_lesson_explains(recorded, run, row, fate):
    assert RecordedRun(recorded / "results" / run / "seed-1").frame(row)["fate"] == fate


# --- the effects, in short runs -------------------------------------------------------------------------------------


def run(host, tmp_path: Path, lesson: str, variant: str = "", **keys: object) -> Path:
    """The run of one cell of a lesson, made shorter; void where the host was too slow for it."""
    settings = tuple(f"{key.replace('__', '.')}={value}" for key, value in keys.items())
    request = Request(overrides=settings, variants=(variant,) if variant else ())
    cell = load(find(str(LESSONS / f"{lesson}.toml")), request).cells[0]
    directory = tmp_path / f"run{len(list(tmp_path.iterdir()))}"
    done = run_scenario(cell.scenario, 1, directory, programs=BUILT)
    assert done.status == "complete", done.error
    verdict = json.loads((directory / "verdict.json").read_text())
    if verdict["verdict"] == "void":
        host.void(f"{lesson}: {verdict}")
    return directory


def kbps(directory: Path, key: str) -> float:
    return sum(flow[key] for flow in analyse_run(directory)["flows"].values()) / 1e3


@pytest.mark.root
@needs_runs
def test_hidden_senders_lose_most_frames_and_rts_regains_them(host, tmp_path):
    """29, 98 and 100 % arrive (docs/teaching/hidden-terminals.md)."""
    rates = {
        variant: kbps(run(host, tmp_path, "hidden-terminals", variant, duration=3), "delivered_bps")
        for variant in ("hidden", "rts", "heard")
    }
    assert rates["hidden"] < 0.6 * rates["rts"] <= 0.6 * 1.01 * rates["heard"]


@pytest.mark.root
@needs_runs
def test_a_chain_of_three_hops_carries_a_third(host, tmp_path):
    one, three = (kbps(run(host, tmp_path, "chain-capacity", hops=[hops], duration=4), "acked_bps") for hops in (1, 3))
    assert one / 4 < three < one / 2.5


@pytest.mark.root
@needs_runs
def test_tcp_uses_a_part_of_a_link_with_errors_that_datagrams_use(host, tmp_path):
    """TCP 550, datagrams 981 kbit/s (docs/teaching/misread-loss.md)."""
    clean = kbps(run(host, tmp_path, "misread-loss", "clean", duration=10), "acked_bps")
    errors = kbps(run(host, tmp_path, "misread-loss", "errors", duration=10), "acked_bps")
    datagrams = kbps(run(host, tmp_path, "misread-loss", "datagrams", duration=10), "delivered_bps")
    assert errors < datagrams < clean


def test_frames_of_the_lesson_on_rates_have_the_rate_and_sinr_that_it_names(recorded):
    view = RecordedRun(recorded / "results" / "rates" / "minstrel-ht" / "seed-1")
    shown = {row: view.frame(row) for row in (449, 711, 954, 2771)}
    assert [(one["mode"], one["attempt"], one["sinr_db"]) for one in shown.values()] == [
        ("ht-mcs7-20", 1, 24.1), ("ht-mcs5-20", 7, 20.4), ("ht-mcs5-20", 1, 17.7), ("ht-mcs5-20", 1, 6.9),
    ]  # fmt: skip
    assert {one["mode"] for one in view.station("sta1", view.end_ns)["rates"]} == {f"ht-mcs{mcs}-20" for mcs in range(8)}


@pytest.mark.root
@needs_runs
def test_a_rate_control_reaches_the_end_of_the_road_and_a_fixed_rate_does_not(host, tmp_path):
    """3.9 Mbit/s of 4 and 0.87 (docs/teaching/rates.md)."""
    fixed, arf, minstrel = (
        kbps(run(host, tmp_path, "rates", variant), "delivered_bps") for variant in ("fixed", "arf", "minstrel-ht")
    )
    assert fixed < 0.3 * min(arf, minstrel) and min(arf, minstrel) > 0.95 * 4000


@pytest.mark.root
@pytest.mark.slow
@needs_runs
def test_elfn_resumes_sooner_after_the_repair(host, tmp_path):
    """Within one probe interval, 2 s, and AODV's search. NewReno is silent for several seconds, at the end of which it may be
    first by chance (docs/teaching/elfn.md). Both runs at once: most of their time nothing is sent."""
    waits, silences = {}, {}

    def variant_run(variant: str) -> Path:
        (tmp_path / variant).mkdir()
        return run(host, tmp_path / variant, "elfn", variant, duration=36)

    with ThreadPoolExecutor(2) as pool:
        directories = dict(zip(("newreno", "elfn"), pool.map(variant_run, ("newreno", "elfn")), strict=True))
    for variant, directory in directories.items():
        found = RunDirectory(directory)
        story = read_story(found, found.flows[0])
        sent = [story.seconds(one.journey.sent_ns) for one in story.transmissions if one.journey.fate == "received"]
        waits[variant] = min((at for at in sent if at > REPAIR_S), default=55) - REPAIR_S
        outage = sorted(story.seconds(one.journey.sent_ns) for one in story.transmissions)
        outage = [at for at in outage if 8 <= at <= REPAIR_S + waits[variant]]
        silences[variant] = max(later - at for at, later in pairwise(outage))
    assert waits["elfn"] < 3
    assert silences["elfn"] < 4 < silences["newreno"]
