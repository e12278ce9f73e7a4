"""Renders the page of a report: the template with its style sheet inside, everything escaped."""

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from analysis.reports.content import Page
from record.files import write_atomic

NAME = "report.html"
HERE = Path(__file__).parent


def render(page: Page) -> str:
    """The text of the page."""
    environment = Environment(
        loader=FileSystemLoader(HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    style = Markup((HERE / "style.css").read_text(encoding="utf-8"))
    return environment.get_template("page.html.j2").render(page=page, style=style)


def write_page(directory: Path, page: Page) -> Path:
    """Write the page into the folder; returns its path."""
    path = directory / NAME
    write_atomic(path, render(page))
    return path
