"""A variable bit rate over UDP: a datagram each `interval` seconds, whose size is drawn from a distribution or read from a file.

Sizes follow a beta distribution scaled to [`min`, `max`], with the given mean and variance, and are rounded to whole bytes. A
normal distribution cut off at `min` and `max` would have another mean and variance than those given. The beta distribution has
exactly these, and exists for each variance below (mean - min)(max - mean), the upper bound for any distribution on [min, max]
(R. Bhatia and C. Davis, "A better bound on the variance", 2000). Sizes are independent of each other; not modelled: the
correlation of a video's frames, which a file of sizes (`sizes`) has.

The series depends on the run's seed and the flow's name alone, so all variants of a seed send the same sizes.
`data/vbr.toml` has the presets with their sources.
"""

import tomllib
from collections.abc import Iterator, Mapping
from itertools import cycle, repeat
from pathlib import Path
from random import Random
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, TypeAlias

from pydantic import Field, model_validator

from keys.errors import UsageError, shortened
from keys.models import KeyProblem, Strict
from keys.quantities import Seconds, Whole
from traffic.programs.datagrams import HEADERS_BYTES, STAMP
from traffic.shared.datagrams import DatagramKind, Train
from traffic.shared.keys import MAX_PACKET_BYTES
from traffic.shared.kind import FlowPlan

PRESETS: dict[str, dict[str, Any]] = tomllib.loads((Path(__file__).with_name("data") / "vbr.toml").read_text())
DEFAULT_PRESET = "video-53k"
MIN_PACKET_BYTES = HEADERS_BYTES[4] + STAMP.size  # the analysis recognises a datagram by its stamp
DISTRIBUTION = ("mean", "variance", "min", "max")
Limit = Annotated[Whole, Field(ge=MIN_PACKET_BYTES, le=MAX_PACKET_BYTES)]
if TYPE_CHECKING:  # the names in a data file are not known to a type checker
    PresetName: TypeAlias = str
else:
    PresetName = Literal[tuple(PRESETS)]


class VbrKeys(Strict):
    """A distribution, a preset for the keys of it that are not given, or a file of sizes."""

    interval: Annotated[Seconds, Field(ge=0.001, le=3600)] | None = None
    mean: Annotated[float, Field(ge=MIN_PACKET_BYTES, le=MAX_PACKET_BYTES)] | None = None
    variance: Annotated[float, Field(ge=0)] | None = None  # bytes^2
    min: Limit | None = None
    max: Limit | None = None
    preset: PresetName | None = None
    sizes: str | None = None  # path of a file

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.sizes is not None:
            self._check_file_alone()
        else:
            self._fill_in()
            self._check_distribution()
        return self

    def _check_file_alone(self) -> None:
        for key in ("preset", *DISTRIBUTION):
            if getattr(self, key) is not None:
                raise KeyProblem((key,), f'contradicts sizes = "{shortened(self.sizes or "")}"; remove one of the two keys')
        if self.interval is None:
            raise KeyProblem((), 'a flow with "sizes" needs "interval"; add interval = 0.1')

    def _fill_in(self) -> None:
        """The preset's values for keys that are not given; a flow without any key of a distribution has the default preset."""
        if self.preset is None and all(getattr(self, key) is None for key in DISTRIBUTION):
            object.__setattr__(self, "preset", DEFAULT_PRESET)
        if self.preset is not None:
            for key in ("interval", *DISTRIBUTION):
                if getattr(self, key) is None:
                    object.__setattr__(self, key, PRESETS[self.preset][key])
        missing = next((key for key in ("interval", *DISTRIBUTION) if getattr(self, key) is None), None)
        if missing is not None:
            example = PRESETS[DEFAULT_PRESET][missing]
            text = f'a "vbr" flow needs "{missing}"; add {missing} = {example}, or preset = "{DEFAULT_PRESET}"'
            raise KeyProblem((), text)

    def _check_distribution(self) -> None:
        mean, variance, low, high = self.distribution
        if low > high:
            raise KeyProblem(("min",), f"{low:g} bytes are above max = {high:g}; lower it, or raise max")
        if not low <= mean <= high:
            raise KeyProblem(("mean",), f"{mean:g} bytes are not between min = {low:g} and max = {high:g}; correct it")
        bound = (mean - low) * (high - mean)
        if variance > 0 and variance >= bound:
            text = f"{variance:g} is too large for this mean, min and max; give less than (mean - min) * (max - mean) = {bound:g}"
            raise KeyProblem(("variance",), text)

    @property
    def distribution(self) -> tuple[float, float, int, int]:
        """Mean, variance, minimum and maximum; only without a file of sizes."""
        assert self.mean is not None and self.variance is not None and self.min is not None and self.max is not None
        return self.mean, self.variance, self.min, self.max


class Vbr(DatagramKind[VbrKeys]):
    """See the head of this file."""

    keys = VbrKeys
    path_keys = ("sizes",)
    min_packet_bytes = MIN_PACKET_BYTES

    def train(self, keys: VbrKeys) -> Train:
        """Trains of one datagram; the size is the largest."""
        largest = max(sizes_in(Path(keys.sizes))) if keys.sizes is not None else keys.distribution[3]
        return Train(every_s=self.interval_s(keys.model_dump()), packets=1, packet_bytes=largest)

    def interval_s(self, keys: Mapping[str, Any]) -> float:
        """The key `interval`."""
        return float(keys["interval"])

    def sizes(self, plan: FlowPlan[VbrKeys]) -> Iterator[int]:
        """The sizes in the file, repeated without end, or those drawn for the run's seed."""
        if plan.keys.sizes is not None:
            return cycle(sizes_in(Path(plan.keys.sizes)))
        return drawn_sizes(plan.keys, f"sizes {plan.seed} {plan.name}")

    def largest_packet(self, keys: VbrKeys) -> tuple[str, int] | None:
        """The key `max`; a file's sizes are checked when it is read."""
        return None if keys.max is None else ("max", keys.max)

    def smallest_packet(self, keys: VbrKeys) -> tuple[str, int] | None:
        """The key `min`."""
        return None if keys.min is None else ("min", keys.min)

    def check_file(self, key: str, path: Path, mtu: int, ip: int) -> None:
        """The sizes of the file, each at most the MTU, and with room for the headers and the stamp."""
        sizes_in(path, mtu, ip)

    def offered_bps(self, keys: Mapping[str, Any]) -> float | None:
        """Mean size over `interval`, bit/s; None if the file of sizes has gone."""
        mean, interval = keys.get("mean"), keys.get("interval")
        if keys.get("sizes"):
            try:
                mean = fmean(sizes_in(Path(keys["sizes"])))
            except UsageError:
                return None
        return mean * 8 / interval if mean and interval else None


KIND = Vbr()


def drawn_sizes(keys: VbrKeys, seed: str) -> Iterator[int]:
    """Sizes of IP packets without end. Of m = (mean - min) / (max - min) and v = variance / (max - min)^2 the parameters of the
    beta distribution are m * n and (1 - m) * n with n = m (1 - m) / v - 1."""
    mean, variance, low, high = keys.distribution
    if variance == 0:
        return repeat(round(mean))
    width, rng = high - low, Random(seed)
    share = (mean - low) / width
    weight = share * (1 - share) * width**2 / variance - 1
    return (round(low + width * rng.betavariate(share * weight, (1 - share) * weight)) for _ in repeat(None))


def sizes_in(path: Path, mtu: int = MAX_PACKET_BYTES, ip: int = 4) -> list[int]:
    """The sizes of a file: bytes of an IP packet, one in each line; empty lines and those that begin with # are skipped.
    UsageError for any other line, for a size above the MTU, and for one too small for a packet of this IP version."""
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError):
        raise UsageError(f"{path}: not a readable text file; give a file with one packet size in each line") from None
    smallest, largest = HEADERS_BYTES[ip] + STAMP.size, min(mtu, MAX_PACKET_BYTES)
    sizes = []
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        if not (text.isascii() and text.isdigit() and smallest <= int(text[:9]) <= largest):
            limits = f"{smallest} to {largest} (mtu = {mtu})" if mtu < MAX_PACKET_BYTES else f"{smallest} to {largest}"
            raise UsageError(f'{path}: line {number}: "{shortened(text)}" is no size of a packet; give whole bytes, {limits}')
        sizes.append(int(text))
    if not sizes:
        raise UsageError(f"{path}: no sizes in it; give a file with one packet size in each line")
    return sizes
