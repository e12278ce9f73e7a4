"""A skipped test says how to enable it: its reason names a command, a page or a variable, or a property of the machine.

Reasons that a test takes from an error message have the remedy of that message and are not checked here.
"""

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
REMEDY = re.compile(r"\./setup\.sh|\./manet |manet vm |apt-get install \S|modprobe \S|ulimit \S|\bMANET_\w+|\.md\b")
OF_THE_MACHINE = re.compile(r"^(this kernel|this machine|cgroup version 2 has|a guest |not in a guest|git cannot)")


def reasons_of(source: str) -> Iterator[tuple[int, str]]:
    """(Line, text) of each reason in the source that is a text; `{}` stands for what is filled in."""
    for node in ast.walk(ast.parse(source)) if "skip" in source else ():
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr not in ("skip", "skipif", "importorskip") or not ast.unparse(node.func).startswith("pytest."):
                continue
            given = [key.value for key in node.keywords if key.arg == "reason"]
            for reason in given or (node.args[:1] if node.func.attr == "skip" else []):
                if (text := text_of(reason)) is not None:
                    yield node.lineno, text


def text_of(reason: ast.expr) -> str | None:
    if isinstance(reason, ast.Constant):
        return str(reason.value)
    if isinstance(reason, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in reason.values)
    return None


def without_remedy(source: str) -> list[str]:
    return [f"{line}: {text}" for line, text in reasons_of(source) if not (REMEDY.search(text) or OF_THE_MACHINE.search(text))]


def test_every_skip_reason_names_the_remedy():
    listed = subprocess.run(["git", "ls-files", "*.py"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode != 0:
        pytest.skip(f"git cannot list the checkout's files: {listed.stderr.strip()}")
    tests = [name for name in listed.stdout.split() if "tests/" in name and (ROOT / name).exists() and name != "tests/probe.py"]
    sources = {name: (ROOT / name).read_text() for name in tests}
    assert sum(1 for source in sources.values() for _ in reasons_of(source)) > 80
    assert [f"{name}:{line}" for name, source in sources.items() for line in without_remedy(source)] == []


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ('pytest.skip("needs clang")', ["1: needs clang"]),
        ('pytest.skip(f"needs {tool}")', ["1: needs {}"]),
        ('pytest.mark.skipif(True, reason="no tshark")', ["1: no tshark"]),
        ('pytest.skip("needs clang (./setup.sh)")', []),
        ('pytest.skip("this kernel has no IPv6")', []),
        ("pytest.skip(str(problem))", []),
    ],
)
def test_a_reason_without_a_remedy_is_found(source, found):
    assert without_remedy(source) == found
