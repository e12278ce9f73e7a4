"""Links, pipes and devices among the results: none is followed, opened or waited for, and no error quotes another file."""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.serve.tests.serving import SHORT, Served, serving

FIXTURE = Path(__file__).parents[3] / "analysis" / "tests" / "fixtures" / "two-flows"
SECRET = "root:$y$j9T$secret:20000:0:99999:7:::"
RUN = "/api/runs/1"
FOLDER: list[Path] = []  # of the server
FILES = ["air.csv", "run.json", "scenario.json", "medium.json", "verdict.json", "tcp.csv", "trace.csv", "events.csv",
         "captures/sta1.pcap", "captures", "datagrams", "traffic"]  # fmt: skip


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server whose run 1 has ended, with the results of a fixture's run."""
    folder = tmp_path_factory.mktemp("links") / "held"
    folder.mkdir()
    (folder.parent / "secret").write_text(f"{SECRET}\n")
    with serving(folder, held=True) as served:
        served.start(SHORT)
        served.delete("1")
        served.end_of("1")
        FOLDER.append(folder)
        yield served


@pytest.fixture
def results(server: Served) -> Iterator[Path]:
    path = FOLDER[-1] / "1" / "results"
    shutil.copytree(FIXTURE, path / "all" / "seed-1")
    (path / "experiment.json").write_text(json.dumps({"cells": [{"name": "all"}]}))
    (path / "table.csv").write_text("a\n1\n")
    yield path
    if path.is_symlink():
        path.unlink()
    else:
        shutil.rmtree(path)


def replace(path: Path, kind: str, target: Path) -> None:
    """Put a link to `target`, or a pipe, at the place of a file or folder."""
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    if kind == "link":
        path.symlink_to(target)
    else:
        path.parent.mkdir(exist_ok=True)
        os.mkfifo(path)


@pytest.mark.parametrize("kind", ["link", "pipe"])
@pytest.mark.parametrize("place", ["evil.png", "table.csv", "summary.csv", "experiment.json", "all/seed-1/air.csv"])
def test_a_file_of_the_results_is_not_served(server: Served, results: Path, place: str, kind: str) -> None:
    replace(results / place, kind, FOLDER[-1].parent / "secret")
    listed = [entry["path"] for entry in server.get(f"{RUN}/files")["files"]]
    assert place not in listed and server.get(f"{RUN}/figures") == {"figures": []}
    for path in (f"files/{place}", f"figures/{place}", "tables/runs", "tables/runs?format=csv", "tables/summary",
                 "tables/summary?format=csv", "cells/all/1/air"):  # fmt: skip
        answer = server.send("GET", f"{RUN}/{path}", None)
        assert SECRET.encode() not in answer.body and answer.status != 500, path
        if path in (f"files/{place}", f"figures/{place}"):
            assert answer.status == 404


@pytest.mark.parametrize("kind", ["link", "pipe"])
@pytest.mark.parametrize("name", FILES)
def test_a_file_of_a_run_is_neither_followed_nor_waited_for(server: Served, results: Path, name: str, kind: str) -> None:
    outside = FOLDER[-1].parent / "secret"
    if "." not in name:
        outside = FOLDER[-1].parent / f"outside-{name}"
        outside.mkdir(exist_ok=True)
        for file in ("sta1.pcap", "sta2.pcap", "flow1.csv", "flow1.json"):
            (outside / file).write_text(f"{SECRET}\n")
    replace(results / "all" / "seed-1" / name, kind, outside)
    for path in ("air?from=0&to=1000000000", "story?flow=flow1&t=0"):
        answer = server.send("GET", f"{RUN}/cells/all/1/{path}", None)
        assert SECRET.encode() not in answer.body and b"j9T" not in answer.body and answer.status != 500, path
        assert answer.status == 200 or len(answer.error.splitlines()) == 1


@pytest.mark.parametrize("place", [".", "all", "all/seed-1"])
def test_a_folder_that_is_a_link_is_not_entered(server: Served, results: Path, place: str) -> None:
    """Also the folder of results itself."""
    moved = FOLDER[-1].parent / "moved"
    shutil.rmtree(moved, ignore_errors=True)
    shutil.move(results / place if place != "." else results, moved)
    (results / place if place != "." else results).symlink_to(moved)
    air = server.send("GET", f"{RUN}/cells/all/1/air", None)
    assert air.status in (404, 422), air.body
    below = [entry["path"] for entry in server.get(f"{RUN}/files")["files"] if entry["path"].startswith("all/seed-1/")]
    assert below == []
    assert server.send("GET", f"{RUN}/files/all/seed-1/air.csv", None).status == 404
    assert server.send("GET", f"{RUN}/tables/runs?format=csv", None).status == (422 if place == "." else 200)


def test_a_table_is_served_from_the_file_that_was_checked(server: Served, results: Path) -> None:
    assert server.send("GET", f"{RUN}/tables/runs?format=csv", None).body == b"a\n1\n"
    answer = server.send("GET", f"{RUN}/files/all/seed-1/run.json", None)
    assert answer.body == (results / "all" / "seed-1" / "run.json").read_bytes()
    descriptors = Path(f"/proc/{server.process.pid}/fd")
    before = len(list(descriptors.iterdir()))
    for _ in range(20):
        server.send("GET", f"{RUN}/files/all/seed-1/run.json", None)
    assert len(list(descriptors.iterdir())) <= before + 3
