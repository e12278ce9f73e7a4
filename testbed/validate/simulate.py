"""The medium in virtual time: write a medium.json, run `manet-medium sim` on it, parse its output.

The format of both is formats/medium.md. Each run is one process on one core; several run side by side.
"""

import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from math import cos, pi, sin
from pathlib import Path
from typing import Any

from testbed.errors import RunError, UsageError
from testbed.programs import BUILT, ROOT

PROGRAM = BUILT.medium
TIMEOUT_S = 300.0

Position = tuple[float, float]


@dataclass(frozen=True)
class Layout:
    """Positions (m), traffic, durations (s), and a radio: the name of a profile and the keys that replace its own."""

    radio: str
    positions: Sequence[Position]
    traffic: Sequence[dict[str, Any]]
    measured_s: float
    warmup_s: float
    overrides: dict[str, Any] = field(default_factory=dict)
    propagation: dict[str, Any] = field(default_factory=lambda: {"model": "two-ray"})
    queue_packets: int = 50


@dataclass(frozen=True)
class Result:
    """The result of one run after the warm-up: kbit/s of each flow, and the counters of each station."""

    flows_kbps: list[float]
    stations: dict[str, dict[str, int]]

    @property
    def total_kbps(self) -> float:
        """The sum over all flows in kbit/s."""
        return sum(self.flows_kbps)

    @property
    def failed_attempts(self) -> float:
        """Share of failed attempts: 1 - ACKs sent / first frames of exchanges sent (RTS if there are any, else data)."""
        first = self._sum("tx_rts") or self._sum("tx_data")
        return 1.0 - self._sum("tx_ack") / first if first else 0.0

    def _sum(self, counter: str) -> int:
        return sum(counters[counter] for counters in self.stations.values())


def name(index: int) -> str:
    """The name of a station, counted from 0: sta1, sta2, ..."""
    return f"sta{index + 1}"


def saturated(sender: int, receiver: int, ip_bytes: int = 1500) -> dict[str, Any]:
    """Traffic of a sender whose queue is never empty; stations counted from 0."""
    return {"from": name(sender), "to": name(receiver), "kind": "saturated", "bytes": ip_bytes}


def cbr(route: Sequence[int], rate_bps: float, ip_bytes: int = 1500, start_s: float = 0.0) -> dict[str, Any]:
    """A constant mean rate over `route`, gaps uniform within +-50 % as in ns-2."""
    return {
        "from": name(route[0]),
        "to": name(route[-1]),
        "kind": "cbr",
        "bytes": ip_bytes,
        "rate_bps": float(rate_bps),
        "start_s": start_s,
        "route": [name(station) for station in route],
        "jitter": True,
    }


def circle(senders: int, radius_m: float) -> list[Position]:
    """Station 0 in the middle, the senders around it at equal distance, hence equal power."""
    angles = [2 * pi * k / senders for k in range(senders)]
    return [(500.0, 500.0), *((500 + radius_m * cos(a), 500 + radius_m * sin(a)) for a in angles)]


def near_far(senders: int, near_m: float, far_m: float) -> list[Position]:
    """Station 0 in the middle, the first sender at `near_m`, the others at `far_m`, in as many directions."""
    radii = [near_m] + [far_m] * (senders - 1)
    angles = [2 * pi * k / senders for k in range(senders)]
    return [(0.0, 0.0), *((r * cos(a), r * sin(a)) for r, a in zip(radii, angles, strict=True))]


def medium_json(layout: Layout, seed: int) -> dict[str, Any]:
    """The content of medium.json for a layout (formats/medium.md)."""
    return {
        "format": "manet-medium/1",
        "seed": seed,
        "radio": str(ROOT / "medium" / "radios" / f"{layout.radio}.toml"),
        "radio_overrides": layout.overrides,
        "propagation": layout.propagation,
        "interference": "ns2",
        "queue": {"packets": layout.queue_packets, "control_first": True},
        "stations": [
            {"name": name(i), "mac": f"02:00:00:00:{(i + 1) >> 8:02x}:{(i + 1) & 255:02x}", "position": [x, y, 0.0]}
            for i, (x, y) in enumerate(layout.positions)
        ],
        "traffic": list(layout.traffic),
        "duration_s": layout.warmup_s + layout.measured_s,
        "warmup_s": layout.warmup_s,
        "outputs": {},
    }


def run(layout: Layout, seed: int) -> Result:
    """Simulate one layout. Raises UsageError if the medium is not built, RunError if it fails."""
    if not PROGRAM.exists():
        raise UsageError(f"{PROGRAM}: not found; build it with ./setup.sh")
    with tempfile.TemporaryDirectory(prefix="manet-validate-") as folder:
        path = Path(folder) / "medium.json"
        path.write_text(json.dumps(medium_json(layout, seed)))
        command = [str(PROGRAM), "sim", str(path)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        except subprocess.TimeoutExpired:
            raise RunError(f"{PROGRAM.name} sim: not done after {TIMEOUT_S:.0f} s; is the machine overloaded?") from None
    if done.returncode != 0:
        message = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise RunError(f"{PROGRAM.name} sim: exit {done.returncode}: {message}; rebuild with ./setup.sh")
    printed = json.loads(done.stdout)
    return Result([flow["throughput_bps"] / 1000 for flow in printed["flows"]], printed["stations"])


def run_all(jobs: Sequence[tuple[Layout, int]], progress: Callable[[int, int], None], workers: int | None = None) -> list[Result]:
    """Every (layout, seed), in this order; `progress(done, total)` after each."""
    with ThreadPoolExecutor(workers or os.cpu_count() or 1) as pool:
        futures = [pool.submit(run, layout, seed) for layout, seed in jobs]
        try:
            for done, future in enumerate(as_completed(futures), start=1):
                future.result()
                progress(done, len(jobs))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return [future.result() for future in futures]
