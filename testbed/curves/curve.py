"""The chain curve of a scenario: what its radio, TCP and kernel carry over static chains of 1, 2, 3, ... hops.

Expected throughput (analysis/expected.py) rests on it. It is measured once and kept in the cache (`MANET_CACHE`, else
~/.cache/manet/curves) under a hash of everything that it depends on: the scenario's radio, queue and TCP keys, the kernel, the
sources of medium and kernel-tcp. The file carries them all in clear, so that a figure can say what it stands on.
"""

import hashlib
import json
import os
import platform
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from scenarios.scenario import Scenario
from scenarios.tcp import Tcp
from testbed.programs import ROOT

FORMAT = "manet-curve/1"
LONGEST = 8  # hops; a longer path is expected to carry what eight hops do, where the curve is flat
SEEDS = 3
WARMUP_S = 5.0
DURATION_S = 30.0
SPACING_M = 200.0  # in a range of 250 m as the papers' chains
# What a static chain shares with the scenario that asks.
KEYS = (
    "radio", "radio_overrides", "propagation", "interference", "queue", "control_first", "arp", "profile", "window",
    "initial_window", "rto_min", "rto_max", "rto_initial", "delayed_ack", "mtu", "mss",
)  # fmt: skip
SOURCES = ("medium/src", "medium/daemon/src", "medium/radios", "engine/src", "kernel-tcp")
SOURCE_ENDINGS = (".rs", ".toml", ".c", ".h")


@dataclass(frozen=True)
class Wanted:
    """A curve by what decides it."""

    scenario: dict[str, Any]  # KEYS and `tcp`, as scenario.json has them
    kernel: str
    sources: str

    @property
    def name(self) -> str:
        return hashlib.sha256(json.dumps(self.identity, sort_keys=True).encode()).hexdigest()[:8]

    @property
    def identity(self) -> dict[str, Any]:
        return {"scenario": self.scenario, "kernel": self.kernel, "sources": self.sources, "longest": LONGEST}

    @property
    def path(self) -> Path:
        return cache_folder() / f"{self.name}.json"

    def chain(self, hops: int) -> Scenario:
        """The chain that is measured."""
        measured = {"topology": "chain", "hops": hops, "spacing": SPACING_M, "routing": "static"}
        return Scenario.from_json(json.dumps(self.scenario | measured | {"warmup": WARMUP_S, "duration": DURATION_S}))


def wanted_by(scenario: Scenario) -> Wanted:
    """The curve that the scenario's throughput is held against: of its TCP without layers, which act on broken routes only."""
    document = json.loads(scenario.to_json())
    shared = {key: document[key] for key in KEYS if document.get(key) is not None}
    shared["tcp"] = Tcp(scenario.tcp.inner).spelled
    return Wanted(shared, platform.release(), _sources())


def read(wanted: Wanted) -> dict[str, Any] | None:
    """The cached curve, or None; a damaged file counts as none."""
    try:
        document = json.loads(wanted.path.read_text())
    except (OSError, ValueError):
        return None
    return document if document.get("format") == FORMAT and document.get("values") else None


def keep(wanted: Wanted, values: dict[int, float], measured: dict[str, Any]) -> dict[str, Any]:
    """Into the cache, whole or not at all; returns the file's content."""
    document = {"format": FORMAT, "name": wanted.name, **wanted.identity, "measured": measured}
    document["values"] = {str(hops): round(value, 2) for hops, value in sorted(values.items())}
    wanted.path.parent.mkdir(parents=True, exist_ok=True)
    new = wanted.path.with_suffix(f".{os.getpid()}")
    new.write_text(json.dumps(document, indent=1) + "\n")
    new.rename(wanted.path)
    return document


def cache_folder() -> Path:
    base = os.environ.get("MANET_CACHE")
    return (Path(base) if base else Path.home() / ".cache" / "manet") / "curves"


@cache
def _sources() -> str:
    """A hash of the sources that decide what a chain carries."""
    files = sorted(
        path
        for folder in SOURCES
        for path in (ROOT / folder).rglob("*")
        if path.suffix in SOURCE_ENDINGS and "tests" not in path.parts and "names" not in path.parts
    )
    digest = hashlib.sha256()
    for path in files:
        digest.update(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]
