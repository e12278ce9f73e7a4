"""The result of a part of a night."""

from dataclasses import dataclass, field

PARTS = ("validation", "campaign", "kernels", "speed")


@dataclass(frozen=True)
class Figure:
    """A metric with its repetitions. `relevant`: the smallest change that matters, as a share; None: recorded, not
    watched. `exact`: unchanged code repeats each value to the bit. `runs`: where each repetition is, or its
    seed. `kernel`: of the guest."""

    metric: str
    unit: str
    values: tuple[float, ...]
    relevant: float | None
    exact: bool = False
    runs: tuple[str, ...] = ()
    kernel: str | None = None
    reference: str = ""


@dataclass
class Part:
    """The figures of a part; `failures` name what failed in it, `skipped` says why it did not run."""

    figures: list[Figure] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    skipped: str = ""
