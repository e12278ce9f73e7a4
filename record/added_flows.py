"""flows.json of a run: the flows that a view started while the run was under way (formats/results.md)."""

from pathlib import Path
from typing import Any

from record.errors import RunFileError
from record.files import read_json

ADDED_FLOWS = "flows.json"
ADDED_FORMAT = "manet-added-flows/1"


def added_flows(directory: Path) -> list[dict[str, Any]]:
    """The added flows with the keys of scenario.json; none without the file. Raises RunFileError."""
    path = directory / ADDED_FLOWS
    try:
        content = read_json(path)
    except FileNotFoundError:
        return []
    if not isinstance(content, dict) or content.get("format") != ADDED_FORMAT or not isinstance(content.get("flows"), list):
        raise RunFileError(f'{path}: this version reads the format "{ADDED_FORMAT}"')
    return content["flows"]
