"""A mesh: a network of this testbed, in isolation, for as long as a `with` block lasts.

    with Mesh.chain(3, routing="babeld") as mesh:
        mesh.wait_until(lambda: mesh["sta1"].ping(mesh["sta3"]).loss == 0, timeout=60)

The keys are those of a scenario file (formats/scenario.md) and are checked as there. The network is a run of its own: it has
namespaces of its own, so several stand side by side, and nothing of it outlives the block or the test process, however that ends.
"""

import itertools
import json
import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from manet_testbed import iperf
from manet_testbed.answers import Throughput, Verdict
from manet_testbed.connection import Connection
from manet_testbed.errors import KINDS, MeshError, MeshTimeout, WrongRequest, number, seconds
from manet_testbed.station import Station

T = TypeVar("T")
POLL_S = 0.2  # between two calls of a condition
AIR = "air"  # in `captures`: the file of all frames on the air


class Mesh:
    """A mesh; `with` brings it up and takes it down. Raises MeshError (errors.py)."""

    def __init__(
        self, keys: dict[str, Any], *, seed: int = 1, directory: Path | str | None = None, file: Path | str | None = None,
        name: str = "Mesh",
    ) -> None:  # fmt: skip
        """`keys` of a scenario, or changes of the scenario in `file`. `directory`, which must hold no run yet, keeps the
        results; without it they end with the mesh. `name` begins the messages about keys."""
        if not isinstance(seed, int) or seed < 1:
            raise WrongRequest(f"{name}: seed={seed!r}: is no whole number from 1 on")
        self.name, self.seed = name, seed
        self._request = {
            "keys": json.loads(json.dumps(keys, default=str)),
            "seed": seed,
            "directory": None if directory is None else str(Path(directory).absolute()),
            "file": None if file is None else str(file),
            "name": name,
        }
        self._connection: Connection | None = None
        self._ready: dict[str, Any] = {}
        self._nodes: dict[str, Station] = {}
        self._verdict: Verdict | None = None
        self._measurements = itertools.count(1)

    # --- kinds of meshes ----------------------------------------------------------------------------------------------

    @classmethod
    def chain(cls, stations: int, *, seed: int = 1, directory: Path | str | None = None, **keys: Any) -> Self:
        """Stations in a line, `spacing` (200 m) apart: each hears its neighbours."""
        return cls(_keys("chain", keys, nodes=stations), seed=seed, directory=directory, name="Mesh.chain")

    @classmethod
    def grid(cls, rows: int, columns: int, *, seed: int = 1, directory: Path | str | None = None, **keys: Any) -> Self:
        """Stations in a grid, `spacing` (200 m) apart, numbered row by row."""
        return cls(_keys("grid", keys, rows=rows, columns=columns), seed=seed, directory=directory, name="Mesh.grid")

    @classmethod
    def random(
        cls, stations: int, *, area: tuple[float, float], seed: int = 1, directory: Path | str | None = None, **keys: Any
    ) -> Self:
        """Stations at random places of an area (width and height, m); the same seed gives the same places."""
        return cls(_keys("random", keys, nodes=stations, area=area), seed=seed, directory=directory, name="Mesh.random")

    @classmethod
    def of(cls, *, seed: int = 1, directory: Path | str | None = None, **keys: Any) -> Self:
        """Any scenario, by its keys: `Mesh.of(topology="positions", positions=[[0, 0], [150, 0]])`."""
        return cls({"flows": [], **keys}, seed=seed, directory=directory, name="Mesh.of")

    @classmethod
    def from_toml(cls, path: Path | str, *, seed: int = 1, directory: Path | str | None = None, **overrides: Any) -> Self:
        """The scenario of a file, without its traffic and events. `overrides` replace keys, dotted for tables:
        `**{"routing.link": "hello"}`."""
        return cls(overrides, seed=seed, directory=directory, file=path, name=str(path))

    # --- up and down --------------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        if self._connection is not None:
            raise WrongRequest(f"{self.name}: a mesh comes up once; make another one")
        self._connection = Connection(self._request)
        try:
            self._ready = self._connection.wait_until_ready()
        except BaseException:
            self._connection.close(in_order=False)
            raise
        for node in self._ready["nodes"]:
            self._nodes[node["name"]] = Station(self._connection, node["name"], node["address"], node["radio"], node["address6"])
        return self

    def __exit__(self, kind: type[BaseException] | None, _value: BaseException | None, _trace: TracebackType | None) -> None:
        self.close(in_order=kind is None or issubclass(kind, Exception), check=kind is None)

    def close(self, *, in_order: bool = True, check: bool = True) -> None:
        """Take the mesh down, as the end of the `with` block does. `check`: raise MeshError if it had failed by itself."""
        if self._connection is None:
            return
        end = self._connection.close(in_order=in_order)
        self._verdict = Verdict(end.get("verdict") or "none", tuple(end.get("reasons", ())))
        if check and end["error"] is not None:
            raise KINDS.get(end["kind"], MeshError)(end["error"])

    # --- nodes --------------------------------------------------------------------------------------------------------

    def __getitem__(self, name: str) -> Station:
        self._up()
        if not isinstance(name, str) or name not in self._nodes:
            raise WrongRequest(f"{self.name}: there is no station {name!r}; the stations are {', '.join(self._nodes)}")
        return self._nodes[name]

    def __iter__(self) -> Iterator[Station]:
        return iter(self._nodes.values())

    def __len__(self) -> int:
        return len(self._nodes)

    @property
    def stations(self) -> list[Station]:
        """The stations, in the order of their numbers."""
        self._up()
        return [node for node in self._nodes.values() if node.has_radio]

    @property
    def hosts(self) -> list[Station]:
        """The wired hosts, in the order of their wires."""
        self._up()
        return [node for node in self._nodes.values() if not node.has_radio]

    # --- the air ------------------------------------------------------------------------------------------------------

    def break_link(self, one: Station | str, other: Station | str) -> None:
        """From now on no data frame arrives between the two, in both directions; both stay on the air."""
        self._ask("break_link", one=self._station(one).name, other=self._station(other).name)

    def restore_link(self, one: Station | str, other: Station | str) -> None:
        """The link is as it was before `break_link`."""
        self._ask("restore_link", one=self._station(one).name, other=self._station(other).name)

    def links(self) -> set[tuple[str, str]]:
        """Directed pairs of stations in each other's range now, without the broken ones."""
        return {(source, target) for source, target in self._ask("links")["links"]}

    def positions(self) -> dict[str, tuple[float, float, float]]:
        """The places of the stations now, m."""
        return {name: (x, y, z) for name, (x, y, z) in self._ask("positions")["positions"].items()}

    # --- measuring ----------------------------------------------------------------------------------------------------

    def tcp(self, source: Station | str, target: Station | str, seconds: int = 5, *, ip: int = 4) -> Throughput:
        """Measure TCP by iperf3 from `source` to `target`, over IPv4 or IPv6. Raises MeshError if no connection succeeds within
        10 s."""
        ends = self._station(source), self._station(target)
        if ends[0].name == ends[1].name:
            raise WrongRequest(f"tcp({ends[0]}, {ends[1]}): a station would measure itself; name two")
        return iperf.measure(*ends, seconds, number=next(self._measurements), ip=ip)

    def wait_until(self, condition: Callable[[], T], timeout: float = 30, interval: float = POLL_S) -> T:
        """Call `condition` until it returns a true value, and return that. Raises MeshTimeout after `timeout` seconds."""
        limit_s = seconds(timeout, "wait_until")
        deadline = math.inf if limit_s is None else time.monotonic() + limit_s
        while not (value := condition()):
            self._ask("check")  # a mesh that has failed says so at once
            if time.monotonic() > deadline:
                name = getattr(condition, "__qualname__", repr(condition))
                raise MeshTimeout(f"wait_until: {name} is {value!r} after {timeout:g} s")
            time.sleep(max(0.0, number(interval, "wait_until: interval")))
        return value

    # --- results ------------------------------------------------------------------------------------------------------

    @property
    def directory(self) -> Path:
        """The folder of the results (formats/results.md): captures, logs, air log, verdict."""
        self._up()
        return Path(self._ready["directory"])

    @property
    def captures(self) -> dict[str, Path]:
        """The capture files: of each station, `<station>.routing` of its routing packets alone, and `air`, every frame on the
        air. They are complete after the end."""
        found = {path.stem: path for path in sorted((self.directory / "captures").glob("*.pcap"))}
        return {**found, AIR: self.directory / "air.pcapng"}

    def verdict(self) -> Verdict:
        """Whether the machine kept up: so far, and after the end for the whole time."""
        if self._verdict is None:
            answer = self._ask("verdict")
            return Verdict(answer["verdict"], tuple(answer["reasons"]))
        return self._verdict

    def __repr__(self) -> str:
        return f"<{self.name}: {', '.join(self._nodes) or 'not up'}>"

    def _up(self) -> Connection:
        if self._connection is None or not self._ready:
            raise WrongRequest(f"{self.name}: is not up; use it in a with block")
        return self._connection

    def _ask(self, op: str, **arguments: Any) -> dict[str, Any]:
        return self._up().request(op, arguments)[0]

    def _station(self, station: Station | str) -> Station:
        return station if isinstance(station, Station) else self[station]


def _keys(topology: str, keys: dict[str, Any], **own: Any) -> dict[str, Any]:
    """The keys of a scenario of this topology. Traffic is the test's own."""
    return {"topology": topology, **own, "flows": [], **keys}
