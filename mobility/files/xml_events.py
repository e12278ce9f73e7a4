"""Expat's events for movement files in XML. A document type is refused, which prevents the expansion of entities."""

import xml.parsers.expat
from typing import NoReturn

from mobility.trace import TraceError, plain_number


class XmlReader:
    """A file that errors call `name`; `kind` says in them what it must be. A subclass has `start`, `end` and `text`."""

    def __init__(self, name: str, kind: str) -> None:
        self.name, self.kind = name, kind
        self.expat = xml.parsers.expat.ParserCreate(namespace_separator=" ")
        self.expat.buffer_text = True
        self.expat.StartElementHandler = lambda tag, attributes: self.start(tag.rpartition(" ")[2], attributes)
        self.expat.EndElementHandler = lambda tag: self.end(tag.rpartition(" ")[2])
        self.expat.CharacterDataHandler = self.text
        self.expat.StartDoctypeDeclHandler = lambda *_: self.fail(f"has a document type, which {kind} has not; remove it")

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """An element begins."""

    def end(self, tag: str) -> None:
        """An element ends."""

    def text(self, text: str) -> None:
        """Text of the element."""

    def feed(self, data: bytes) -> None:
        """Read the whole file. Raises TraceError, which names the line."""
        try:
            self.expat.Parse(data, True)
        except xml.parsers.expat.ExpatError as problem:
            reason = xml.parsers.expat.ErrorString(problem.code)
            raise TraceError(f"{self.name}: line {problem.lineno}: is not XML ({reason}); give a {self.kind} file") from None
        except (LookupError, ValueError) as problem:
            if isinstance(problem, TraceError):
                raise
            raise TraceError(f"{self.name}: line 1: its encoding is not known; save it as UTF-8") from None

    def number(self, key: str, text: str, maximum: float) -> float:
        """A number from `-maximum` to `maximum`. Raises TraceError."""
        value = plain_number(text)
        if not abs(value) <= maximum:
            self.fail(f'{key} "{text[:40]}" must be a number from {-maximum:g} to {maximum:g}; correct it')
        return value

    def fail(self, text: str) -> NoReturn:
        """Raise TraceError for the current line."""
        plain = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)  # texts of the file may have line breaks
        raise TraceError(f"{self.name}: line {self.expat.CurrentLineNumber}: {plain}")
