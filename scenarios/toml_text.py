"""Values of JSON or Python as TOML 1.0 text: what a program gives becomes a scenario's file, or a value of `--set`."""

import json
import math
import re
from collections.abc import Mapping
from typing import Any

from keys.errors import UsageError
from keys.toml_lines import fits

MAX_DEPTH = 10  # no key of a scenario needs more than five levels


def value_text(value: Any, key: str, depth: int = 0) -> str:
    """The value of `key`, which errors name, on one line. Raises UsageError for what TOML lacks: null, infinity, half a surrogate
    pair, other types."""
    if depth > MAX_DEPTH:
        raise UsageError(f'key "{key}": is nested too deep; no key needs more than five levels')
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        if not fits(value):
            raise UsageError(f'key "{key}": is a number of more than 64 bits; give a smaller one')
        return str(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise UsageError(f'key "{key}": is no finite number; give one')
        return repr(value)
    if isinstance(value, str):
        return _string(value, key)
    if isinstance(value, list):
        return f"[{', '.join(value_text(part, key, depth + 1) for part in value)}]"
    if isinstance(value, Mapping):
        parts = (f"{_name(name)} = {value_text(part, f'{key}.{name}', depth + 1)}" for name, part in value.items())
        return f"{{{', '.join(parts)}}}"
    if value is None:
        raise UsageError(f'key "{key}": is null, which TOML lacks; leave it out for the default')
    raise UsageError(f'key "{key}": is a {type(value).__name__}, which TOML lacks; give a text, a number, a list or a table')


def file_text(tables: Mapping[str, Any]) -> str:
    """A file with each key on a line."""
    return "".join(f"{_name(key)} = {value_text(value, key)}\n" for key, value in tables.items())


def _name(key: str) -> str:
    """A bare key if TOML allows it."""
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _string(key, key)


def _string(text: str, key: str) -> str:
    """A basic string: JSON's escapes are TOML's, except that TOML also escapes DEL."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise UsageError(f"key {ascii(key)[:80]}: is no Unicode text; correct its escapes") from None
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007F")
