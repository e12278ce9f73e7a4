"""Stations whose programs see a root file system of their own (`[[stations]]` of formats/scenario.md, docs/containers.md).

This module checks keys only. The files are looked for by scenarios.definition, the containers are made by
testbed/stages/containers.py.
"""

from collections.abc import Collection, Sequence
from typing import Annotated, Any, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from keys.models import KeyProblem, Strict, as_tuple, check_length
from keys.quantities import Bytes, Whole

MIN_MEMORY = 1 << 20  # a program that is smaller does not start
MAX_MEMORY = 1 << 50  # more than any machine; the kernel's counters end at 2^63
MAX_PIDS = 4_194_304  # PID_MAX_LIMIT of the kernel, include/linux/threads.h
MAX_CPU = 1024.0


def _with_a_program(words: tuple[str, ...]) -> tuple[str, ...]:
    if not words or not words[0]:
        raise ValueError("its first word must be the name or path of a program; write it there")
    check_length(words)
    return words


Words = Annotated[tuple[str, ...], AfterValidator(_with_a_program)]


class Container(Strict):
    """A station with its own root file system: a folder (`rootfs`) or an OCI image. Its limits hold for all of its programs
    together: `memory` in bytes, `cpu` in processors, `pids` in processes and threads; None: none.

    `sandbox`: its root is an unprivileged user of the host."""

    name: str
    rootfs: str | None = Field(None, min_length=1)
    image: str | None = Field(None, min_length=1)
    command: Annotated[Words, BeforeValidator(as_tuple)] | None = None
    memory: Bytes | None = Field(None, ge=MIN_MEMORY, le=MAX_MEMORY)
    cpu: float | None = Field(None, ge=0.01, le=MAX_CPU, strict=False)
    pids: Whole | None = Field(None, ge=1, le=MAX_PIDS)
    sandbox: bool = False

    @model_validator(mode="after")
    def _with_one_file_system(self) -> Self:
        if self.rootfs is None and self.image is None:
            raise KeyProblem((), f'"{self.name}" needs a root file system; add rootfs = "FOLDER", or image = "ARCHIVE"')
        if self.rootfs is not None and self.image is not None:
            raise KeyProblem(("image",), 'contradicts "rootfs"; remove one of them')
        return self

    @model_serializer(mode="wrap")
    def _without_unset_keys(self, as_usual: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {key: value for key, value in as_usual(self).items() if value is not None}

    @property
    def limits(self) -> dict[str, float]:
        """The limits that are set, by key."""
        return {key: getattr(self, key) for key in ("memory", "cpu", "pids") if getattr(self, key) is not None}


def check_containers(containers: Sequence[Container], stations: Collection[str], hosts: Collection[str], clock: str) -> None:
    """Check containers against the scenario's stations; KeyProblem for the first error."""
    seen: set[str] = set()
    for index, container in enumerate(containers):
        path = ("stations", index, "name")
        if container.name in hosts:
            raise KeyProblem(path, f'"{container.name}" is a wired host, which has the files of this machine; name a station')
        if container.name not in stations:
            raise KeyProblem(path, f'there is no station "{container.name}"; name one of the scenario\'s')
        if container.name in seen:
            raise KeyProblem(path, f'"{container.name}" is in the list twice; make one entry of both')
        seen.add(container.name)
    if containers and clock == "virtual":
        text = 'the guests of clock = "virtual" have no containers; set clock = "real", or remove the list'
        raise KeyProblem(("stations",), text)
