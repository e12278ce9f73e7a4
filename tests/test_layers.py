"""Imports point to lower levels only (docs/architecture.md), in Python and in Cargo.toml.

Level 0 formats; 1 engine, netlink, topologies, mobility, kernel-tcp; 2 medium, routing, keys; 3 traffic; 4 scenarios; 5
record; 6 analysis; 7 experiments, testbed; 8 manet_testbed; 9 docs, examples, image, tests.
A folder may use its own modules and those of lower levels; of its own level nothing else.
"""

import ast
import graphlib
import importlib.metadata
import re
import sys
import tomllib
from pathlib import Path

import pytest

from tests.rust_modules import components, cycles

ROOT = Path(__file__).resolve().parents[1]
LEVELS = {
    "formats": 0,
    "engine": 1, "netlink": 1, "topologies": 1, "mobility": 1, "kernel-tcp": 1,
    "medium": 2, "routing": 2, "keys": 2,
    "traffic": 3,
    "scenarios": 4,
    "record": 5,
    "analysis": 6,
    "experiments": 7, "testbed": 7,
    "manet_testbed": 8,
    "docs": 9, "examples": 9, "image": 9, "tests": 9,
}  # fmt: skip
# A protocol is a machine; `node` is what it shares with the others, `host` the daemon around it.
PROTOCOL_CRATES = sorted(path.parents[1].name for path in (ROOT / "routing").glob("*/src/main.rs"))


def upward(folder, used):
    """Those of `used` that `folder` must not use."""
    return sorted(other for other in used if other in LEVELS and other != folder and LEVELS[other] >= LEVELS[folder])


def imported(source):
    """Top-level packages that a Python text imports, also inside functions."""
    packages = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            packages |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            packages.add(node.module.split(".")[0])
    return packages


def crate_folders():
    """Crate name: the top-level folder that it is in. (`manet-aodv` is in `routing/aodv`.)"""
    paths = [path for folder in LEVELS for path in (ROOT / folder).rglob("Cargo.toml")]
    return {tomllib.loads(path.read_text())["package"]["name"]: path.relative_to(ROOT).parts[0] for path in paths}


def crate_uses(manifest):
    """Folders of the project that a Cargo.toml depends on, in whatever table."""
    return {folder for name in dependencies(manifest) for folder in [CRATE_FOLDERS.get(name)] if folder}


def dependencies(manifest):
    """Names of crates, of whatever table."""
    tables = [manifest, *manifest.get("target", {}).values()]
    return {
        name
        for table in tables
        for kind in ("dependencies", "build-dependencies", "dev-dependencies")
        for name in table.get(kind, {})
    }


CRATE_FOLDERS = crate_folders()


PYTHON = sorted(
    path.relative_to(ROOT)
    for folder in LEVELS
    for path in (ROOT / folder).rglob("*.py")
    if not {"target", "__pycache__"} & set(path.parts)
)
CRATES = sorted(path.relative_to(ROOT) for folder in LEVELS for path in (ROOT / folder).rglob("Cargo.toml"))


def test_the_lists_of_this_file_are_complete():
    assert len(PYTHON) > 20
    assert Path("medium/Cargo.toml") in CRATES and Path("medium/daemon/Cargo.toml") in CRATES
    assert CRATE_FOLDERS["manet-medium"] == "medium" and CRATE_FOLDERS["manet-mesh"] == "tests"
    assert {"aodv", "dsdv", "olsr", "dsr", "adv", "tora"} <= set(PROTOCOL_CRATES)
    assert {CRATE_FOLDERS[f"manet-{name}"] for name in ("routing", "routing-host", *PROTOCOL_CRATES)} == {"routing"}


@pytest.mark.parametrize("path", PYTHON, ids=str)
def test_python_imports_point_down(path):
    assert upward(path.parts[0], imported((ROOT / path).read_text())) == []


@pytest.mark.parametrize("path", CRATES, ids=str)
def test_crates_depend_downwards(path):
    assert upward(path.parts[0], crate_uses(tomllib.loads((ROOT / path).read_text()))) == []


@pytest.mark.parametrize("protocol", PROTOCOL_CRATES)
def test_a_protocol_knows_no_other(protocol):
    used = dependencies(tomllib.loads((ROOT / "routing" / protocol / "Cargo.toml").read_text()))
    assert {name for name in used if CRATE_FOLDERS.get(name) == "routing"} == {"manet-routing", "manet-routing-host"}


@pytest.mark.parametrize("protocol", PROTOCOL_CRATES)
def test_the_library_of_a_protocol_has_no_host(protocol):
    """Cargo gives library and program of a package the same dependencies; fuzz/ compiles the libraries without the host."""
    manifest = tomllib.loads((ROOT / "routing" / protocol / "Cargo.toml").read_text())
    assert manifest["dependencies"]["manet-routing-host"]["optional"]
    sources = list((ROOT / "routing" / protocol / "src").rglob("*.rs"))
    assert [path.name for path in sources if "manet_routing_host" in path.read_text()] == ["main.rs"]


def test_fuzz_targets_take_the_libraries_alone():
    fuzz = tomllib.loads((ROOT / "fuzz" / "Cargo.toml").read_text())["dependencies"]
    protocols = [fuzz[f"manet-{name}"] for name in PROTOCOL_CRATES if f"manet-{name}" in fuzz]
    assert len(protocols) >= 4 and "manet-routing-host" not in fuzz
    assert not any(uses["default-features"] for uses in protocols)


def test_the_crate_shared_by_the_machines_depends_on_neither_host_nor_kernel():
    used = dependencies(tomllib.loads((ROOT / "routing" / "node" / "Cargo.toml").read_text()))
    assert used & {"manet-routing-host", "manet-netlink", "nix", "clap"} == set()


def test_every_folder_with_code_has_a_level():
    folders = {path.parts[0] for path in (p.relative_to(ROOT) for p in ROOT.glob("*/*.py"))}
    folders |= {path.relative_to(ROOT).parts[0] for path in ROOT.glob("*/Cargo.toml")}
    assert folders - set(LEVELS) - {"results", "target", "fuzz"} == set()


# Only the real drivers read a clock, so that whatever they drive does the same in virtual time; `unsafe` is for I/O.
CLOCKS = re.compile(r"Instant::now\(|SystemTime|ClockId|clock_gettime|elapsed\(\)")
DOES_IO = re.compile(r"\b(std::(net::\w*(Socket|Stream|Listener)|thread|fs|process::Command)|rustix|nix|libc)\b")
HOST = Path("routing/host/src")
RUST = sorted(
    path.relative_to(ROOT) for folder in ("engine", "netlink", "medium", "routing") for path in (ROOT / folder).rglob("*.rs")
)


def without_comments(path):
    return "\n".join(line.split("//")[0] for line in (ROOT / path).read_text().splitlines())


def without_tests(code):
    """The code before the tests of a file, which are its last item."""
    return re.split(r"#\[cfg\(test\)\]\n(?:pub(?:\(crate\))? )?mod tests \{", code)[0]


def test_only_the_real_drivers_read_a_clock():
    reading = [path for path in RUST if CLOCKS.search(without_comments(path)) and not path.is_relative_to(HOST)]
    assert reading == [Path("engine/src/real_time.rs")]


def test_unsafe_code_is_the_daemons_alone():
    unsafe = [path for path in RUST if re.search(r"\bunsafe\b", without_comments(path))]
    assert unsafe and all(path.is_relative_to("medium/daemon/src") or path.is_relative_to(HOST) for path in unsafe)


def test_the_medium_is_a_library_that_opens_nothing():
    manifest = tomllib.loads((ROOT / "medium" / "Cargo.toml").read_text())
    assert "bin" not in manifest
    assert set(manifest["dependencies"]) == {"crc32fast", "manet-engine", "manet-netlink", "serde", "serde_json", "toml"}
    within = [path for path in RUST if path.is_relative_to("medium/src")]
    assert len(within) > 30
    assert [str(path) for path in within if DOES_IO.search(without_tests(without_comments(path)))] == []


def test_no_machine_opens_a_socket_a_file_or_a_thread():
    within = [path for path in RUST if path.parts[0] == "routing" and "src" in path.parts and not path.is_relative_to(HOST)]
    assert len(within) > 40
    assert [str(path) for path in within if DOES_IO.search(without_comments(path))] == []


@pytest.mark.parametrize("crate", [str(path.parent) for path in CRATES])
def test_the_files_of_a_crate_do_not_use_each_other_in_circles(crate):
    """Apart from a module and its own submodules (tests/rust_modules.py)."""
    assert cycles(ROOT / crate / "src") == []


C_FUNCTION = re.compile(r"^(?!static\b)\w[\w *]*?\b(\w+)\([^;{}]*\)\n\{", re.MULTILINE)


def c_cycles(folder):
    """The files of user space that call each other's functions in circles; the modules of layers are called through a table."""
    texts = {path.name: path.read_text() for path in folder.glob("*.c") if not path.name.endswith(".bpf.c")}
    defined = {name: set(C_FUNCTION.findall(text)) for name, text in texts.items()}
    called = {name: set(re.findall(r"\b(\w+)\(", text)) for name, text in texts.items()}
    graph = {name: {other for other in texts if other != name and called[name] & defined[other]} for name in texts}
    return sorted(sorted(component) for component in components(graph) if len(component) > 1)


@pytest.mark.parametrize("folder", ["kernel-tcp", "kernel-tcp/layers"])
def test_the_files_of_kernel_tcp_do_not_call_each_other_in_circles(folder):
    assert c_cycles(ROOT / folder) == []


def test_a_circle_of_calls_is_found(tmp_path):
    (tmp_path / "a.c").write_text("int first(void)\n{\n\treturn second(1);\n}\n")
    (tmp_path / "b.c").write_text("static int own(void)\n{\n}\n\nstruct x *second(int n)\n{\n\tfirst();\n}\n")
    (tmp_path / "c.c").write_text("void third(void)\n{\n\tfirst();\n}\n")
    assert c_cycles(tmp_path) == [["a.c", "b.c"]]


# A text for an error tells a caller nothing that it could act upon.
TEXT_FOR_ERROR = re.compile(r"\bpub fn [^{;]*-> Result<[^{;]*, String>")


MESH = sorted(path.relative_to(ROOT) for path in (ROOT / "tests" / "mesh" / "src").rglob("*.rs"))


@pytest.mark.parametrize("path", [*RUST, *MESH], ids=str)
def test_the_errors_of_public_functions_have_types(path):
    assert TEXT_FOR_ERROR.findall(without_tests(without_comments(path))) == []


def test_a_text_for_an_error_is_found():
    assert TEXT_FOR_ERROR.search("    pub fn answer(question: &Question) -> Result<Answer, String> {")
    assert not TEXT_FOR_ERROR.search("pub fn a() -> Result<(), E> {}\nfn b() -> Result<(), String> {")


# Within testbed: who may use whom, beside columns, errors, output, programs and signals (testbed/README.md); commands and tests
# may all.
TESTBED = {
    "host": set(), "validate": set(), "campaigns": set(),
    "stages": {"host"}, "runs": {"host", "stages"}, "mn_wifi": {"host", "stages", "runs"},
}  # fmt: skip


@pytest.mark.parametrize("folder", TESTBED)
def test_the_folders_of_testbed_import_downwards(folder):
    files = list((ROOT / "testbed" / folder).rglob("*.py"))
    used = {match for path in files for match in re.findall(r"(?:from|import) testbed\.(\w+)", path.read_text())}
    assert len(files) > 3
    assert used - {folder, "columns", "errors", "output", "programs", "signals"} <= TESTBED[folder]


# Within analysis, from what was captured to what is drawn: a folder uses those before it. The store answers queries over nights,
# which are kept as it keeps runs.
ANALYSIS = (
    {"references"}, {"captures"}, {"metrics"}, {"story"}, {"tables"}, {"decisions"}, {"drawing"}, {"maps"}, {"reports"},
    {"exports"}, {"figures"}, {"store", "nights"},
)  # fmt: skip


@pytest.mark.parametrize("level", range(len(ANALYSIS)), ids=lambda level: "-".join(sorted(ANALYSIS[level])))
def test_the_folders_of_analysis_import_downwards(level):
    allowed = set().union(*ANALYSIS[: level + 1])
    for name in ANALYSIS[level]:
        files = [*(ROOT / "analysis").glob(f"{name}.py"), *(ROOT / "analysis" / name).glob("*.py")]
        assert files
        for path in files:
            assert set(re.findall(r"from analysis(?:\.| import )(\w+)", path.read_text())) <= allowed, path


def test_every_module_of_analysis_is_in_a_folder_with_a_level():
    parts = {path.relative_to(ROOT / "analysis").parts[0].removesuffix(".py") for path in (ROOT / "analysis").rglob("*.py")}
    assert parts - {"__init__", "tests"} == set().union(*ANALYSIS)


def test_an_import_that_points_up_is_found():
    assert upward("analysis", imported("def f():\n    from testbed.runs.run import x\nimport topologies.layouts")) == ["testbed"]
    assert upward("topologies", imported("import mobility")) == ["mobility"]
    up = {"dependencies": {"manet-engine": {}}, "dev-dependencies": {"manet-routing": {}}}
    assert upward("medium", crate_uses(up)) == ["routing"]
    assert upward("medium", crate_uses({"target": {"cfg(unix)": {"dependencies": {"manet-dsr": {}}}}})) == ["routing"]


# Python packages whose modules do not use each other in circles, also not for types alone.
WITHOUT_CIRCLES = (
    "scenarios", "keys", "traffic", "topologies", "mobility", "testbed/mn_wifi", "testbed/guests",
    "testbed/validate", "manet_testbed", "docs/site", "testbed/bundles", "testbed/campaigns", "testbed/claims",
    "testbed/commands", "testbed/nightly", "testbed/serve", "testbed/view", "testbed/web", "testbed/workers",
    "testbed/host", "testbed/runs", "testbed/stages", "record", "analysis",
)  # fmt: skip


def modules_used(sources):
    """Of each module, by its dotted name, the others that its text imports."""
    graph = {}
    for name, source in sources.items():
        nodes = list(ast.walk(ast.parse(source)))
        paths = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
        for node in (node for node in nodes if isinstance(node, ast.ImportFrom)):
            paths |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        graph[name] = paths & sources.keys() - {name}
    return graph


@pytest.mark.parametrize("folder", WITHOUT_CIRCLES)
def test_the_modules_of_a_package_do_not_use_each_other_in_circles(folder):
    within = [path.relative_to(ROOT) for path in (ROOT / folder).rglob("*.py") if "tests" not in path.parts]
    sources = {".".join(path.with_suffix("").parts): (ROOT / path).read_text() for path in within}
    assert len(sources) > 3
    graphlib.TopologicalSorter(modules_used(sources)).prepare()  # a CycleError names the modules


def test_a_circle_of_modules_is_found():
    sources = {"a.b": "from a.c import x", "a.c": "if TYPE_CHECKING:\n    from a import b"}
    with pytest.raises(graphlib.CycleError):
        graphlib.TopologicalSorter(modules_used(sources)).prepare()


# Scripts are written as for Mininet-WiFi: they name nothing of this project but its API under that name, and each other.
SCRIPTS = sorted((ROOT / "examples").glob("*.py"))


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_an_example_is_a_mininet_wifi_script(path):
    assert len(SCRIPTS) > 5
    known = {"mininet", "mn_wifi", *sys.stdlib_module_names, *(script.stem for script in SCRIPTS)}
    assert imported(path.read_text()) - known == set()


# `./manet test` installs requirements.lock and requirements-develop.lock: a test that needs more imports it where the test is
# skipped without it.
LOCKED = {
    re.match(r"[\w.-]+", line).group().lower().replace("_", "-")
    for lock in ("requirements.lock", "requirements-develop.lock")
    for line in (ROOT / lock).read_text().splitlines()
    if "==" in line and not line.startswith("#")
}
OWN = {path.name.removesuffix(".py") for path in ROOT.iterdir()}
DEBIANS = {"mininet"}


def imported_at_once(source):
    """Top-level packages that are imported with the text itself, before any `pytest.importorskip` at its top level."""
    nodes = ast.parse(source).body
    skips = (number for number, node in enumerate(nodes) if "importorskip" in ast.unparse(node).partition("\n")[0])
    imports = [node for node in nodes[: next(skips, None)] if isinstance(node, ast.Import | ast.ImportFrom)]
    return imported("\n".join(map(ast.unparse, imports)))


def beyond_the_locks(source, beside=()):
    others = imported_at_once(source) - OWN - DEBIANS - set(sys.stdlib_module_names) - set(beside)
    return {name for name in others if not {dist.lower().replace("_", "-") for dist in DISTRIBUTIONS.get(name, ())} & LOCKED}


DISTRIBUTIONS = importlib.metadata.packages_distributions()


@pytest.mark.parametrize("path", [path for path in PYTHON if "tests" in path.parts], ids=str)
def test_a_test_module_imports_what_setup_installs_for_tests(path):
    folders = (ROOT / path).parents[:2]  # kernel-tcp is no package: its tests import each other by their bare names
    beside = {other.stem for folder in folders for other in folder.glob("*.py")}
    assert beyond_the_locks((ROOT / path).read_text(), beside) == set()


def test_an_import_of_an_extra_is_found():
    assert beyond_the_locks("import pandas as pd\nimport polars\nfrom tests import probe\nimport json") == {"pandas"}
    assert beyond_the_locks("import pytest\npytest.importorskip('playwright')\nimport playwright") == set()


# A test process imports `manet_testbed` under its own Python: only `service`, which runs under the checkout's, and `lab`, which
# is imported when it is used, may use more; `packaging` is setuptools', and is not installed.
OTHERS = {"service", "lab", "packaging", "tests"}
CLIENT = sorted(path for path in (ROOT / "manet_testbed").rglob("*.py") if not OTHERS & set(path.relative_to(ROOT).parts))


@pytest.mark.parametrize("path", CLIENT, ids=lambda path: path.name)
def test_the_package_for_other_projects_needs_pytest_alone(path):
    assert len(CLIENT) > 8
    allowed = {"manet_testbed", *sys.stdlib_module_names, *({"pytest"} if path.name == "pytest_plugin.py" else ())}
    assert imported(path.read_text()) - allowed == set()
