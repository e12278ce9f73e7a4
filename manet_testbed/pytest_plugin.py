"""pytest: the fixture `mesh`, and the evidence of a failed test (docs/testing-with-pytest.md).

    def test_routes(mesh):
        chain = mesh.chain(3, routing="babeld")
        chain["sta1"].wait_until_succeeds(["ping", "-c1", "-W1", chain["sta3"]], timeout=60)

Installed with `pip install CHECKOUT`, or named: `pytest -p manet_testbed.pytest_plugin` with the checkout in PYTHONPATH.
"""

import contextlib
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from manet_testbed.errors import MeshError, MissingRequirement
from manet_testbed.location import find
from manet_testbed.mesh import Mesh
from manet_testbed.station import Station

MAX_NODES = 10  # whose routes are printed
REMEDY = "run it again on a quieter machine, with fewer stations or tests at a time"


class MeshSuspect(pytest.PytestWarning):
    """A test whose mesh was late at times (docs/verdict.md): a failure, or a measured number, may be the machine's."""


class Meshes:
    """The factory behind the fixtures: each call brings a mesh up, which ends with the test (or the module). The keys and
    arguments are those of `Mesh`."""

    def __init__(self, folder: Path, *, required: bool) -> None:
        self._folder, self._required = folder, required
        self.up: dict[Mesh, set[str]] = {}  # the verdicts that tests have reported

    def chain(self, stations: int, **keys: Any) -> Mesh:
        """See Mesh.chain."""
        return self._enter(Mesh.chain(stations, **self._with_folder(keys)))

    def grid(self, rows: int, columns: int, **keys: Any) -> Mesh:
        """See Mesh.grid."""
        return self._enter(Mesh.grid(rows, columns, **self._with_folder(keys)))

    def random(self, stations: int, *, area: tuple[float, float], **keys: Any) -> Mesh:
        """See Mesh.random."""
        return self._enter(Mesh.random(stations, area=area, **self._with_folder(keys)))

    def of(self, **keys: Any) -> Mesh:
        """See Mesh.of."""
        return self._enter(Mesh.of(**self._with_folder(keys)))

    def from_toml(self, path: Path | str, **overrides: Any) -> Mesh:
        """See Mesh.from_toml."""
        return self._enter(Mesh.from_toml(path, **self._with_folder(overrides)))

    def close(self) -> None:
        """Take all of them down, the last first. Raises the first error of a mesh that had failed by itself."""
        problems: list[MeshError] = []
        for mesh in reversed([*self.up]):
            try:
                mesh.close()
            except MeshError as problem:
                problems.append(problem)
        if problems:
            raise problems[0]

    def _with_folder(self, keys: dict[str, Any]) -> dict[str, Any]:
        name = f"mesh{len(self.up) + 1}" if self.up else "mesh"
        return {"directory": self._folder / name, **keys}

    def _enter(self, mesh: Mesh) -> Mesh:
        try:
            mesh.__enter__()
        except MissingRequirement as problem:
            if self._required:
                raise
            pytest.skip(f"no mesh: {problem}")
        self.up[mesh] = set()
        return mesh


OF_NODE = pytest.StashKey[Meshes]()


@pytest.fixture
def mesh(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Meshes]:
    """A factory of meshes that end with the test: `mesh.chain(4)`. Results are below `tmp_path`."""
    yield from _factory(request, tmp_path)


@pytest.fixture(scope="module")
def mesh_module(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Meshes]:
    """Like `mesh`, for a mesh that all tests of a module share."""
    yield from _factory(request, tmp_path_factory.mktemp(request.node.name.replace("/", "_").removesuffix(".py")))


def _factory(request: pytest.FixtureRequest, folder: Path) -> Iterator[Meshes]:
    node = request.node
    node.stash[OF_NODE] = meshes = Meshes(folder, required=request.config.getoption("--manet-require"))
    yield meshes
    meshes.close()
    for one, reported in meshes.up.items():
        if isinstance(node, pytest.Item):
            node.user_properties += [("manet_results", str(one.directory)), ("manet_verdict", str(one.verdict()))]
        if one.verdict().word not in reported:
            _judge(node, one, reported)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the option."""
    group = parser.getgroup("manet", "a mesh of manet_testbed")
    text = "fail, instead of skip, the tests that need a mesh on a machine that has no namespaces, TUN or set-up checkout"
    group.addoption("--manet-require", action="store_true", help=text)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """A test fails if one of its meshes is void by its end, or has failed."""
    result = yield
    for one, reported in _meshes(item):
        _judge(item, one, reported)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """The report of a failed test says where the evidence of its meshes is."""
    report = yield
    if report.failed and report.when in ("setup", "call"):
        for one, _reported in _meshes(item):
            report.sections.append((f"mesh: {one.directory.name}", _evidence(one)))
            item.user_properties.extend(("manet_capture", str(path)) for path in one.captures.values())
    return report


def _meshes(item: pytest.Item) -> list[tuple[Mesh, set[str]]]:
    """The meshes that a test uses, each with the verdicts that were reported."""
    nodes = [item, *([item.getparent(pytest.Module)] if "mesh_module" in getattr(item, "fixturenames", ()) else [])]
    return [one for node in nodes if node is not None and OF_NODE in node.stash for one in node.stash[OF_NODE].up.items()]


def _judge(node: pytest.Item, mesh: Mesh, reported: set[str]) -> None:
    """Fail for a void mesh, warn for a suspect one, and add the verdict to those that tests have `reported`."""
    verdict = mesh.verdict()
    reported.add(verdict.word)
    if verdict.word == "void":
        pytest.fail(f"{mesh.name}: the mesh is {verdict}, so that its results do not count; {REMEDY}", pytrace=False)
    elif verdict.word == "suspect":
        node.warn(MeshSuspect(f"{mesh.name}: the mesh is {verdict}"))


def _evidence(mesh: Mesh) -> str:
    try:
        verdict = str(mesh.verdict())
    except MeshError as problem:
        verdict = f"none: {problem}"
    lines = [f"verdict: {verdict}", f"results: {mesh.directory}", f"logs: {mesh.directory / 'log'}"]
    lines += [f"capture of {name}: {path}" for name, path in mesh.captures.items()]
    with contextlib.suppress(MeshError):  # it has ended
        lines += [f"routes of {station}: {_routes(station)}" for station in list(mesh)[:MAX_NODES]]
    testbed = find()
    return "\n".join([*lines, f"places and links: {testbed.manet if testbed else 'manet'} map {mesh.directory}"])


def _routes(station: Station) -> str:
    return ", ".join(str(route) for route in station.routes()) or "none"
