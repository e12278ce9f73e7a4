"""A flow of a scenario: its ends, its traffic kind, its start, and the keys of its kind (traffic)."""

from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, TypeAlias

from pydantic import (
    BaseModel,
    Field,
    SerializerFunctionWrapHandler,
    ValidationError,
    create_model,
    model_serializer,
    model_validator,
)
from pydantic.fields import FieldInfo

import traffic as kinds
from keys.models import KeyProblem, Strict
from keys.quantities import Seconds
from scenarios.dscp import Dscp
from scenarios.tcp import TcpText
from traffic.shared.kind import Kind

# In scenario.json every flow has these keys, in this order, null if its kind has none; other keys are written for their own kinds
# only.
ALWAYS_WRITTEN = ("rate", "bytes")
FIRST_PORT = 5201  # iperf3's own; flow i has FIRST_PORT + i - 1
if TYPE_CHECKING:  # the names of files are not known to a type checker
    KindName: TypeAlias = str
    KindOfDefaultFlows: TypeAlias = str
else:
    KindName = Literal[kinds.kind_names()]
    KindOfDefaultFlows = Literal[tuple(kinds.kinds_without_required_keys())]


class _Ends(Strict):
    source: str = Field(alias="from")
    target: str = Field(alias="to")
    traffic: KindName = kinds.DEFAULT_KIND
    start: Seconds = Field(0.0, ge=0, le=86_400)
    stop: Seconds | None = Field(None, gt=0, le=172_800)
    warmup: Seconds | None = Field(None, ge=0, le=86_400)
    ip: Literal[4, 6] | None = None
    dscp: Dscp | None = None


def _optional(field: FieldInfo) -> Any:
    """A key of one kind, for a model that has those of all."""
    annotation: Any = Annotated[(field.annotation, *field.metadata)] if field.metadata else field.annotation
    return (annotation | None, None)


if TYPE_CHECKING:
    _WithKeys = _Ends
else:
    _fields = kinds.keys_of_kinds()
    _keys = (*ALWAYS_WRITTEN, *(key for key in _fields if key not in ALWAYS_WRITTEN))
    _WithKeys = create_model("_WithKeys", __base__=_Ends, **{key: _optional(_fields[key]) for key in _keys})


class Flow(_WithKeys):
    """One flow of traffic from a station or host to another. `start` and `stop` count from the start of the traffic; without
    `stop` it ends with the traffic. `warmup`: None is the scenario's. `ip`: version of the addresses of its ends; None: 6 if the
    scenario has `ipv6`, else 4. `dscp`: of its packets; None: as its programs set it. It also has the keys of every kind (`rate`,
    `bytes`, ...), None for keys that its own kind does not have."""

    tcp: TcpText | None = None  # None: the scenario's

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.source == self.target:
            raise KeyProblem(("to",), f'"{self.target}" is also "from"; name another station')
        if self.stop is not None and self.stop <= self.start:
            raise KeyProblem(("stop",), f"{self.stop:g} s is not after start = {self.start:g} s; give a later time")
        own = self.kind.keys.model_fields
        for key, field in own.items():
            if field.is_required() and getattr(self, key) is None:
                example = (field.examples or ["..."])[0]
                raise KeyProblem((), f'a "{self.traffic}" flow needs "{key}"; add {key} = {_as_toml(example)}')
        for key in kinds.keys_of_kinds():
            if key not in own and getattr(self, key) is not None:
                text = f'a "{self.traffic}" flow has no "{key}"; remove it, or set traffic = {_names(kinds.kinds_with_key(key))}'
                raise KeyProblem((key,), text)
        if self.tcp is not None and not self.has_tcp:
            text = f'a "{self.traffic}" flow has no TCP; remove it, or set traffic = {_names(kinds.kinds_with_tcp())}'
            raise KeyProblem(("tcp",), text)
        if self.dscp is not None and not self.kind.sets_dscp:
            text = f'a "{self.traffic}" flow sets no DSCP; remove it, or set traffic = {_names(kinds.kinds_with_dscp())}'
            raise KeyProblem(("dscp",), text)
        for key, value in self._checked_keys():
            object.__setattr__(self, key, value)
        return self

    def _checked_keys(self) -> BaseModel:
        """The kind's keys by its own model, with its defaults and its checks over several keys."""
        try:
            return self.own_keys()
        except ValidationError as problem:  # each key alone has been checked already
            raise problem.errors()[0]["ctx"]["error"] from None

    @model_serializer(mode="wrap")
    def _without_keys_of_other_kinds(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        others = set(kinds.keys_of_kinds()) - set(self.kind.keys.model_fields) - set(ALWAYS_WRITTEN)
        others |= {key for key in ("stop", "warmup", "ip", "dscp") if getattr(self, key) is None}
        return {key: value for key, value in handler(self).items() if key not in others}

    @property
    def kind(self) -> Kind[Any]:
        """The traffic kind that `traffic` names."""
        return kinds.kind_named(self.traffic)

    @property
    def has_tcp(self) -> bool:
        """Whether it is a TCP connection, which uses the scenario's `tcp` or its own."""
        return self.kind.has_tcp

    @property
    def largest_packet(self) -> tuple[str, int] | None:
        """The key that sets the size of the largest IP packet, and this size in bytes; None if TCP sets it, or a file."""
        return self.kind.largest_packet(self.own_keys())

    @property
    def smallest_packet(self) -> tuple[str, int] | None:
        """The key that sets the size of the smallest IP packet, and this size in bytes; None if TCP sets it, or a file."""
        return self.kind.smallest_packet(self.own_keys())

    @property
    def chosen_port(self) -> tuple[str, int] | None:
        """The key by which the user sets the port of the flow's server, and this port; None if it is the flow's own."""
        return self.kind.chosen_port(self.own_keys())

    def named_files(self) -> dict[str, str]:
        """The paths of files among the values of the kind's keys, by key."""
        values = {key: getattr(self, key) for key in self.kind.path_keys}
        return {key: value for key, value in values.items() if value is not None and self.kind.names_file(key, value)}

    def own_keys(self) -> Any:
        """The kind's keys, as its own model."""
        values = {key: getattr(self, key) for key in self.kind.keys.model_fields}
        return self.kind.keys.model_validate({key: value for key, value in values.items() if value is not None})


def _names(names: list[str]) -> str:
    return " or ".join(f'"{name}"' for name in names)


def _as_toml(example: object) -> str:
    if isinstance(example, list):
        return f"[{', '.join(_as_toml(item) for item in example)}]"
    return f"{example:_}" if isinstance(example, int | float) else f'"{example}"'
