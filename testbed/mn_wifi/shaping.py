"""Recorded rates, losses and delays on stations' radios over time: netem (tc-netem(8)), as Mininet-WiFi's replays set it.

It shapes what a station sends, before the medium: a rate above the radio's own has no effect, and the medium's losses and
delays add to those of the record. Each setting and its time are in `conditions.csv` (formats/results.md).
"""

import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mininet.log import output

from testbed.errors import RunError
from testbed.host import modules, namespace
from testbed.mn_wifi.node import Station
from testbed.mn_wifi.session import Standing
from testbed.stages.association import has_link

FILE = "conditions.csv"
CSV_HEADER = "time_s,station,rate_mbps,loss_percent,delay_ms"
MODULE = "sch_netem"


@dataclass(frozen=True)
class Condition:
    """From `at_s` on, s after the replay's beginning: Mbit/s (0: unlimited), loss in per cent, delay in ms."""

    at_s: float
    station: Station
    rate_mbps: float
    loss_percent: float = 0.0
    delay_ms: float = 0.0

    def netem(self) -> list[str]:
        """The arguments of netem."""
        argv = ["rate", f"{self.rate_mbps:.4f}mbit"] if self.rate_mbps else []
        argv += ["loss", f"{self.loss_percent:g}%"] if self.loss_percent else []
        return argv + (["delay", f"{self.delay_ms:g}ms"] if self.delay_ms else [])


class Shaping:
    """A replay of conditions, from a thread until the network ends. `call` names it in errors; `linked`: a condition counts only
    for a station that has a link to an access point at its time. Raises UsageError for a kernel without netem."""

    def __init__(self, call: str, standing: Standing, conditions: Sequence[Condition], *, delay_s: float, linked: bool) -> None:
        modules.load(MODULE, call)
        self._medium, self._log = standing.network.medium, standing.site.directory / FILE
        self._live = standing.live
        self._conditions = sorted(conditions, key=lambda condition: condition.at_s)
        self._applies: Callable[[Station], bool] = (lambda station: has_link(station.host)) if linked else (lambda _station: True)
        self._begin, self._stop = time.monotonic() + delay_s, threading.Event()
        self._log.write_text(f"{CSV_HEADER}\n")
        self._thread = threading.Thread(target=self._run, name=call, daemon=True)
        self._thread.start()
        standing.stages.callback(self.stop)

    def stop(self) -> None:
        """End the thread; the last setting stays."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        for condition in self._conditions:
            if self._stop.wait(max(0.0, self._begin + condition.at_s - time.monotonic())):
                return
            try:
                if self._applies(condition.station):
                    self._set(condition)
            except RunError as problem:
                output(f"*** {self._thread.name}: ends: {problem}\n")
                return

    def _set(self, condition: Condition) -> None:
        device, host = condition.station.host.radio.name, condition.station.host
        self._live.of_user.add(host.name)
        argv = ["tc", "qdisc", "replace", "dev", device, "root", "handle", "2:", "netem", *condition.netem()]

        def run() -> subprocess.CompletedProcess[str]:
            return subprocess.run(argv, capture_output=True, text=True, check=False)

        done = namespace.within(host.netns, run)
        if done.returncode != 0:
            raise RunError(f"{host.name}: {' '.join(argv)}: {done.stderr.strip()[:200]}")
        at_s = self._medium.ask("status")["model_ns"] / 1e9
        row = f"{at_s:.3f},{host.name},{condition.rate_mbps:g},{condition.loss_percent:g},{condition.delay_ms:g}"
        with self._log.open("a") as file:
            file.write(f"{row}\n")
