"""The list of components of a release (CycloneDX 1.5, ECMA-424): crates and Python packages of the lock files, Debian packages of
runtime.list.

    python -P -m image.sbom >.build/sbom.cdx.json

Only committed files are read, so the same commit gives the same list. Debian packages have no version in it: that of the release
on which the testbed is installed (dpkg-query in the image). Cargo.lock includes crates that only tests use; requirements-*.lock,
for tests, pages, guests and clusters, are not listed.
"""

import json
import sys
import tomllib
from collections.abc import Iterator
from typing import Any

from image.packages import locked
from testbed import __version__
from testbed.programs import ROOT

Component = dict[str, Any]


def sbom() -> dict[str, Any]:
    """The list, as the object of a JSON document."""
    components = [*crates(), *python_packages(), *debian_packages()]
    about = {"type": "application", "name": "manet", "version": __version__, "licenses": [{"license": {"id": "MIT"}}]}
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.5.schema.json", "bomFormat": "CycloneDX", "specVersion": "1.5",
        "version": 1, "metadata": {"component": about | {"bom-ref": "manet"}},
        "components": sorted(components, key=lambda one: str(one["purl"])),
    }  # fmt: skip


def crates() -> Iterator[Component]:
    """The crates of Cargo.lock that come from the registry, with the SHA-256 of each archive."""
    for crate in tomllib.loads((ROOT / "Cargo.lock").read_text(encoding="utf-8"))["package"]:
        if "source" in crate:
            hashes = [{"alg": "SHA-256", "content": crate["checksum"]}]
            yield _component(crate["name"], crate["version"], "cargo") | {"hashes": hashes}


def python_packages() -> Iterator[Component]:
    """The packages of requirements.lock. One of several wheels is installed, so none has a hash here."""
    for name, version in locked((ROOT / "requirements.lock").read_text(encoding="utf-8")):
        yield _component(name, version, "pypi")


def debian_packages() -> Iterator[Component]:
    """The packages that runs need."""
    for line in (ROOT / "image" / "runtime.list").read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            yield _component(line, None, "deb/debian")


def _component(name: str, version: str | None, kind: str) -> Component:
    purl = f"pkg:{kind}/{name}" + (f"@{version}" if version else "")
    return {"type": "library", "bom-ref": purl, "name": name, **({"version": version} if version else {}), "purl": purl}


if __name__ == "__main__":
    json.dump(sbom(), sys.stdout, indent=1)
    sys.stdout.write("\n")
