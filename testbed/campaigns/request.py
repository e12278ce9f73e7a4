"""The command line's request for an experiment: size, overrides, variants, seeds."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Request:
    """`overrides` are the `key=value` of `--set`. Empty `variants`: all of the size; `seeds` None: the number in the file."""

    quick: bool = False
    overrides: tuple[str, ...] = ()
    variants: tuple[str, ...] = ()
    seeds: int | None = None


FULL_SIZE = Request()  # full size, as the file has it
