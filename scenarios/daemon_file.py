"""From the key `routing` of a scenario to the file that describes a daemon of the user's own.

`routing = "./my-daemon.toml"` is a path, relative to the file that has the key (after `--set` first to the current folder).
`routing = "my-daemon"`, none of the testbed's names, is `my-daemon.toml` there, or in a folder of MANET_ROUTING_PATH.
"""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from keys.errors import UsageError, shortened
from scenarios import toml_file
from scenarios.daemon_description import Description, in_folder
from scenarios.keys import Keys, is_path
from scenarios.refusal import validated
from scenarios.routing import NAME, PRESETS, PROTOCOLS

SEARCH_PATH = "MANET_ROUTING_PATH"
ENDING = ".toml"


def with_description(keys: Keys) -> Keys:
    """The keys with the description that `routing` names in its place; UsageError for a missing or wrong file. Keys without one
    are returned as they are, as is a name that leads to no file."""
    routing = keys.values.get("routing") if isinstance(keys.values, dict) else None
    table = {"protocol": routing} if isinstance(routing, str) else routing
    name = table.get("protocol") if isinstance(table, dict) else None
    if not isinstance(table, dict) or not isinstance(name, str) or "description" in table or name in {*PROTOCOLS, *PRESETS}:
        return keys
    path = _found(keys, name)
    if path is None:
        return keys
    if not _is_name(path.stem):
        rule = "at most 32 letters, digits, '-' and '_', and none of the testbed's own names"
        raise keys.refusal(("routing",), f'"{shortened(path.stem)}" is no name for a daemon; rename the file: {rule}')
    description = read(path, keys.document.within)
    return replace(keys, values={**keys.values, "routing": {**table, "protocol": path.stem, "description": description}})


def read(path: Path, within: Path | None = None) -> dict[str, Any]:
    """The checked tables of a description, with full paths; `within`: as of Document. UsageError names file, line and key."""
    document = toml_file.read(path, toml_file.short_name(path), within=within)
    tables = in_folder(document.tables, path.resolve().parent)
    validated(Description, tables, document.refusal)
    return tables


def own_descriptions() -> dict[str, Description | UsageError]:
    """The descriptions in the folders of MANET_ROUTING_PATH by name, the first of each, or the error of a wrong one. Other TOML
    files there are left out."""
    descriptions: dict[str, Description | UsageError] = {}
    for path in (path for folder in _search_folders() for path in sorted(folder.glob(f"*{ENDING}"))):
        if path.stem in descriptions or not _is_name(path.stem):
            continue
        try:
            document = toml_file.read(path, toml_file.short_name(path))
            if Description.is_like(document.tables):
                descriptions[path.stem] = Description.model_validate(read(path))
        except UsageError as problem:
            descriptions[path.stem] = problem
    return descriptions


def _is_name(stem: str) -> bool:
    return NAME.fullmatch(stem) is not None and stem not in {*PROTOCOLS, *PRESETS}


def _found(keys: Keys, name: str) -> Path | None:
    """The file of a path or name; UsageError for the path of no file."""
    if is_path(name, ENDING):
        return keys.file_of(("routing",), name, "a daemon's description (TOML)", "protocol")
    if NAME.fullmatch(name) is None:
        return None
    written = f"{name}{ENDING}"
    paths, _remedy = keys.paths_of(("routing",), written, "protocol")
    return toml_file.first([*paths, *(folder / written for folder in _search_folders())])


def _search_folders() -> list[Path]:
    return [Path(folder) for folder in os.environ.get(SEARCH_PATH, "").split(":") if folder]
