"""Values of Python as those of a TOML file."""

import json
import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from manet_testbed.errors import WrongScenario
from testbed.campaigns.declaration import NAME


def plain(value: Any) -> Any:
    """The value in the types of a TOML file: tables, lists, texts, numbers; of NumPy's scalars their value. Others stay, and the
    check of the key refuses them."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
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
        return "{" + ", ".join(f"{json.dumps(key, ensure_ascii=False)} = {written(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return f"[{', '.join(map(written, value))}]"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str | bool) else str(value)


def checked_name(name: str) -> str:
    """The name of a scenario or experiment, which is a folder's too."""
    if re.fullmatch(NAME, name) is None:
        raise WrongScenario(f"name={name!r}: is no name; use letters, digits, '.', '-' and '_', beginning with a letter or digit")
    return name
