"""`manet export` and `manet sql`: files, output and errors of the commands."""

import csv
import errno
import io
import json
import shutil
from collections import Counter

import pytest

from analysis.captures.rundir import RunDirectory
from analysis.store import stale
from record import manifest
from scenarios.definition import load_scenario
from testbed import __main__ as manet
from testbed.campaigns.report import Report
from testbed.commands.export import SUFFIXES
from testbed.tests.test_report import results  # noqa: F401  (a fixture)


@pytest.fixture
def folder(results):  # noqa: F811
    """The fixture's results with tables and store, and with stations that have positions, 200 m apart."""
    for path in results.glob("*/seed-*/medium.json"):
        medium = json.loads(path.read_text())
        for number, station in enumerate(medium["stations"]):
            station["position"] = [200.0 * number, 0.0, 0.0]
        path.write_text(json.dumps(medium))
    Report(results).make()
    return results


@pytest.mark.parametrize("form", ["csv", "flent", "perfetto", "netjson"])
def test_a_run_is_exported_beside_it(folder, capsys, form):
    assert manet.main(["export", str(folder / "all" / "seed-1"), "--format", form]) == 0
    out = folder / "all" / f"seed-1{SUFFIXES[form]}"
    assert out.stat().st_size > 0
    assert capsys.readouterr().out.splitlines()[-1] == f"written   {out}"


def test_the_air_is_exported_as_the_medium_recorded_it(folder, tmp_path_factory):
    (folder / "all" / "seed-1" / "air.pcapng").write_bytes(b"frames")
    out = tmp_path_factory.mktemp("out") / "air.pcapng"
    assert manet.main(["export", str(folder / "all" / "seed-1"), "--format", "pcapng", "--out", str(out)]) == 0
    assert out.read_bytes() == b"frames"


def test_the_network_of_a_run_has_the_links_of_its_air_log(folder, tmp_path):
    run, out = folder / "all" / "seed-1", tmp_path / "network.json"
    assert manet.main(["export", str(run), "--format", "netjson", "--out", str(out)]) == 0
    graph = json.loads(out.read_text())
    assert {"type", "protocol", "version", "metric", "nodes", "links"} <= graph.keys()  # NetJSON, 4: required
    assert graph["protocol"] == RunDirectory(run).scenario.protocol
    names = [node["id"] for node in graph["nodes"]]
    with (run / "air.csv").open(newline="") as file:
        sent = [row for row in csv.DictReader(file) if row["event"] == "tx" and row["frame"] == "data" and row["peer"] != "*"]
    frames = Counter((row["station"], row["peer"]) for row in sent)
    arrived = Counter((row["station"], row["peer"]) for row in sent if row["fate"] == "delivered")
    of_links = {(link["source"], link["target"]): link["properties"] for link in graph["links"]}
    assert frames and {ends: of["frames"] for ends, of in of_links.items() if "frames" in of} == {
        ends: count for ends, count in frames.items() if arrived[ends]
    }
    for ends, of in of_links.items():
        assert set(ends) <= set(names)
        assert "frames" not in of or of["delivery"] == pytest.approx(arrived[ends] / frames[ends], abs=1e-6)


def test_the_network_of_a_scenario_is_read_as_the_same_scenario(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "grid.toml").write_text('topology = "grid"\nrows = 2\ncolumns = 3\nspacing = 150\n')
    assert manet.main(["export", "grid.toml", "--format", "netjson"]) == 0
    assert capsys.readouterr().out == "written   grid.json\n"
    (tmp_path / "again.toml").write_text('topology = { file = "grid.json" }\n')
    grid, again = (load_scenario(tmp_path / f"{name}.toml") for name in ("grid", "again"))
    assert again.positions() == grid.positions()
    assert manet.main(["export", "again.toml", "--format", "netjson"]) == 0
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "grid.json").read_bytes()
    links = {(link["source"], link["target"]): link for link in json.loads((tmp_path / "grid.json").read_text())["links"]}
    # 150 m and, over the diagonal, 212 m are within 250 m; 300 m are not: 3 + 4 + 4 pairs, both directions
    assert len(links) == 22 and ("sta1", "sta3") not in links
    # two-ray ground, 150 m being beyond its crossover distance of 86 m: 24.5 dBm + 10 log10(1.5^4 / 150^4) dB
    assert links["sta1", "sta2"]["properties"]["rssi_dbm"] == -55.5


@pytest.mark.parametrize("routing", ["aodv", "olsr", "static", "none"])
def test_the_network_of_a_scenario_names_its_routing_protocol(tmp_path, monkeypatch, routing):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "two.toml").write_text(f'hops = 1\nrouting = "{routing}"\n')
    assert manet.main(["export", "two.toml", "--format", "netjson"]) == 0
    assert json.loads((tmp_path / "two.json").read_text())["protocol"] == routing


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["hv-fig1", "--format", "netjson"], "is an experiment of 30 scenarios"),
        (["nothing", "--format", "netjson"], "nothing"),
        (["chain5", "--format", "csv", "--at", "3"], "--at: is for netjson of a run"),
        (["{}", "--format", "netjson", "--at=-1e6"], "is before the medium's start"),
    ],
)
def test_a_wrong_export_of_a_network_is_one_line(folder, capsys, arguments, text):
    assert manet.main(["export", *(word.format(folder / "all" / "seed-1") for word in arguments)]) in (1, 2)
    said = capsys.readouterr().err
    assert text in said and len(said.splitlines()) == 1


def test_an_export_of_the_air_that_fails_leaves_the_old_file(folder, tmp_path, monkeypatch, capsys):
    (folder / "all" / "seed-1" / "air.pcapng").write_bytes(b"frames")
    out = tmp_path / "air.pcapng"
    out.write_bytes(b"old")

    def full(_source, target):
        target.write(b"fra")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("shutil.copyfileobj", full)
    assert manet.main(["export", str(folder / "all" / "seed-1"), "--format", "pcapng", "--out", str(out)]) == 1
    assert out.read_bytes() == b"old" and "air.pcapng" in capsys.readouterr().err


@pytest.mark.parametrize("form", sorted(SUFFIXES))
def test_a_run_with_a_cut_or_dropped_file_is_refused_and_the_file_named(folder, tmp_path, capsys, form):
    run = folder / "all" / "seed-1"
    cut, less = shutil.copytree(run, tmp_path / "x" / "cut"), shutil.copytree(run, tmp_path / "x" / "less")
    for one in (cut, less):
        manifest.write(one)
    (cut / "air.csv").write_bytes((cut / "air.csv").read_bytes()[:-20])
    manifest.drop(less, ["air.csv"])
    for one, text in ((cut, "air.csv has "), (less, f"`./manet run {less}` repeats the run with all")):
        assert manet.main(["export", str(one), "--format", form]) != 0
        said = capsys.readouterr().err
        assert len(said.splitlines()) == 1 and text in said
    assert not list((tmp_path / "x").glob("*.*"))


def test_the_csv_of_a_folder_has_a_row_for_each_run(folder, tmp_path_factory):
    out = tmp_path_factory.mktemp("out") / "runs.csv"
    assert manet.main(["export", str(folder), "--format", "csv", "--out", str(out)]) == 0
    rows = list(csv.DictReader(out.open()))
    assert [row["run_dir"] for row in rows] == ["all/seed-1", "all/void/seed-1-try-1"]
    assert manet.main(["export", str(folder), "--format", "csv", "--flows", "--out", str(out)]) == 0
    assert [row["flow"] for row in csv.DictReader(out.open())] == ["flow1", "flow2"]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["{}/all/seed-1", "--format", "flent", "--out", "x.json"], "give one that ends in .flent.gz"),
        (["{}/all/seed-1", "--format", "flent", "--out", "/proc/nowhere/x.flent.gz"], "there is no folder /proc/nowhere"),
        (["{}", "--format", "csv", "--out", "/proc/x.csv"], "/proc/x.csv: No such file or directory; correct the path or its"),
        (["{}/all/seed-1", "--format", "pcapng"], "air.pcapng: missing"),
        (["{}/all/seed-1", "--format", "csv", "--flows"], "--flows: only the CSV of a folder of results has rows per flow"),
        (["{}/all", "--format", "csv"], "no result store (runs.parquet); `./manet report DIR` writes"),
        (["/proc/nowhere", "--format", "perfetto"], "/proc/nowhere: no such folder"),
        (["{}", "--format", "xml"], "invalid choice: 'xml'"),
    ],
)
def test_wrong_use_is_one_line_with_the_remedy(folder, capsys, arguments, text):
    words = ["export", *(argument.format(folder) for argument in arguments)]
    try:
        status = manet.main(words)
    except SystemExit as end:
        status = end.code
    error = capsys.readouterr().err
    assert status in (1, 2) and text in error and len(error.splitlines()) == 1


def test_a_query_is_answered_as_table_csv_and_json(folder, capsys):
    query = "select seed, ending, aside from runs order by aside"
    assert manet.main(["sql", query, str(folder), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["seed"], row["aside"]) for row in rows] == [(1, False), (1, True)]
    assert manet.main(["sql", query, str(folder), "--csv"]) == 0
    assert next(csv.reader(io.StringIO(capsys.readouterr().out))) == ["seed", "ending", "aside"]
    assert manet.main(["sql", query, str(folder)]) == 0
    printed = capsys.readouterr().out
    assert "ending" in printed and "True" in printed


def test_json_is_strict(folder, capsys):
    assert manet.main(["sql", "select 'nan'::double a, '-inf'::double b, 1.5::double c", str(folder), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [{"a": None, "b": None, "c": 1.5}]


def test_a_folder_of_folders_is_queried_as_a_whole(folder, capsys, tmp_path_factory):
    above = tmp_path_factory.mktemp("above")
    (above / "campaign").mkdir()
    (above / "campaign" / "campaign.json").write_text("{}")
    for name in ("first", "campaign/second"):
        shutil.copytree(folder, above / name)
    assert manet.main(["sql", "select count(*) from runs", str(above), "--csv"]) == 0
    assert capsys.readouterr().out.splitlines()[1] == "4"


def test_of_a_large_store_some_runs_are_compared_with_it_and_their_number_is_said(folder, capsys, monkeypatch):
    for seed in (2, 3):
        run = folder / "all" / f"seed-{seed}"
        shutil.copytree(folder / "all" / "seed-1", run)
        record = json.loads((run / "run.json").read_text())
        (run / "run.json").write_text(json.dumps(record | {"seed": seed, "id": f"{seed:016x}"}))
        manifest.write(run)
    Report(folder).make()
    capsys.readouterr()
    monkeypatch.setattr(stale, "MAX_COMPARED", 2)
    for seed in (2, 3):
        (folder / "all" / f"seed-{seed}" / "air.csv").write_text("")
    assert manet.main(["sql", "select count(*) from runs where counts", str(folder), "--csv"]) == 1
    printed = capsys.readouterr()
    assert printed.out.splitlines()[1] == "3"
    few, changed = printed.err.splitlines()
    assert few == f"manet sql: {folder}: the files of 2 of 3 runs were compared; `./manet report {folder}` compares all"
    assert changed.startswith(f"manet sql: {folder}/all/seed-3: air.csv has 0 bytes")


def test_a_folder_by_several_paths_counts_once(folder, capsys, tmp_path, monkeypatch):
    (tmp_path / "link").symlink_to(folder)
    monkeypatch.chdir(folder.parent)
    paths = [str(folder), folder.name, str(tmp_path / "link"), str(tmp_path)]
    assert manet.main(["sql", "select count(*) from runs", *paths, "--csv"]) == 0
    assert capsys.readouterr().out.splitlines()[1] == "2"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["selct", "{}"], 'manet sql: Parser Error: syntax error at or near "selct"'),
        (["select 1", "/proc/nowhere"], "manet sql: /proc/nowhere: no result store (runs.parquet)"),
        (["copy runs to 'x.csv'", "{}"], "manet sql: the query is not one SELECT"),
        (["select '\udcff'", "{}"], "manet sql: the query is not UTF-8"),
        (["select 1 x, 2 x", "{}", "--json"], 'manet sql: --json: two columns are called "x"; name one with AS'),
    ],
)
def test_a_wrong_query_is_one_line(folder, capsys, arguments, text):
    assert manet.main(["sql", *(argument.format(folder) for argument in arguments)]) in (1, 2)
    error = capsys.readouterr().err
    assert error.startswith(text) and len(error.splitlines()) == 1
