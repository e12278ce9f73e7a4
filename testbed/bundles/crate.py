"""The RO-Crate metadata of a bundle (RO-Crate 1.1, https://w3id.org/ro/crate/1.1): its tables, figures, runs and their origin.

Single files of runs are not described there, bundle.json lists them: a crate of 2000 runs stays readable.
"""

import json
import mimetypes
from typing import Any

from rocrate.rocrate import ROCrate

from testbed import __version__
from testbed.bundles.contents import Contents

NAME, VERSION = "ro-crate-metadata.json", "1.1"
SHA256 = "https://w3id.org/ro/terms/workflow-run#sha256"  # the context of 1.1 has no term for it
UNDATED = "1980-01-01"  # of a folder without runs, as the files in the archive
TYPES = {".parquet": "application/vnd.apache.parquet", ".toml": "application/toml", ".lock": "text/plain"}


def metadata(contents: Contents, files: dict[str, dict[str, Any]], license_url: str | None) -> bytes:
    """ro-crate-metadata.json of a bundle whose members have these sizes and hashes; the same bytes for the same input."""
    crate = ROCrate(version=VERSION)
    crate.metadata.extra_terms["sha256"] = SHA256
    origin = contents.provenance
    crate.name = f"Results of {contents.name}"
    crate.description = (
        " ".join(contents.questions) or f"{origin['runs']} runs of kernel TCP over an emulated 802.11 ad hoc network"
    )
    crate.datePublished = origin["ended"] or UNDATED
    if license_url:
        crate.license = license_url
    described = [_file(crate, name, entry) for name, entry in sorted(files.items()) if _is_described(name, contents.runs)]
    for run in contents.runs:
        crate.add_dataset(dest_path=run, properties={"name": "/".join(run.split("/")[2:])})
    software = {"@type": "SoftwareApplication", "name": "manet", "softwareVersion": ", ".join(origin["commits"]) or __version__}
    application = _entity(crate, "#manet", software | {"operatingSystem": ", ".join(origin["kernels"])})
    action = _entity(crate, "#runs", {"@type": "CreateAction", "name": f"{origin['runs']} runs", "startTime": origin["started"],
                                      "endTime": origin["ended"]})  # fmt: skip
    action["instrument"] = application
    action["object"] = [entity for entity in described if entity.id.startswith(("checkout/", "definition/"))]
    action["result"] = [entity for entity in described if entity.id.startswith("results/")]
    return (json.dumps(crate.metadata.generate(), indent=1, sort_keys=True) + "\n").encode()


def _is_described(name: str, runs: list[str]) -> bool:
    """Whether a file is in no run."""
    folders = {"/".join(name.split("/")[:length]) for length in range(1, name.count("/") + 1)}
    return folders.isdisjoint(runs)


def _file(crate: ROCrate, name: str, entry: dict[str, Any]) -> Any:
    kind = next((kind for suffix, kind in TYPES.items() if name.endswith(suffix)), mimetypes.guess_type(name, strict=True)[0])
    properties = {"contentSize": str(entry["bytes"]), "sha256": entry["sha256"], "encodingFormat": kind or "text/plain"}
    return crate.add_file(dest_path=name, properties=properties)


def _entity(crate: ROCrate, identity: str, properties: dict[str, Any]) -> Any:
    from rocrate.model import ContextEntity

    return crate.add(ContextEntity(crate, identity, {key: value for key, value in properties.items() if value}))
