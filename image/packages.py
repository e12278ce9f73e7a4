"""Makes a copied `.venv` independent of its machine: it has the packages of the lock file, as pip installed them, under any path.

    packages.py SITE_PACKAGES LOCK     a folder site-packages, and the lock file that it was installed from

A network with a CA of its own may have appended it to certifi's bundle, which an image must not pass on. RECORD (PEP 376) has
the hash of each file; a changed one is fetched from the registry again. The hashes of scripts in `.venv/bin` are removed, since
their first line is the path of the checkout.
"""

import base64
import csv
import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

SCRIPTS = "../../../bin/"
OF_PYTHON = {"pip", "setuptools"}  # in each environment


def main() -> int:
    """Restore changed files and remove the scripts' rows; status 1, and one line, if a file cannot be restored."""
    site, lock = Path(sys.argv[1]), Path(sys.argv[2])
    listed = OF_PYTHON | {name for name, _version in locked(lock.read_text())}
    for record in sorted(site.glob("*.dist-info/RECORD")):
        if _canonical(record.parent.name.split("-")[0]) not in listed:  # of ./setup.sh --develop, --pages or --cluster
            remove_package(record)
            continue
        if changed := changed_files(record):
            print(f"image: {', '.join(changed)}: changed since pip installed it; the image has the package's", file=sys.stderr)
            if not is_restored(record, changed, lock):
                print(f"image: {record.parent.name}: not restored; remove .venv and run ./setup.sh", file=sys.stderr)
                return 1
        remove_scripts(record)
    return 0


def locked(text: str) -> list[tuple[str, str]]:
    """The packages of a lock file: canonical name, and version."""
    return [(_canonical(name), version) for name, version in re.findall(r"^([\w.-]+)==([\w.!+-]+)", text, re.MULTILINE)]


def changed_files(record: Path) -> list[str]:
    """The files of a package, relative to site-packages, whose content is not that of its RECORD. Absent files do not count."""
    return [name for name, expected in _hashes(record) if _differs(record.parent.parent / name, expected)]


def is_restored(record: Path, changed: list[str], lock: Path) -> bool:
    """Whether the changed files, fetched from the registry as the lock file has them, are those of the RECORD now."""
    name = record.parent.name.split("-")[0].replace("_", "[-_.]")
    pinned = re.search(rf"^{name}==(?:.*\\\n)*.*\n?", lock.read_text(), re.MULTILINE | re.IGNORECASE)
    if pinned is None:
        return False
    with tempfile.TemporaryDirectory() as folder:
        (wanted := Path(folder, "wanted")).write_text(pinned[0])
        options = ["--quiet", "--no-deps", "--require-hashes", "-d", folder, "-r", str(wanted)]
        if subprocess.run([sys.executable, "-m", "pip", "download", *options], check=False).returncode != 0:
            return False
        for wheel in Path(folder).glob("*.whl"):
            shutil.unpack_archive(wheel, Path(folder, "files"), "zip")
        for file in changed:
            if (fetched := Path(folder, "files", file)).is_file():
                shutil.copyfile(fetched, record.parent.parent / file)
    return not changed_files(record)


def remove_package(record: Path) -> None:
    """Remove the files of a package, with its scripts and folders that are empty then."""
    site = record.parent.parent
    with record.open(newline="") as file:
        files = [site / row[0] for row in csv.reader(file)]
    for path in files:
        path.unlink(missing_ok=True)
    for folder in sorted({parent for path in files for parent in path.parents if site in parent.parents}, reverse=True):
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()


def remove_scripts(record: Path) -> None:
    """Remove the rows of scripts from a RECORD."""
    lines = record.read_text().splitlines(keepends=True)
    record.write_text("".join(line for line in lines if not line.startswith(SCRIPTS)))


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _hashes(record: Path) -> Iterator[tuple[str, str]]:
    with record.open(newline="") as file:
        for name, digest, _size in csv.reader(file):
            if digest and not name.startswith(SCRIPTS):
                yield name, digest


def _differs(path: Path, expected: str) -> bool:
    if not path.is_file():
        return False
    kind, _, value = expected.partition("=")
    digest = hashlib.new(kind, path.read_bytes()).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode() != value


if __name__ == "__main__":
    sys.exit(main())
