"""The editor's third-party module is the one of its recorded sum, whose versions are locked and whose licences are named."""

import hashlib
import json
import re
from pathlib import Path

from testbed.view.app import PAGE

EDITOR = PAGE / "editor"
BUILD = Path(__file__).resolve().parents[1] / "codemirror"


def test_vendored_files_have_their_recorded_sums():
    sums = dict(reversed(line.split()) for line in (EDITOR / "vendor/SHA256SUMS.txt").read_text().splitlines())
    assert set(sums) == {"codemirror.js", "LICENSE.txt"}
    for name, wanted in sums.items():
        assert hashlib.sha256((EDITOR / "vendor" / name).read_bytes()).hexdigest() == wanted, name


def test_each_package_of_the_build_is_locked_with_a_sum_and_named_with_its_licence():
    packages = json.loads((BUILD / "package-lock.json").read_text())["packages"]
    licences = (EDITOR / "vendor/LICENSE.txt").read_text()
    names = {path.removeprefix("node_modules/"): one for path, one in packages.items() if path}
    for name, one in names.items():
        assert one["integrity"].startswith("sha512-"), name
        if "esbuild" not in name:
            assert f"{name} {one['version']}: Copyright" in licences and one["license"] == "MIT", name


def test_the_page_names_no_other_site_and_has_no_inline_script_or_style():
    for file in EDITOR.iterdir():
        if file.is_file():
            assert re.findall(r"https?://(?!www\.w3\.org/)\S+", file.read_text()) == [], file.name
    text = (EDITOR / "editor.html").read_text()
    assert "<style" not in text and " style=" not in text and not re.search(r"<script(?![^>]*src=)", text)
    assert not re.search(r"\son\w+=", text)
