"""The chain curve of a scenario: what its radio, TCP and kernel carry over static chains of 1, 2, 3, ... hops.

Expected throughput (analysis/metrics/expected.py) is computed from it. It is measured once and kept in the cache (`MANET_CACHE`,
else ~/.cache/manet/curves) under a hash of everything that it depends on: the scenario's radio, queue and TCP keys, the kernel,
the sources of medium and kernel-tcp. The file also contains them all as text, so that a figure can name its basis.
"""

import hashlib
import json
import os
import platform
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from analysis.metrics.movement import CURVE
from record.files import write_atomic
from scenarios import profiles
from scenarios.scenario import Scenario
from scenarios.tcp import Tcp
from testbed.campaigns.experiment import Experiment
from testbed.programs import ROOT

FORMAT = "manet-curve/1"
MAX_HOPS = 8  # a longer path is expected to carry as much as eight hops: the curve is flat there
SEEDS = 3
WARMUP_S = 5.0
DURATION_S = 30.0
SPACING_M = 200.0  # at a range of 250 m, as in the papers' chains
# The keys of a scenario that its curve depends on.
KEYS = (
    "radio", "radio_overrides", "propagation", "interference", "reception", "aggregation", "rate_control", "access",
    "queue_discipline",
    "queue", "control_first", "arp", "profile", "window", "initial_window", "rto_min", "rto_max", "rto_initial", "delayed_ack",
    "mtu", "mss", "sysctls",
)  # fmt: skip
SOURCES = ("medium/src", "medium/daemon/src", "medium/radios", "engine/src", "kernel-tcp")
SOURCE_ENDINGS = (".rs", ".toml", ".c", ".h")


@dataclass(frozen=True)
class Curve:
    """A chain curve, identified by everything that it depends on."""

    scenario: dict[str, Any]  # KEYS and `tcp`, as scenario.json has them
    kernel: str
    sources: str

    @property
    def name(self) -> str:
        """The first 8 hex digits of the hash of `identity`."""
        return hashlib.sha256(json.dumps(self.identity, sort_keys=True).encode()).hexdigest()[:8]

    @property
    def identity(self) -> dict[str, Any]:
        """Everything that the curve depends on, as its file has it."""
        return {"scenario": self.scenario, "kernel": self.kernel, "sources": self.sources, "longest": MAX_HOPS}

    @property
    def path(self) -> Path:
        """The curve's file in the cache."""
        return cache_folder() / f"{self.name}.json"

    def chain(self, hops: int) -> Scenario:
        """The scenario of a chain with this number of hops."""
        measured = {"topology": "chain", "hops": hops, "spacing": SPACING_M, "routing": "static"}
        return Scenario.from_json(json.dumps(self.scenario | measured | {"warmup": WARMUP_S, "duration": DURATION_S}))


def curve_of(scenario: Scenario) -> Curve:
    """The curve for a scenario: that of its TCP without layers, which act only on broken routes."""
    document = json.loads(scenario.to_json())
    shared = {key: document[key] for key in KEYS if document.get(key) is not None}
    shared["tcp"] = Tcp(scenario.tcp.inner).spelled
    own = [hashlib.sha256(profiles.path_of(scenario.radio).read_bytes()).hexdigest()] if profiles.is_own(scenario.radio) else []
    return Curve(shared, platform.release(), " ".join([_sources(), *own]))


def read(curve: Curve) -> dict[str, Any] | None:
    """The content of the curve's file; None if it is not in the cache, is damaged, or was made of runs that were not valid, as
    earlier versions did."""
    try:
        document = json.loads(curve.path.read_text())
    except (OSError, ValueError):
        return None
    if not isinstance(document, dict) or document.get("format") != FORMAT or not document.get("values"):
        return None
    return document if list((document.get("measured") or {}).get("verdicts") or ()) == ["valid"] else None


def store(curve: Curve, values: dict[int, float], measured: dict[str, Any]) -> dict[str, Any]:
    """Write the curve into the cache, completely or not at all; returns the file's content. `values` in kbit/s by hops."""
    document = {"format": FORMAT, "name": curve.name, **curve.identity, "measured": measured}
    document["values"] = {str(hops): round(value, 2) for hops, value in sorted(values.items())}
    curve.path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(curve.path, json.dumps(document, indent=1) + "\n")
    return document


def curves_of(experiment: Experiment, measured: Callable[[Curve], dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The curve of each cell by the cell's name; `measured` is called once for each that is not in the cache."""
    by_name: dict[str, dict[str, Any]] = {}
    by_cell: dict[str, dict[str, Any]] = {}
    for cell in experiment.cells:
        curve = curve_of(cell.scenario)
        if curve.name not in by_name:
            by_name[curve.name] = read(curve) or measured(curve)
        by_cell[cell.name] = by_name[curve.name]
    return by_cell


def lay_out(curves: dict[str, dict[str, Any]], directory: Path) -> None:
    """Write each cell's curve into the folder of results, which is then complete in itself."""
    for cell, curve in curves.items():
        folder = directory / cell
        folder.mkdir(parents=True, exist_ok=True)
        write_atomic(folder / CURVE, json.dumps(curve, indent=1) + "\n")


def cache_folder() -> Path:
    """The folder of all curves."""
    base = os.environ.get("MANET_CACHE")
    return (Path(base) if base else Path.home() / ".cache" / "manet") / "curves"


@cache
def _sources() -> str:
    """A hash of the sources that the throughput of a chain depends on."""
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
