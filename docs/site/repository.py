"""The repository's Markdown files, and its other files as pages."""

import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LANGUAGES = {".py": "python", ".toml": "toml", ".rs": "rust", ".sh": "sh", ".json": "json", ".yml": "yaml", ".service": "ini"}
HIDDEN = "---\nsearch:\n  exclude: true\nhide: [toc]\n---\n"


@cache
def files() -> tuple[str, ...]:
    """All files that belong to the repository, committed or not yet, by path."""
    command = ["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return tuple(sorted(name for name in set(listed) if (ROOT / name).is_file()))


def pages() -> list[str]:
    """The Markdown files."""
    return [name for name in files() if name.endswith(".md")]


def shown(name: str) -> str:
    """A page with the text of a file, or with the names in a folder. The search does not look into it."""
    return HIDDEN + (_folder(name) if (ROOT / name).is_dir() else _text(name))


def _text(name: str) -> str:
    text = (ROOT / name).read_text(encoding="utf-8")
    language = LANGUAGES.get(Path(name).suffix, "text")
    return f"# {name}\n\n````{language}\n{text.rstrip()}\n````\n"


def _folder(name: str) -> str:
    """Its files; of its folders with a README, a link to that."""
    inside = [other.removeprefix(f"{name}/") for other in files() if other.startswith(f"{name}/")]
    entries = sorted({path.partition("/")[0] + "/" * ("/" in path) for path in inside})
    rows = [f"- [{entry}]({entry}README.md)" if f"{entry}README.md" in inside else f"- `{entry}`" for entry in entries]
    return f"# {name}\n\n" + "\n".join(rows) + "\n"
