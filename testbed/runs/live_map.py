"""The map of a network under way: positions and links from the medium, routes from kernels and daemons, rates from the kernels'
connections; of the prompt's own run or of one that another process has started.

A map costs some `ip` processes for each hop of a flow, and the medium waits for none of them.
"""

import re
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from analysis.captures.rundir import RunDirectory
from analysis.maps.past_snapshot import walls_of, without_positions
from analysis.maps.snapshot import FlowPath, Snapshot, azimuths_of, jammers_of
from analysis.metrics.radio_range import RECEIVED, SENSED, range_of_run
from record import records
from record.errors import RecordError
from record.found_runs import title_of
from record.scenario import RunFlow
from testbed.errors import ManetError, RunError, UsageError
from testbed.runs import flow_paths
from testbed.runs.under_way import namespaces_of, sockets_of, under_way
from testbed.stages import iproute
from testbed.stages.control import MediumControl
from testbed.stages.site import SOCKETS
from testbed.stages.status import ask, status_socket

MIN_SAMPLE_S = 0.5  # a shorter sample gives no rate
MAX_SAMPLE_S = 10.0  # a rate over a longer time does not describe this moment
NO_FLOWS = "no flows: the scenario has none; name pairs of nodes to see the paths between them"
_ACKED = re.compile(r"\bbytes_acked:(\d+)")


@dataclass
class MappedNetwork:
    """A network under way. `netns`: namespace by node; `sockets`: the folder of the run's sockets, by a path of this process."""

    directory: Path
    netns: Mapping[str, Path]
    sockets: Path = SOCKETS
    title: str = ""
    _acked: dict[str, tuple[float, int]] = field(
        default_factory=dict
    )  # of each flow, its last sample: monotonic time (s), bytes acknowledged

    def snapshot(self, pairs: Sequence[tuple[str, str]] = ()) -> Snapshot:
        """The network now, with the paths of the scenario's flows, or of these pairs of nodes. Raises RunError, RecordError."""
        run = RunDirectory(self.directory)
        control = MediumControl(self.sockets / "medium.sock")
        try:
            places = control.ask("positions")["positions"]
            links = control.ask("links")["links"]
            model_ns = control.ask("status")["model_ns"]
        finally:
            control.close()
        heard = frozenset((link["from"], link["to"]) for link in links if link["range"])
        strong = {end for link in links if link["power_dbm"] is not None for end in (link["from"], link["to"])}
        off = frozenset(places) - strong if len(places) > 1 else frozenset()
        ip = 6 if run.scenario.ipv6 else 4  # as of a flow that does not say
        flows = [
            RunFlow.model_validate({"name": f"path{n}", "from": a, "to": b, "ip": ip}) for n, (a, b) in enumerate(pairs, start=1)
        ] or run.flows
        on_plane = {name: (place[0], place[1]) for name, place in places.items()}
        return Snapshot(
            title=f"{self.title or self.directory.name}: {_time(run, model_ns)}",
            places=on_plane, jammers=jammers_of(run.medium, on_plane), azimuths=azimuths_of(run.medium),
            links=heard, off=off, wires=tuple((wire.station, wire.host) for wire in run.wires),
            paths=tuple(self._flow_paths(run, flows, heard)),
            range_m=range_of_run(run.path, run.medium, RECEIVED), sense_m=range_of_run(run.path, run.medium, SENSED),
            area=run.scenario.area, note="; ".join(filter(None, ["" if flows else NO_FLOWS, without_positions(run)])),
            walls=walls_of(run),
        )  # fmt: skip

    def _flow_paths(self, run: RunDirectory, flows: Sequence[RunFlow], heard: frozenset[tuple[str, str]]) -> Iterator[FlowPath]:
        wired = {frozenset((wire.station, wire.host)) for wire in run.wires}
        tables = flow_paths.RouteTables(self.netns, _names(run), self._status())
        for flow in flows:
            rate = self._rate(run, flow) if flow in run.flows else ""
            address = run.address(flow.target, run.scenario.ip_of(flow))
            yield flow_paths.follow_path(
                flow.name, flow.source, flow.target, address, tables.next_hop, tables.names,
                lambda a, b: (a, b) in heard or frozenset((a, b)) in wired, rate,
            )  # fmt: skip

    def _status(self) -> dict[str, dict[str, Any]]:
        """The status of each of our own daemons that answers, by station."""
        answers = {}
        for path in sorted((self.sockets / "routing").glob("*.sock")):
            try:
                answers[path.stem] = ask(status_socket(path.stem, self.sockets), "status")
            except RunError:  # its routes are then the kernel's alone
                continue
        return answers

    def _rate(self, run: RunDirectory, flow: RunFlow) -> str:
        """The rate of a flow as text: offered; with TCP acknowledged, since the last sample or in MIN_SAMPLE_S."""
        if not flow.kind.has_tcp:
            offered_bps = flow.kind.offered_bps(dict(flow))
            return f"{_bits(offered_bps)} offered" if offered_bps else ""
        before = self._acked.get(flow.name)
        if before is None or time.monotonic() - before[0] > MAX_SAMPLE_S:
            before = self._sample(run, flow)
            if before is None:
                return ""
        time.sleep(max(0.0, before[0] + MIN_SAMPLE_S - time.monotonic()))
        now = self._acked[flow.name] = self._sample(run, flow) or before
        if now[0] <= before[0] or now[1] < before[1]:
            return ""
        return f"{_bits(8 * (now[1] - before[1]) / (now[0] - before[0]))} acknowledged"

    def _sample(self, run: RunDirectory, flow: RunFlow) -> tuple[float, int] | None:
        """(Monotonic time in s, bytes acknowledged on the flow's largest connection); None without a connection."""
        if flow.source not in self.netns:
            return None
        address = run.address(flow.target, run.scenario.ip_of(flow))
        target = f"[{address}]" if flow.ip == 6 else address
        output = iproute.ask_within(self.netns[flow.source], "ss", "-tinHO", "dst", target)
        counts = [int(count) for count in _ACKED.findall(output)]
        return (time.monotonic(), max(counts)) if counts else None


def live(directory: Path | None) -> MappedNetwork | None:
    """The network of the run in `directory`, or of the only run under way; None if that run has ended. Raises UsageError."""
    state = under_way(directory)
    if state is None:
        return None
    sockets, netns = sockets_of(state, "medium.sock"), namespaces_of(state)
    if sockets is None or not netns:
        raise UsageError(f"{state.directory}: its network is not up (not yet, or no longer); try again, or see its log/")
    folder = Path(state.directory)
    return MappedNetwork(folder, netns, sockets, title_of(folder))


class Updater:
    """Redraws the map every `every_s` seconds, in its own thread, until `stop`. `problem` is the error of the last attempt,
    which is repeated: a station may just have been switched off. `drawn` counts the pictures."""

    def __init__(self, network: MappedNetwork, file: Path, every_s: float, pairs: Sequence[tuple[str, str]] = ()) -> None:
        self.file, self.every_s, self.problem, self.drawn = file, every_s, "", 0
        self._network, self._pairs = network, pairs
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, name="map", daemon=True)
        self._thread.start()

    def wait_while_it_works(self) -> None:
        """Wait until an attempt fails, as at the end of the run."""
        while not self.problem:
            time.sleep(min(self.every_s, MIN_SAMPLE_S))

    def stop(self) -> None:
        """End the thread; no picture is drawn after the return."""
        self._stop.set()
        self._thread.join()

    def _work(self) -> None:
        from analysis.maps import map_picture  # imports matplotlib, which is slow

        while True:
            begun = time.monotonic()
            try:
                map_picture.draw(self._network.snapshot(self._pairs), self.file)
                self.problem, self.drawn = "", self.drawn + 1
            except (ManetError, RecordError, OSError) as problem:
                self.problem = str(problem)
            if self._stop.wait(max(0.0, begun + self.every_s - time.monotonic())):
                return


def _names(run: RunDirectory) -> dict[str, str]:
    """The node of each address: of radios, and of both ends of wires."""
    nodes = (*run.scenario.radio_numbers(), *run.scenario.host_names())
    return {address: node for node in nodes for address in run.addresses(node)}


def _time(run: RunDirectory, model_ns: int) -> str:
    """Seconds of the traffic once it has begun, else of the medium."""
    traffic_ns = records.read(run.path / records.RUN).get("traffic_ns")
    if traffic_ns is None:
        return f"{model_ns / 1e9:.1f} s"
    return f"{(model_ns - traffic_ns) / 1e9:.1f} s of the traffic"


def _bits(bps: float) -> str:
    return f"{bps / 1e3:.0f} kbit/s" if bps < 1e6 else f"{bps / 1e6:.2f} Mbit/s"
