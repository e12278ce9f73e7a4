"""The size of checkouts, side by side: lines without tests by language, modules by folder, circles of imports, locked packages.

Tests are left out: folders `tests`, `fuzz` and `benches`, files `test_*.py` and `conftest.py`, and `#[cfg(test)] mod tests`. Made
files and data count as `git ls-files` lists them.

`PYTHONPATH=. .venv/bin/python -P -m tests.bench.structure DIR...`
"""

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

from rich.console import Console

from tests.bench import Table
from tests.bench.__main__ import draw
from tests.rust_modules import components
from tests.test_layers import modules_used, without_tests

LANGUAGES = {"Python": (".py",), "Rust": (".rs",), "C": (".c", ".h"), "JavaScript": (".js",)}
NO_CODE = {"tests", "fuzz", "benches"}
PACKAGES = ("topologies", "mobility", "keys", "traffic", "scenarios", "record", "analysis", "testbed", "manet_testbed")
PACKAGE = re.compile(r"^[A-Za-z0-9][^ =]*==", re.MULTILINE)  # of a lock file
LARGEST = 5  # folders


def figures(checkout: Path) -> dict[str, str]:
    """Each figure of a checkout by its name."""
    listed = subprocess.run(["git", "-C", checkout, "ls-files"], capture_output=True, text=True, check=True).stdout.splitlines()
    code = [Path(name) for name in listed if not NO_CODE & set(Path(name).parts)]
    code = [path for path in code if not re.fullmatch(r"(test_.*|conftest)\.py", path.name)]
    found = {"files": f"{len(listed):,}"}
    for language, endings in LANGUAGES.items():
        texts = [_code(checkout / path) for path in code if path.suffix in endings]
        found[f"{language}: lines (files)"] = f"{sum(text.count(chr(10)) for text in texts):,} ({len(texts)})"
    modules = [path for path in code if path.suffix == ".py" and path.parts[0] in PACKAGES]
    largest = Counter(path.parent.as_posix() for path in modules if path.name != "__init__.py").most_common(LARGEST)
    found["modules of the largest folders"] = ", ".join(f"{folder} {count}" for folder, count in largest)
    sources = {_name(path): (checkout / path).read_text() for path in modules}
    circles = [component for component in components(modules_used(sources)) if len(component) > 1]
    found["circles of imports: modules in each"] = ", ".join(map(str, sorted(map(len, circles), reverse=True))) or "none"
    for name in sorted(name for name in listed if re.fullmatch(r"requirements.*\.lock", name)):
        found[name] = str(len(PACKAGE.findall((checkout / name).read_text())))
    return found


def _code(path: Path) -> str:
    return without_tests(path.read_text()) if path.suffix == ".rs" else path.read_text()


def _name(path: Path) -> str:
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


def main() -> int:
    if not (checkouts := [Path(word) for word in sys.argv[1:]]):
        print("structure: name one checkout or more", file=sys.stderr)
        return 2
    found = [figures(checkout) for checkout in checkouts]
    rows = [[name, *(one.get(name, "") for one in found)] for name in dict.fromkeys(name for one in found for name in one)]
    draw(Console(width=None if sys.stdout.isatty() else 200), Table("Structure", ["figure", *map(str, checkouts)], "fewer", rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
