"""The key `jammers` of a scenario: jammers and noise sources, stations of a kind of their own (docs/medium.md).

They have neither an interface nor a namespace nor an address; the medium alone knows them. Kinds and limits are those of
formats/schema/medium.json.
"""

from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, model_validator

from keys.models import KeyProblem, Strict, as_tuple
from keys.quantities import Coordinate, Seconds, Whole
from scenarios import owned
from scenarios.antennas import Antenna

MAX_JAMMERS = 100
# keys of a kind: those that it needs; any other kind refuses them
NEEDED = {"constant": (), "periodic": ("on", "off"), "reactive": ("on",)}


class Jammer(Strict):
    """A jammer or noise source. Times are of the model, from the medium's start."""

    name: str
    position: Annotated[tuple[Coordinate, ...], BeforeValidator(as_tuple), Field(min_length=2, max_length=3)] | None = None
    follows: str | None = None
    kind: Annotated[str, owned.choice("medium", "jammers.kind")] = owned.default("medium", "jammers.kind")
    tx_power_w: Annotated[float, owned.number("medium", "jammers.tx_power_w")]
    antenna_gain_db: Annotated[float, owned.number("medium", "jammers.antenna_gain_db")] | None = None
    antenna_height_m: Annotated[float, owned.number("medium", "jammers.antenna_height_m")] | None = None
    antenna: Antenna | None = None
    freq_mhz: Annotated[Whole, owned.number("medium", "jammers.freq_mhz")] = owned.default("medium", "jammers.freq_mhz")
    active: bool = True
    start: Annotated[Seconds, owned.number("medium", "jammers.start_s")] = 0.0
    stop: Annotated[Seconds, owned.number("medium", "jammers.stop_s")] | None = None
    on: Annotated[Seconds, owned.number("medium", "jammers.on_s")] | None = None
    off: Annotated[Seconds, owned.number("medium", "jammers.off_s")] | None = None
    delay: Annotated[Seconds, owned.number("medium", "jammers.delay_us", per=1e6)] = (
        owned.default("medium", "jammers.delay_us") / 1e6
    )

    @model_validator(mode="after")
    def _fits_kind(self) -> Self:
        if (self.position is None) == (self.follows is None):
            raise KeyProblem((), "needs either a position or follows; give one of them")
        if self.antenna is not None and self.antenna_gain_db is not None:
            raise KeyProblem(("antenna_gain_db",), "the antenna has a gain; leave one of them out")
        for key in ("on", "off"):
            needed, given = key in NEEDED[self.kind], getattr(self, key) is not None
            if needed and not given:
                raise KeyProblem((key,), f"a {self.kind} jammer needs it; add it")
            if given and not needed:
                raise KeyProblem((key,), f"a {self.kind} jammer has none; leave it out")
        if self.stop is not None and self.stop <= self.start:
            raise KeyProblem(("stop",), f"{self.stop:g} s is not after start, {self.start:g} s; give a later time")
        return self

    def for_medium(self) -> dict[str, Any]:
        """The entry of `jammers` in medium.json."""
        own = {"name", "kind", "tx_power_w", "antenna_gain_db", "antenna_height_m", "antenna", "freq_mhz", "follows", "active"}
        keys = self.model_dump(include=own, exclude_none=True, mode="json")
        if self.position is not None:
            keys["position"] = [*self.position, 0.0][:3]
        times = {"start_s": self.start, "stop_s": self.stop, "on_s": self.on, "off_s": self.off}
        keys |= {key: seconds for key, seconds in times.items() if seconds is not None}
        return {**keys, "delay_us": round(self.delay * 1e6, 3)}
