"""Every notebook, executed as a reader would: real runs, into a folder of its own."""

import csv
import json
import os
from pathlib import Path
from typing import Any

import pytest

from testbed.programs import ROOT
from testbed.tests.running import needs_runs, nothing_left

WHY = "notebooks need nbclient and ipykernel: ./setup.sh --pages"
nbformat = pytest.importorskip("nbformat", reason=WHY)
nbclient = pytest.importorskip("nbclient", reason=WHY)
pytest.importorskip("ipykernel", reason=WHY)
pytestmark = pytest.mark.pages
NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))
CELL_LIMIT_S = 900  # of a loaded machine; some 20 s of an idle one
FIGURES = {"path_break": 2, "sweep": 3, "vegas": 3}
SHOWN = {  # in the tables of a notebook
    "path_break": ("off, next hop of sta1 to sta4", "dropped by sta", "again, bytes"),
    "sweep": ("links.0.error_rate", "difference"),
    "vegas": ("retransmissions", "rtt_ms_mean"),
}


def executed(name: str, folder: Path, host: Any) -> Any:
    """The notebook with its outputs. A cell that fails because no run counts is void."""
    notebook = nbformat.read(ROOT / "examples" / "notebooks" / f"{name}.ipynb", as_version=4)
    place = {"metadata": {"path": str(folder)}}
    client = nbclient.NotebookClient(notebook, kernel_name="python3", timeout=CELL_LIMIT_S, resources=place)
    try:
        client.execute(env=os.environ | {"PYTHONPATH": str(ROOT)})
    except nbclient.exceptions.CellExecutionError as problem:
        if any(row["verdict"] == "void" for row in table(folder)):
            host.void(f"{name}: {str(problem).splitlines()[-1]}")
        raise
    return notebook


def table(folder: Path) -> list[dict[str, str]]:
    """The rows of table.csv of the notebook's results."""
    found = list(folder.glob("results/*/table.csv"))
    return list(csv.DictReader(found[0].open())) if found else []


def outputs(notebook: Any, kind: str) -> list[Any]:
    """The outputs of this type, such as image/png, or `text` for printed lines."""
    every = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    if kind == "text":
        return [output.text for output in every if output.output_type == "stream"]
    return [output.data[kind] for output in every if kind in output.get("data", {})]


def test_the_list_of_figures_names_every_notebook() -> None:
    assert [path.stem for path in NOTEBOOKS] == sorted(FIGURES)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_without_outputs(path: Path) -> None:
    cells = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
    assert cells and all(cell["outputs"] == [] and cell["execution_count"] is None for cell in cells)


@pytest.mark.root
@pytest.mark.slow
@pytest.mark.alone("as many networks side by side as this machine supports")
@needs_runs
@pytest.mark.parametrize("name", FIGURES)
def test_a_notebook_answers_its_question_by_its_own_runs(name: str, tmp_path: Path, host: Any) -> None:
    notebook = executed(name, tmp_path, host)
    rows = table(tmp_path)
    assert rows and {row["status"] for row in rows} == {"complete"}
    assert len(outputs(notebook, "image/png")) == FIGURES[name]
    shown = "".join(outputs(notebook, "text/plain"))
    assert [word for word in SHOWN[name] if word not in shown] == []
    printed = "".join(outputs(notebook, "text"))
    assert f"[{len(rows)}/" in printed and f"({sum(row['verdict'] == 'valid' for row in rows)} valid" in printed
    if all(row["verdict"] != "void" for row in rows):  # each answer names seeds, profile and interval
        answers = [line for line in printed.splitlines() if "profile period" in line]
        assert answers and all("seeds" in line and any(mark in line for mark in ("[", "±", "interval")) for line in answers)
    (results,) = (tmp_path / "results").iterdir()
    assert all(nothing_left(results / row["run_dir"]) for row in rows)
