"""Values of Python as those of a TOML file."""

import json
import re
from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import Any

from manet_testbed.errors import WrongScenario
from scenarios.document import Document
from testbed.campaigns.declaration import NAME


def plain(value: Any) -> Any:
    """The value in the types of a TOML file: tables without the keys whose value is None, lists, texts, numbers; of NumPy's
    scalars their value. Others stay, and the check of the key refuses them."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items() if item is not None}
    if isinstance(value, list | tuple | range):
        return [plain(item) for item in value]
    if isinstance(value, PurePath):
        return str(value)
    if type(value).__module__ == "numpy" and hasattr(value, "tolist"):
        return plain(value.tolist())
    return value


def written(value: Any) -> str:
    """A plain value in the notation of TOML, as after `--set key=`."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(key)} = {written(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list):
        return f"[{', '.join(map(written, value))}]"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str | bool) else str(value)


def settings_of(values: Mapping[str, Any]) -> list[str]:
    """The options of the command line that replace these keys."""
    return [word for key, value in plain(values).items() for word in ("--set", f"{key}={written(value)}")]


def document_of(tables: dict[str, Any], name: str, folder: Path = Path()) -> Document:
    """The definition as a document of its own, to whose `folder` relative paths refer; its text is that of a TOML file."""
    path = folder / f"{checked_name(name)}.toml"
    return Document(path, name, tables, texts={path: text_of(tables)})


def text_of(tables: dict[str, Any]) -> str:
    """The tables as the text of a TOML file: a line for each key at its top."""
    return "".join(f"{_key(key)} = {written(value)}\n" for key, value in tables.items())


def checked_name(name: str) -> str:
    """The name of a scenario or experiment, which is a folder's too."""
    if re.fullmatch(NAME, name) is None:
        raise WrongScenario(f"name={name!r}: is no name; use letters, digits, '.', '-' and '_', beginning with a letter or digit")
    return name


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else json.dumps(key, ensure_ascii=False)
