"""The site in headless Chromium, opened as a file: its search works, and nothing is loaded from elsewhere."""

import hashlib
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("material", reason="MkDocs is missing; run ./setup.sh --pages")
from docs.site.repository import ROOT
from docs.site.tests.test_build import site  # noqa: F401  (a fixture)
from testbed.view.tests.test_page import MISSING, browser, until  # noqa: F401  (browser is a fixture)

pytestmark = [pytest.mark.pages, pytest.mark.skipif(MISSING is not None, reason=str(MISSING))]
SHIM = ROOT / "docs" / "site" / "assets" / "iframe-worker"


def test_the_vendored_program_has_its_recorded_sums() -> None:
    sums = dict(reversed(line.split()) for line in (SHIM / "SHA256SUMS.txt").read_text().splitlines())
    assert sums == {name: hashlib.sha256((SHIM / name).read_bytes()).hexdigest() for name in ("shim.js", "LICENSE.txt")}


@pytest.mark.parametrize("name", ["index.html", "docs/view.html"])
def test_the_search_works_in_a_page_that_is_a_file(browser: Any, site: Path, name: str) -> None:  # noqa: F811
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    asked: list[str] = []
    faults: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda fault: faults.append(str(fault)))
    page.goto((site / name).as_uri())
    page.fill("input[name=query]", "hidden terminal")
    until(page, "document.querySelectorAll('.md-search-result__item').length > 0")
    assert page.locator(".md-search-result__item a").first.get_attribute("href").startswith("file://")
    assert faults == [] and [url for url in asked if not url.startswith(("file://", "data:", "blob:"))] == []
    page.close()
