"""Execute the notebooks and keep their outputs in the committed files, for readers who run nothing: `make notebooks`.

Each is executed in a folder of its own, so that `results` beside the notebook stays. A notebook with a run that is not `valid`
is left as it was, and the exit status is 1: the machine should be idle. Times and paths of this machine are taken out, so that
another machine's outputs differ only in what was measured.
"""

import csv
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbclient
import nbformat

from testbed.programs import ROOT

PLACE = Path(__file__).parent
CELL_LIMIT_S = 900  # of a loaded machine; some 20 s of an idle one


def execute(path: Path, folder: Path) -> Any:
    """The notebook of this file with the outputs of its cells; its results are in `folder`. Raises CellExecutionError."""
    notebook = nbformat.read(path, as_version=4)
    resources = {"metadata": {"path": str(folder)}}
    client = nbclient.NotebookClient(notebook, kernel_name="python3", timeout=CELL_LIMIT_S, resources=resources)
    client.execute(env=os.environ | {"PYTHONPATH": str(ROOT)})
    return notebook


def without_machine(notebook: Any, folder: Path) -> Any:
    """The notebook without times of execution, versions of the kernel's Python and this folder's name."""
    notebook.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        for output in cell.get("outputs", []):
            if "text" in output:
                output.text = output.text.replace(f"{folder}/", "")
            for kind, text in output.get("data", {}).items():
                if isinstance(text, str) and kind.startswith("text/"):
                    output.data[kind] = text.replace(f"{folder}/", "")
    return notebook


def verdicts(folder: Path) -> list[str]:
    """The verdict of each run of the results in a folder."""
    tables = (table.read_text().splitlines() for table in folder.glob("results/*/table.csv"))
    return [row["verdict"] for lines in tables for row in csv.DictReader(lines)]


def publish(path: Path) -> bool:
    """Execute a notebook and write its outputs into its file, if all of its runs are valid."""
    with tempfile.TemporaryDirectory(prefix="manet-notebook-") as place:
        folder = Path(place)
        notebook = without_machine(execute(path, folder), folder)
        found = verdicts(folder)
    if set(found) != {"valid"}:
        print(f"{path.name}: {found.count('valid')} of {len(found)} runs are valid; left as it was", file=sys.stderr)
        return False
    nbformat.write(notebook, path)
    print(f"written   {path} ({len(found)} valid)")
    return True


if __name__ == "__main__":
    sys.exit(0 if all([publish(path) for path in sorted(PLACE.glob("*.ipynb"))]) else 1)
