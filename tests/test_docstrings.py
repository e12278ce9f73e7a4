"""Every public Python item outside tests has a docstring: modules, functions and classes of a module, methods and properties.

Public is a name without a leading underscore, in a class that is public itself. Functions inside functions are not. What `add` of
each verb does is said once, for all of them, in testbed/commands.
"""

import ast
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def python_files() -> list[str]:
    """Python files of the checkout, relative to its root; without tests, their helpers and untracked files."""
    listed = subprocess.run(["git", "ls-files", "*.py"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode != 0:
        pytest.skip(f"git cannot list the checkout's files: {listed.stderr.strip()}")
    return [name for name in listed.stdout.split() if not is_test(Path(name)) and (ROOT / name).exists()]


def is_test(path: Path) -> bool:
    return "tests" in path.parts or path.name.startswith("test_") or path.name == "conftest.py"


def undocumented(source: str) -> list[str]:
    """Qualified names of the public items without a docstring; `module` for a text that is not empty."""
    module = ast.parse(source)
    missing = ["module"] if module.body and not ast.get_docstring(module) else []
    return missing + [name for name, item in public_items(module) if not ast.get_docstring(item)]


def public_items(owner, prefix=""):
    for item in owner.body:
        if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and not item.name.startswith("_"):
            yield prefix + item.name, item
            if isinstance(item, ast.ClassDef):
                yield from public_items(item, f"{prefix}{item.name}.")


def test_every_public_item_has_a_docstring():
    paths = python_files()
    assert {"testbed/runs/run.py", "examples/udp.py"} <= set(paths)
    missing = [(path, name) for path in paths for name in undocumented((ROOT / path).read_text())]
    assert [f"{path}: {name}" for path, name in missing if not (path.startswith("testbed/commands/") and name == "add")] == []


def test_an_item_without_a_docstring_is_found():
    source = '''
class Radio:
    """Documented."""

    @property
    def range_m(self):
        return 250

    def _hidden(self):
        return 0

def send():
    def inner():
        return 0
    return inner

class _Private:
    def method(self):
        return 0
'''
    assert undocumented(source) == ["module", "Radio.range_m", "send"]
    assert undocumented('"""A module."""\n') == undocumented("") == []
