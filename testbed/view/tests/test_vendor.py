"""The page's third-party files are those of the release that their README names, and the page asks nobody else for files."""

import hashlib
import re

import pytest

from testbed.view.app import PAGE

FILES = {
    "vendor": {"uPlot.esm.js", "uPlot.min.css", "LICENSE.txt"},
    "vendor/xterm": {"xterm.esm.js", "xterm.css", "addon-fit.esm.js", "LICENSE.txt"},
}


@pytest.mark.parametrize("folder", FILES)
def test_vendored_files_have_their_recorded_sums(folder):
    sums = dict(reversed(line.split()) for line in (PAGE / folder / "SHA256SUMS.txt").read_text().splitlines())
    assert set(sums) == FILES[folder]
    for name, wanted in sums.items():
        assert hashlib.sha256((PAGE / folder / name).read_bytes()).hexdigest() == wanted, name


def test_no_file_of_the_page_names_another_site():
    for file in PAGE.iterdir():
        if file.is_file():
            found = re.findall(r"https?://(?!www\.w3\.org/)\S+", file.read_text())
            assert found == [], file.name


def test_the_page_has_no_inline_script_or_style():
    text = (PAGE / "index.html").read_text()
    assert "<style" not in text and " style=" not in text and not re.search(r"<script(?![^>]*src=)", text)
    assert not re.search(r"\son\w+=", text)
