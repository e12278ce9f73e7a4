"""The key `sysctls`: settings of the kernel's network namespaces (Documentation/networking/ip-sysctl.rst, mptcp-sysctl.rst).

A dotted name may be one quoted key or TOML's own nested tables, so that `--set sysctls.net.ipv4.tcp_frto=0` and an axis
`"sysctls.net.ipv4.tcp_frto"` set a single one.
"""

import re
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

MAX_SYSCTLS = 64
_NAME = re.compile(r"net(\.[a-z0-9_-]+)+")


def _flat(value: object) -> object:
    """Nested tables as one table of dotted names; a later entry of a name wins."""
    if not isinstance(value, dict):
        return value
    flat: dict[object, object] = {}
    for key, inner in value.items():
        below = _flat(inner)
        flat |= {f"{key}.{name}": setting for name, setting in below.items()} if isinstance(below, dict) else {key: inner}
    return flat


def _name(text: str) -> str:
    if _NAME.fullmatch(text) is None:
        raise ValueError(f'"{text}" is no setting of a network namespace; write a dotted name below net, as sysctl -a prints it')
    return text


Value = bool | int | Annotated[str, Field(pattern=r"^[ -~]*$", max_length=200)]
Sysctls = Annotated[dict[Annotated[str, AfterValidator(_name)], Value], Field(max_length=MAX_SYSCTLS), BeforeValidator(_flat)]
