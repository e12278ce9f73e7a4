"""Values of Python as those of a TOML file."""

import re
from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import Any

from manet_testbed.errors import WrongScenario
from manet_testbed.lab.refusals import translated
from scenarios.document import Document
from scenarios.toml_text import file_text, value_text
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


def settings_of(values: Mapping[str, Any]) -> list[str]:
    """The options of the command line that replace these keys."""
    with translated(WrongScenario):
        return [word for key, value in plain(values).items() for word in ("--set", f"{key}={value_text(value, key)}")]


def document_of(tables: dict[str, Any], name: str, folder: Path = Path()) -> Document:
    """The definition as a document of its own, to whose `folder` relative paths refer; its text is that of a TOML file."""
    path = folder / f"{checked_name(name)}.toml"
    with translated(WrongScenario):
        return Document(path, name, tables, texts={path: file_text(tables)})


def checked_name(name: str) -> str:
    """The name of a scenario or experiment, which is a folder's too."""
    if re.fullmatch(NAME, name) is None:
        raise WrongScenario(f"name={name!r}: is no name; use letters, digits, '.', '-' and '_', beginning with a letter or digit")
    return name
