"""The scenario of a run, as scenario.json has it (formats/scenario.md).

It was checked when the run began, perhaps by another version. So nothing is checked again: a key that this version does not know
is ignored; a missing one has its default, as has a null that this version refuses; any other refused value stays as it was
written.
"""

from typing import Any, Self

from pydantic import BaseModel, ConfigDict, ValidationError, ValidationInfo, field_validator, model_validator
from pydantic_core.core_schema import ValidatorFunctionWrapHandler

from scenarios import flows as own
from scenarios.routing import Protocol
from scenarios.scenario import Scenario

IGNORE = ConfigDict(extra="ignore")


class _AsWritten(BaseModel):
    @field_validator("*", mode="wrap")
    @classmethod
    def _or_as_written(cls, value: Any, handler: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
        try:
            return handler(value)
        except ValidationError:
            return cls.model_fields[info.field_name or ""].get_default() if value is None else value

    @model_validator(mode="after")
    def _complete(self) -> Self:
        """Instead of the checks and completions over several keys."""
        return self


class RunFlow(_AsWritten, own.Flow):
    """A flow of a run. `name`: `flow1`, `flow2`, ... in the order of the scenario, then those that a view started."""

    model_config = IGNORE
    name: str

    @property
    def protocol(self) -> str | None:
        """tcp or udp; None if its kind has no connection."""
        return self.kind.transport


class RunScenario(_AsWritten, Scenario):
    """The scenario of a run."""

    model_config = IGNORE
    flows: tuple[RunFlow, ...] = ()

    @classmethod
    def of(cls, content: dict[str, Any]) -> Self:
        """The scenario with the content of a scenario.json. Raises pydantic's ValidationError for a flow without an end."""
        flows = enumerate(content.get("flows", ()), start=1)
        named = tuple(RunFlow.model_validate({**flow, "name": f"flow{number}"}) for number, flow in flows)
        return cls.model_validate({**content, "flows": named})

    @property
    def protocol(self) -> str:
        """The name of the routing protocol."""
        routing: Any = self.routing
        if isinstance(routing, Protocol):
            return routing.protocol
        return routing if isinstance(routing, str) else str(routing.get("protocol", "routing"))

    def tcp_text(self, flow: RunFlow) -> str:
        """The TCP of a flow as the scenario spells it."""
        tcp: Any = self.tcp_of(flow)
        return tcp if isinstance(tcp, str) else tcp.spelled
