"""Renders the page of a report: the template with its style sheet inside, everything escaped."""

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup

from analysis.reports.content import Page
from record.files import write_atomic

NAME = "report.html"
HERE = Path(__file__).parent


def template_of(path: Path) -> Template:
    """A template that escapes every text, and refuses a name that it is not given."""
    environment = Environment(
        loader=FileSystemLoader(path.parent), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.get_template(path.name)


def render(page: Page) -> str:
    """The text of the page."""
    style = Markup((HERE / "style.css").read_text(encoding="utf-8"))
    return template_of(HERE / "page.html.j2").render(page=page, style=style)


def write_page(directory: Path, page: Page) -> Path:
    """Write the page into the folder; returns its path."""
    path = directory / NAME
    write_atomic(path, render(page))
    return path
