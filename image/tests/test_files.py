"""The files that build and start images, and that make a release: valid, and each command and path in them exists."""

import json
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from image import sbom
from testbed.__main__ import parser
from testbed.programs import ROOT

CONTAINERFILE = (ROOT / "Containerfile").read_text(encoding="utf-8")
COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))
RELEASE = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8"))


def files() -> set[str]:
    listed = subprocess.run([ROOT / "image" / "files.sh"], capture_output=True, check=True)
    return set(listed.stdout.decode().rstrip("\0").split("\0"))


def test_the_files_of_the_tree_are_those_of_git_or_of_an_archive_without_build_outputs(tmp_path: Path) -> None:
    assert {"manet", "setup.sh", "image/runtime.list"} <= files()
    (tmp_path / "image").mkdir()
    script = tmp_path / "image" / "files.sh"
    script.write_bytes((ROOT / "image" / "files.sh").read_bytes())
    script.chmod(0o755)
    for name in (
        "target/release/x",
        ".build/x",
        ".venv/x",
        "results/x",
        "debian/x",
        "a/__pycache__/x.pyc",
        "a/target/kept",
        "manet",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    found = subprocess.run([script], capture_output=True, check=True).stdout.decode()
    assert sorted(found.rstrip("\0").split("\0")) == ["a/target/kept", "image/files.sh", "manet"]


def test_the_containerfile_copies_and_calls_what_exists() -> None:
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", CONTAINERFILE, re.MULTILINE)
    assert copied == ["setup.sh", ".", "image/runtime.list"]
    for script in re.findall(r"(?:\./|/opt/manet/)?((?:image/)?\w+\.sh)\b", CONTAINERFILE):
        assert (ROOT / script).exists(), script
    stages = re.findall(r"^FROM (\S+)(?: AS (\w+))?$", CONTAINERFILE, re.MULTILINE)
    assert stages == [("${BASE}", "develop"), ("develop", "build"), ("${BASE}", "")]
    assert re.search(r"^ARG BASE=\S+/debian:13$", CONTAINERFILE, re.MULTILINE), "its packages are those of this release"
    assert "setup.sh --packages" in CONTAINERFILE and "mininet" not in CONTAINERFILE, "the packages are listed elsewhere"


def test_the_ignored_files_of_the_image_are_build_outputs() -> None:
    ignored = [line for line in (ROOT / ".containerignore").read_text().splitlines() if not line.startswith("#")]
    assert not {name for name in files() if name.split("/")[0] in ignored}
    assert (ROOT / ".dockerignore").resolve() == ROOT / ".containerignore"


@pytest.mark.parametrize("service", sorted(COMPOSE["services"]))
def test_a_service_publishes_the_port_on_which_it_listens_to_this_machine_alone(service: str) -> None:
    described = COMPOSE["services"][service]
    words = [re.sub(r"\$\{\w+:-(\w+)\}", r"\1", word) for word in described["command"]]
    options = parser().parse_args(words)
    (published,) = described["ports"]
    assert published == "127.0.0.1:{0}:{0}".format(options.listen.removeprefix("0.0.0.0:")) and described["privileged"]


def test_the_editors_container_is_the_containerfiles() -> None:
    text = (ROOT / ".devcontainer" / "devcontainer.json").read_text(encoding="utf-8")
    described = json.loads(re.sub(r"^//.*$", "", text, flags=re.MULTILINE))
    build = described["build"]
    assert (ROOT / ".devcontainer" / build["dockerfile"]).resolve() == ROOT / "Containerfile"
    assert f" AS {build['target']}\n" in CONTAINERFILE and described["postCreateCommand"] == "./setup.sh"


def test_a_release_calls_targets_of_the_makefile_and_publishes_what_they_make() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    steps = [step for job in RELEASE["jobs"].values() for step in job["steps"]]
    scripts = "\n".join(step.get("run", "") for step in steps)
    targets = {word for words in re.findall(r"^make (.+)$", scripts, re.MULTILINE) for word in words.split()}
    assert targets == {"deb", "site", "wheel", "sbom"}
    assert [name for name in targets if not re.search(rf"^{name}:", makefile, re.MULTILINE)] == []
    uploaded = {
        path for step in steps for path in str(step.get("with", {}).get("path", "")).split() if path.startswith(".build/")
    }
    assert uploaded == {".build/deb", ".build/site", ".build/wheel", ".build/sbom.cdx.json"}
    assert [path for path in uploaded if path not in makefile + (ROOT / "mkdocs.yml").read_text()] == []
    # The root of an artifact of several paths is their common folder; files below a folder with a dot are left out by default.
    artifacts = [step["with"] for step in steps if step.get("with", {}).get("name")]
    assert all(artifact["if-no-files-found"] == "error" for artifact in artifacts)
    assert all(artifact["include-hidden-files"] for artifact in artifacts if ".build/" in artifact["path"])
    published = set(re.findall(r"release/site-wheel-sbom/([\w.-]+)", scripts))
    assert published | {"site"} == {path.removeprefix(".build/") for path in uploaded} - {"deb"}


def test_the_list_of_components_has_each_crate_and_package_once_with_its_version() -> None:
    found = sbom.sbom()
    names = [component["purl"] for component in found["components"]]
    assert len(names) == len(set(names)) > 100
    locked = re.findall(r"^([\w.-]+)==(\S+)", (ROOT / "requirements.lock").read_text(), re.MULTILINE)
    assert [name for name, version in locked if f"pkg:pypi/{name.lower()}@{version}" not in names] == []
    assert "pkg:deb/debian/mininet" in names and any(name.startswith("pkg:cargo/nix@") for name in names)
    assert not any(name.startswith("pkg:cargo/manet") for name in names), "our own crates are the component itself"
    crate = next(component for component in found["components"] if component["purl"].startswith("pkg:cargo/"))
    assert re.fullmatch("[0-9a-f]{64}", crate["hashes"][0]["content"])
