"""Each limit, unit and default of a key stands in one place: with the program that owns it (formats/schema)."""

import ast
import re
from pathlib import Path

import pytest

from scenarios import owned
from scenarios.routing import OWN_DAEMONS

ROOT = Path(__file__).resolve().parents[1]
# Keys of a scenario that the medium owns under the same name; those of radio, propagation, fading and daemons are added to them.
MEDIUMS = {"interference", "queue", "control_first", "error_rate", "unit", "frames", "mode", "rates", "loss_db"}
# Classes of what has another owner and keys of the same names: third-party daemons, their descriptions, parameters of a TCP.
THIRD_PARTY = {"BatmanAdv", "Option", "Parameter", "Radio"}
DECLARING = [
    *(
        str(path.relative_to(ROOT))
        for name in OWN_DAEMONS
        for path in sorted((ROOT / "routing" / name / "src").rglob("*.rs"))
        if "keys! {" in path.read_text()
    ),
    "medium/src/config.rs",
    "medium/src/config/loaded.rs",
    "medium/src/phy/radio.rs",
    "medium/src/phy/radio/check.rs",
    "medium/src/phy/fading.rs",
    "medium/src/phy/propagation.rs",
    "medium/src/run_verdict.rs",
]
# a comparison with a number, or a range of numbers
COMPARED = re.compile(r"(?<![-=])[<>]=?\s*-?\d|\d\.\.=?-?\d|\.contains\(&")


def owned_names():
    """The names of all keys that a scenario passes to our own programs, without `arp`, which is the kernel's in a scenario."""
    tables = [owned.schema(name)["properties"] for name in ("radio", *OWN_DAEMONS)]
    tables += [table["properties"] for key in ("propagation", "fading") for table in owned.node("medium", key)["oneOf"]]
    return MEDIUMS | {name for table in tables for name in table} - {"model", "name", "source", "arp", "file"}


def second_places(source, names):
    """Lines of a module of scenarios/ that state a number, name or truth value of an owned key by themselves."""
    found = []
    for owner in ast.walk(ast.parse(source)):
        if not isinstance(owner, ast.ClassDef) or owner.name in THIRD_PARTY:
            continue
        for field in owner.body:
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and field.target.id in names:
                parts = [field.annotation, *([field.value] if field.value else [])]
                if any(states_a_value(part) for part in parts):
                    found.append(f"{owner.name}.{field.target.id}")
    return found


def states_a_value(node):
    if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("owned."):
        return False
    if isinstance(node, ast.Constant):
        return node.value not in (None, ...)
    return any(states_a_value(child) for child in ast.iter_child_nodes(node))


def completed_in_code(source, names):
    """Functions of a module of scenarios/ that treat an option by its name, to which the daemon's schema has a formula."""
    found = []
    for function in ast.walk(ast.parse(source)):
        if isinstance(function, ast.FunctionDef):
            named = {node.attr for node in ast.walk(function) if isinstance(node, ast.Attribute)}
            named |= {node.value for node in ast.walk(function) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
            found += sorted(f"{function.name}: {name}" for name in named & names)
    return found


def checks_of(source):
    """The bodies of the functions `check...` of a Rust file, its tests left out."""
    code = source.split("#[cfg(test)]")[0]
    return [match.group(0) for match in re.finditer(r"\n( *)(?:pub )?fn check\w*\(.*?\n\1}\n", code, re.DOTALL)]


@pytest.mark.parametrize("path", sorted((ROOT / "scenarios").glob("*.py")), ids=lambda path: path.stem)
def test_no_scenario_class_states_a_value_owned_by_a_program(path):
    assert second_places(path.read_text(), owned_names()) == []


def derived_names():
    schemas = [owned.schema(name)["properties"] for name in OWN_DAEMONS]
    return {name for keys in schemas for name, key in keys.items() if "derived" in key}


@pytest.mark.parametrize("path", sorted((ROOT / "scenarios").glob("*.py")), ids=lambda path: path.stem)
def test_no_function_of_a_scenario_derives_an_option_of_a_daemon(path):
    assert completed_in_code(path.read_text(), derived_names()) == []


def test_a_second_derivation_is_found():
    assert {"my_route_timeout", "ttl_start", "gratuitous"} <= derived_names()
    wrong = 'def f(self):\n    if self.ttl_start is None:\n        set(self, "gratuitous", True)\n'
    assert completed_in_code(wrong, derived_names()) == ["f: gratuitous", "f: ttl_start"]


def test_the_smallest_mtu_has_one_owner():
    """RFC 791's 576 bytes. (What an ICMP error quotes is RFC 1812's.)"""
    assert {owned.schema(name)["min_mtu_bytes"] for name in OWN_DAEMONS} == {576}
    rust = [path for folder in ("routing", "medium") for path in (ROOT / folder).rglob("*.rs")]
    sources = [*(ROOT / "scenarios").rglob("*.py"), *rust]
    stating = {path.relative_to(ROOT) for path in sources if re.search(r"= *576\b", path.read_text())}
    assert stating == {Path("routing/node/src/protocol.rs"), Path("routing/node/src/packet/icmp.rs")}


def test_the_largest_msdu_has_one_owner():
    """IEEE 802.11-2020, 9.2.4.7.1: 2304 octets, of which LLC and SNAP take 8."""
    assert owned.schema("medium")["max_mtu_bytes"] == 2304 - 8
    assert owned.bounds("medium", "traffic.bytes")[1] == 2304 - 8
    rust = [path for folder in ("routing", "medium") for path in (ROOT / folder).rglob("*.rs")]
    sources = [*(ROOT / "scenarios").rglob("*.py"), *rust]
    stating = {path.relative_to(ROOT) for path in sources if re.search(r"\b(2304|2296)\b", path.read_text())}
    assert stating == {Path("medium/src/wire/dot11.rs")}


def test_a_second_place_is_found():
    names = owned_names()
    assert {"hello_interval", "sigma_db", "tx_power_w", "error_rate", "max_hops"} <= names
    wrong = "class Olsr(Protocol):\n    hello_interval: Annotated[Seconds, Field(ge=0.01)] = None\n    jitter: float = 0.25\n"
    assert second_places(wrong, names) == ["Olsr.hello_interval", "Olsr.jitter"]
    right = (
        "class Links(BaseModel):\n    error_rate: Annotated[float, owned.number('medium', 'links.error_rate')] | None = None\n"
    )
    assert second_places(right, names) == []
    assert COMPARED.search("if self.jitter > 1.0 {") and COMPARED.search("if !(1..=60).contains(&hops) {")
    assert not COMPARED.search("fn check(&self) -> Result<(), String> {")


@pytest.mark.parametrize("path", DECLARING)
def test_no_check_of_a_program_states_a_limit_beside_the_declarations(path):
    """Checks across keys compare keys with each other; limits of one key are its declaration's."""
    checks = checks_of((ROOT / path).read_text())
    lines = [line.strip() for body in checks for line in body.splitlines() if COMPARED.search(line)]
    assert [line for line in lines if "LONG_SLOT_US" not in line and "basic.contains" not in line] == []


def test_the_checks_of_the_programs_are_found():
    with_checks = {path for path in DECLARING if checks_of((ROOT / path).read_text())}
    assert {f"routing/{name}/src/options.rs" for name in ("aodv", "dsdv", "olsr", "dsr", "adv", "tora")} <= with_checks
    assert {"medium/src/config/loaded.rs", "medium/src/phy/radio/check.rs"} <= with_checks


@pytest.mark.parametrize("path", DECLARING)
def test_no_default_is_written_beside_the_declarations(path):
    code = (ROOT / path).read_text().split("#[cfg(test)]")[0]
    assert set(re.findall(r"impl Default for (\w+)", code)) <= {"Model", "Fading"}
