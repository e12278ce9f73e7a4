"""What the command line asks of an experiment."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Request:
    """`overrides` are the `key=value` of `--set`; no `variants` are all of the size, no `seeds` those of the file."""

    quick: bool = False
    overrides: tuple[str, ...] = ()
    variants: tuple[str, ...] = ()
    seeds: int | None = None


WHOLE = Request()  # full size, as the file has it
