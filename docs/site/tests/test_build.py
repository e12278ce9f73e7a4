"""The site: it builds without a warning, shows each page as GitHub's viewer does, and loads nothing from elsewhere."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("material", reason="MkDocs is missing; run ./setup.sh --pages")
from markdown_it import MarkdownIt

from docs.site import links, markdown, repository

pytestmark = pytest.mark.pages
ROOT = repository.ROOT
COUNTED = {  # parts of a page that must be as many in both renderers
    "items": "<li",
    "lists": "<[uo]l",
    "cells": "<td",
    "rows": "<tr",
    "headings": "<h[1-6]",
    "links": '<a href="',
    "pictures": "<img",
    "code": "<code",
    "blocks": "<pre",
}


def build(root, to):
    """`make site`: its output, and its status."""
    command = ["make", "-s", "-C", str(root), "site", f"SITE={to}", f"PYTHON={sys.executable}"]
    return subprocess.run(command, env={**os.environ, "PYTHONSAFEPATH": "1"}, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    to = tmp_path_factory.mktemp("site")
    done = build(ROOT, to)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    assert done.stdout == f"written   {to}/index.html\n"
    return to


BROKEN = {  # links, and the words in their warnings
    "[a](nothing.md)": "nothing.md",
    "[a](view.md#no-such-heading)": "no-such-heading",
    "[a](../results/none/README.md)": "results/none",
    "![a](pictures/none.png)": "pictures/none.png",
}


@pytest.fixture(scope="module")
def warnings(tmp_path_factory):
    """The warnings that end a build, in a copy of the repository with all mistakes. A strict build counts them at its end."""
    copy = tmp_path_factory.mktemp("copy")
    for name in repository.files():
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, copy / name)
    subprocess.run(["git", "init", "-q", copy], check=True)
    page = copy / "docs" / "map.md"
    page.write_text("\n\n".join([page.read_text(), *BROKEN, ""]))
    (copy / "docs" / "forgotten.md").write_text("# Forgotten\n")
    done = build(copy, copy / "site")
    assert done.returncode != 0 and f"Aborted with {len(BROKEN) + 1} warnings in strict mode" in done.stdout, done.stderr
    return done.stderr.split("WARNING")[1:]


def page_of(site, name):
    path = Path(name)
    return site / (path.parent / "index.html" if path.name == "README.md" else path.with_suffix(".html"))


def counts(html):
    return {name: len(re.findall(pattern, html)) for name, pattern in COUNTED.items()}


def article(html):
    """The page's own part, without the links that the theme adds to it."""
    inside = html[html.index("<article") : html.index("</article>")]
    inside = inside.split('<aside class="md-source-file"')[0]
    return re.sub(r'<a class="headerlink".*?</a>|<a id="__codelineno.*?</a>', "", inside)


@pytest.mark.parametrize("name", repository.pages())
def test_a_page_has_the_lists_tables_code_and_links_of_its_markdown(site, name):
    source = MarkdownIt("commonmark").enable("table").render((ROOT / name).read_text())
    assert counts(article(page_of(site, name).read_text())) == counts(source)


def test_nothing_is_loaded_from_elsewhere(site):
    loaded = re.compile(r"""<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)=["']?(?:https?:)?//[^"'> ]+""")
    found = {match for page in site.rglob("*.html") for match in loaded.findall(page.read_text()) if "canonical" not in match}
    assert found == set()
    styles = [path for path in site.rglob("*.css") if re.search(r"@import|url\(['\"]?https?:", path.read_text())]
    assert styles == []


def test_a_file_that_a_page_links_to_is_shown_with_its_text(site):
    shown = (site / "experiments/scenarios/chain5.toml.html").read_text()
    assert "ns2-dsss-2m" in shown
    assert 'href="experiments/scenarios/chain5.toml.html"' in (site / "index.html").read_text()


@pytest.mark.parametrize("link", BROKEN)
def test_a_broken_link_ends_the_build(warnings, link):
    assert [warning for warning in warnings if BROKEN[link] in warning], warnings


def test_a_page_that_the_navigation_lacks_ends_the_build(warnings):
    assert [warning for warning in warnings if "docs/forgotten.md" in warning], warnings


def test_contents_of_a_list_move_to_the_column_that_the_renderer_wants():
    text = "1. a\n\n   ```c\n   x;\n     y;\n   ```\n\n   - b\n     c\n2. d\n\ne"
    assert markdown.adapted(text) == "1. a\n\n    ```c\n    x;\n      y;\n    ```\n\n    - b\n        c\n2. d\n\ne"


def test_a_wrapped_line_that_begins_with_a_number_begins_no_list():
    text = "of 100 packets it delivers 50 with 50 and\n10. For its length set 49."
    assert markdown.adapted(text) == text


def test_a_list_and_a_table_below_a_line_of_text_begin_a_paragraph():
    assert markdown.adapted("a:\n- b\n- c") == "a:\n\n- b\n- c"
    assert markdown.adapted("a:\n| b |\n|---|") == "a:\n\n| b |\n|---|"


def test_code_keeps_its_links_and_lists():
    text = "```\n[a](../README)\n- b\n1. c\n```"
    assert markdown.adapted(links.to_pages(text, "docs/map.md")) == text


def test_links_to_folders_and_sources_lead_to_their_pages():
    assert links.to_pages("[a](../routing/aodv)", "docs/map.md") == "[a](../routing/aodv/README.md)"
    assert links.to_pages("[a](../experiments/be-per.toml)", "docs/map.md") == "[a](../experiments/be-per.toml.md)"
    assert links.to_pages("[a](https://x.org/a.py), [b](#c)", "docs/map.md") == "[a](https://x.org/a.py), [b](#c)"


def test_each_picture_of_a_page_is_on_the_site(site):
    shown = [(page, src) for page in site.rglob("*.html") for src in re.findall(r'<img\b[^>]*\bsrc="([^":]+)"', page.read_text())]
    assert len(shown) > 20
    absolute = [one for one in shown if one[1].startswith("/")]  # of 404.html, which a server gives at any address
    missing = {f"{page.relative_to(site)}: {src}" for page, src in shown if not (page.parent / src.split("#")[0]).is_file()}
    assert missing - {f"{page.relative_to(site)}: {src}" for page, src in absolute} == set()


def test_a_copied_report_has_no_dead_links(site):
    page = site / "docs" / "results" / "campaign-all" / "report.html"
    found = re.findall(r'<a href="([^"#:]+)"', page.read_text())
    assert [link for link in found if not (page.parent / link).exists()] == []
