"""Writing a bundle: a zip archive whose bytes depend on its contents alone (sorted names, one date, one mode)."""

import fcntl
import hashlib
import io
import json
import os
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from analysis.store.files import PENDING, merge
from record.files import atomic_file, plain_file, read_object
from record.manifest import entry_of
from testbed.bundles import crate
from testbed.bundles.contents import DESCRIPTIONS, contents_of
from testbed.errors import UsageError

MANIFEST, FORMAT = "bundle.json", "manet-bundle/1"
DATE = (1980, 1, 1, 0, 0, 0)  # the first that the format knows
MODE = 0o100644 << 16  # a plain file
CHUNK = 1 << 20
README = """Results of {name}, bundled by `manet bundle` (formats/bundle.md of the testbed).

Check:    ./manet bundle --verify FILE
Compare:  results/{name}: table.csv, summary.csv, runs.parquet, figures; ./manet sql QUERY results/{name}
Rerun:    ./manet run results/{name}/CELL/seed-N   (one run, with its scenario and seed)
          {resume}
Origin:   provenance.json; checkout/ holds the lock files, and the experiments that are in the checkout; bundle.json
          every file's SHA-256, and the files that were left out. definition/, if there is one: the file of an experiment
          that is in no checkout; give it to ./manet run.
"""


def write(directory: Path, out: Path, captures: bool, license_url: str | None = None) -> dict[str, Any]:
    """Write the bundle of a folder of results to `out`; returns its manifest. UsageError while the folder is in use."""
    folders = sorted({directory, *(path.parent for path in directory.glob("*/experiment.json"))})
    with ExitStack() as locks:
        for folder in folders:
            locks.enter_context(_quiet(folder))
            if (folder / PENDING).is_dir():
                merge(folder)
        contents = contents_of(directory, captures)
        descriptions = (read_object(directory / name) for name in DESCRIPTIONS)
        resume = next((str(each["resume"]) for each in descriptions if each.get("resume")), "")
        readme = README.format(name=contents.name, resume=resume.removesuffix(" --resume"))
        contents.members["README.txt"] = readme.encode()
        with atomic_file(out, "wb") as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            files = {name: _add(archive, name, member) for name, member in sorted(contents.members.items())}
            files[crate.NAME] = _add(archive, crate.NAME, crate.metadata(contents, files, license_url))
            manifest = {
                "format": FORMAT,
                "name": contents.name,
                "captures": captures,
                "files": dict(sorted(files.items())),
                "left_out": {
                    name: ({} if path.is_symlink() else entry_of(path)) | {"reason": why}
                    for name, (path, why) in sorted(contents.left_out.items())
                },
            }
            _add(archive, MANIFEST, (json.dumps(manifest, indent=1) + "\n").encode())
    return manifest


def _add(archive: zipfile.ZipFile, name: str, member: Path | bytes) -> dict[str, Any]:
    """Add a member; returns size and hash of the bytes that went in."""
    info = zipfile.ZipInfo(name, DATE)
    info.external_attr, info.create_system, info.compress_type = MODE, 3, zipfile.ZIP_DEFLATED
    info.file_size = len(member) if isinstance(member, bytes) else member.stat().st_size
    digest, size = hashlib.sha256(), 0
    opened = io.BytesIO(member) if isinstance(member, bytes) else plain_file(member)
    with opened as source, archive.open(info, "w") as target:
        while chunk := source.read(CHUNK):
            digest.update(chunk)
            size += len(chunk)
            target.write(chunk)
    return {"bytes": size, "sha256": digest.hexdigest()}


@contextmanager
def _quiet(directory: Path) -> Iterator[None]:
    """Keep `manet run` out of the folder (testbed.campaigns.campaign.claimed) until the block ends."""
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as problem:
        raise UsageError(f"{directory}: {problem.strerror}; give a folder that `manet run` has made") from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise UsageError(f"{directory}: a manet is writing there; wait for its end") from None
    finally:
        os.close(descriptor)
