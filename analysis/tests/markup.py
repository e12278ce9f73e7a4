"""The structure of an HTML page, for tests: tags, headings, ids, links and all that it loads; unclosed elements are problems."""

from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "img", "br", "link", "input", "hr"}
LOADING = {"src", "srcset", "data", "poster", "background", "action"}
LANDMARKS = {"header", "nav", "main", "footer"}


@dataclass
class Outline:
    """`loaded` are the addresses that a browser would fetch by itself; `links` those of links."""

    tags: set[str] = field(default_factory=set)
    headings: list[int] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    loaded: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    text: str = ""

    @property
    def landmarks(self) -> set[str]:
        return self.tags & LANDMARKS


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found, self.open = Outline(), list[str]()

    def handle_starttag(self, tag, attrs):
        self.found.tags.add(tag)
        if tag not in VOID:
            self.open.append(tag)
        if tag in ("h1", "h2", "h3", "h4", "h5"):
            self.found.headings.append(int(tag[1]))
        for key, value in attrs:
            self._attribute(tag, key, value or "")

    def _attribute(self, tag, key, value):
        if key == "id":
            self.found.ids.append(value)
        elif key == "href" and tag == "a":
            self.found.links.append(value)
        elif (key in ("href", "xlink:href") and not value.startswith("#")) or (key in LOADING and not value.startswith("data:")):
            self.found.loaded.append(value)
        elif key.startswith("on") or "url(http" in value:
            self.found.problems.append(f"{tag} {key}={value}")

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.found.problems.append(f"</{tag}> closes another element")

    def handle_data(self, data):
        if "url(" in data and self.open[-1:] == ["style"]:
            self.found.problems.append("the style sheet loads a file")
        if "style" not in self.open:
            self.found.text += data


def outline(html: str) -> Outline:
    """The structure of the page."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    reader.found.problems += [f"<{tag}> is not closed" for tag in reader.open]
    return reader.found
