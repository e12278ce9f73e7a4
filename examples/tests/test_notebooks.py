"""Every notebook, executed as a reader would: real runs, into a folder of its own."""

import csv
import re
from pathlib import Path
from typing import Any

import pytest

from testbed.programs import ROOT
from testbed.tests.running import needs_runs, nothing_left

WHY = "notebooks need nbclient and ipykernel: ./setup.sh --pages"
nbformat = pytest.importorskip("nbformat", reason=WHY)
nbclient = pytest.importorskip("nbclient", reason=WHY)
pytest.importorskip("ipykernel", reason=WHY)
from examples.notebooks import publish  # noqa: E402  (it needs what the lines above look for)

pytestmark = pytest.mark.pages
NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))
MAX_BYTES = 1_000_000  # of a notebook with its figures
FIGURES = {"path_break": 2, "sweep": 3, "vegas": 3}
SHOWN = {  # in the tables of a notebook
    "path_break": ("off, next hop of sta1 to sta4", "dropped by sta", "again, bytes"),
    "sweep": ("links.0.error_rate", "difference"),
    "vegas": ("retransmissions", "rtt_ms_mean"),
}


def executed(name: str, folder: Path, host: Any) -> Any:
    """The notebook with its outputs. A cell that fails because no run counts is void."""
    try:
        return publish.execute(ROOT / "examples" / "notebooks" / f"{name}.ipynb", folder)
    except nbclient.exceptions.CellExecutionError as problem:
        if any(row["verdict"] == "void" for row in table(folder)):
            host.void(f"{name}: {str(problem).splitlines()[-1]}")
        raise


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
def test_kept_outputs_are_those_of_all_cells_and_name_no_machine(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    if not any(cell.outputs for cell in cells):
        assert all(cell.execution_count is None for cell in cells)
        pytest.skip(f"{path.name} has no outputs yet: make notebooks (examples/README.md)")
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert not [output for cell in cells for output in cell.outputs if output.output_type == "error"]
    assert len(outputs(notebook, "image/png")) == FIGURES[path.stem]
    shown = "".join([*outputs(notebook, "text/plain"), *outputs(notebook, "text")])
    assert [word for word in SHOWN[path.stem] if word not in shown] == []
    assert not re.search(r"/(tmp|root|home|work)/", shown), "a path of the machine that made them"
    assert path.stat().st_size < MAX_BYTES


def test_publishing_takes_out_times_and_paths(tmp_path: Path) -> None:
    cell = nbformat.v4.new_code_cell("import os; print(os.getcwd() + '/results'); 6 * 7")
    path = tmp_path / "a.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), path)
    found = publish.without_machine(publish.execute(path, tmp_path), tmp_path)
    assert found.cells[0].outputs[0].text == "results\n" and found.cells[0].outputs[1].data["text/plain"] == "42"
    assert "execution" not in found.cells[0].metadata and "language_info" not in found.metadata
    assert not publish.verdicts(tmp_path)


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
