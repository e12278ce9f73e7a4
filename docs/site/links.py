"""Links from pages to other files of the repository: pictures and HTML are copied, all other files and folders become pages."""

import os.path
import re
from pathlib import Path, PurePosixPath

from docs.site.repository import ROOT

LINK = re.compile(r'(\]\(|\bsrc=")([^)"\s#]+)')
ASSETS = (".png", ".svg", ".html", ".bundle", ".zip")
FENCE = re.compile(r"^\s*(```+|~~~+)")


def targets(pages: list[str]) -> set[str]:
    """Files and folders other than pages to which the pages link, by path."""
    found = set()
    for page in pages:
        lines = [line for line, code in _marked((ROOT / page).read_text(encoding="utf-8")) if not code]
        found |= {_target(page, link) for _, link in LINK.findall("\n".join(lines))}
    return {name for name in found if name and not name.endswith(".md") and page_of(name) not in pages}


def to_pages(text: str, page: str) -> str:
    """The text with links to files replaced by links to their pages."""

    def changed(match: re.Match[str]) -> str:
        target = _target(page, match[2])
        if target is None or target.endswith(".md") or is_asset(ROOT / target):
            return match[0]
        return match[1] + os.path.relpath(page_of(target), PurePosixPath(page).parent)

    return "\n".join(line if code else LINK.sub(changed, line) for line, code in _marked(text))


def page_of(target: str) -> str:
    """The page that shows a file or folder."""
    return f"{target}/README.md" if (ROOT / target).is_dir() else f"{target}.md"


def is_asset(path: Path) -> bool:
    """Whether a file is copied as it is."""
    return path.suffix in ASSETS


def without_dead(path: Path) -> str:
    """The text of an HTML file; links to files that the repository does not have become plain text."""

    def kept(match: re.Match[str]) -> str:
        return match[0] if (path.parent / match[1]).exists() else match[2]

    return re.sub(r'<a href="([^"#:]+)">(.*?)</a>', kept, path.read_text(encoding="utf-8"))


def _target(page: str, link: str) -> str | None:
    """The path in the repository to which a link of a page leads, if there is such a file."""
    if "://" in link or link.startswith(("/", "mailto:")):
        return None
    name = os.path.normpath(PurePosixPath(page).parent / link)
    return name if (ROOT / name).exists() else None


def _marked(text: str) -> list[tuple[str, bool]]:
    """The lines, each with whether it belongs to a fenced block."""
    found, fence = [], ""
    for line in text.split("\n"):
        mark = FENCE.match(line)
        found.append((line, bool(fence or mark)))
        if mark and not fence:
            fence = mark[1]
        elif mark and mark[1].startswith(fence):
            fence = ""
    return found
