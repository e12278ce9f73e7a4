"""Single packages out of a Debian archive, checked, without installing them and without apt's lists.

The chain of hashes is the archive's own (wiki.debian.org/DebianRepository/Format): InRelease, signed, has the SHA-256 of
Packages.xz, which has the SHA-256 of the package. The signature is checked with gpgv against Debian's keyring; one good
signature is enough, as for apt, since the keyring of an older Debian has not all keys of a newer one.
Departs from apt: no diffs and no other compression; each query reads the index again.
"""

import hashlib
import http.client
import lzma
import os
import re
import shutil
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from testbed.errors import RunError

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
DEFAULT_MIRROR = "http://deb.debian.org/debian"
READ_TIMEOUT_S = 60.0  # without any data
TRIES = 3  # a broken download continues where it broke
CHUNK = 1 << 20


@dataclass(frozen=True)
class Package:
    """An entry of Packages: `path` is below the archive, `size` in bytes."""

    name: str
    version: str
    path: str
    size: int
    sha256: str
    depends: str = ""


def mirror(sources: Path = Path("/etc/apt")) -> str:
    """URL of the mirror: DEBIAN_MIRROR, else the first of apt's sources that ends in /debian, else Debian's own."""
    if of_user := os.environ.get("DEBIAN_MIRROR"):
        return of_user.rstrip("/")
    files = [sources / "sources.list", *sorted((sources / "sources.list.d").glob("*"))]
    for file in files:
        text = file.read_text(errors="replace") if file.is_file() else ""
        if url := re.search(r"^(?:URIs:|deb)\s.*?(https?://\S+/debian)/?(?:\s|$)", text, re.MULTILINE):
            return url.group(1)
    return DEFAULT_MIRROR


class Archive:
    """One archive of a mirror: `base` is the URL (http, https or file) that `dists/` is below.

    `keyring` None: do not check the signature (tests).
    """

    def __init__(self, base: str, keyring: Path | None = KEYRING) -> None:
        self.base = base.rstrip("/")
        self.keyring = keyring

    def find(self, suite: str, name: str) -> Package:
        """The package of this name; of a meta package the first one that it depends on. Raises RunError."""
        packages = self._packages(suite)
        package = self._newest(packages, suite, name)
        target = package.depends.split(",")[0].split("|")[0].split("(")[0].strip()
        return self._newest(packages, suite, target) if target.startswith("linux-image-") else package

    def fetch(self, package: Package, to: Path, progress: Callable[[int, int], None] = lambda have, size: None) -> None:
        """Download the package to the file `to`, which appears complete and checked or not at all. Raises RunError.

        A partial download is kept in `<to>.part` and continued, in this call and the next. `progress` gets (bytes so far, size).
        """
        part = to.with_name(to.name + ".part")
        url = f"{self.base}/{package.path}"
        for attempt in range(1, TRIES + 1):
            try:
                self._resume(url, part, package.size, progress)
                break
            except (OSError, http.client.HTTPException) as problem:
                if attempt == TRIES or isinstance(problem, urllib.error.HTTPError):
                    raise _unreachable(url, problem) from None
        with part.open("rb") as content:
            digest = hashlib.file_digest(content, "sha256").hexdigest()
        if digest != package.sha256:
            part.unlink()
            raise RunError(
                f"{url}: broken download: its SHA-256 is {digest[:16]}..., the archive's index says {package.sha256[:16]}...; "
                "it was removed, try again (a proxy may be altering it)"
            )
        part.rename(to)

    def _resume(self, url: str, part: Path, size: int, progress: Callable[[int, int], None]) -> None:
        have = part.stat().st_size if part.exists() else 0
        if have > size:
            part.unlink()
            have = 0
        if have == size:
            return
        request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})
        with urllib.request.urlopen(request, timeout=READ_TIMEOUT_S) as answer:
            if have and getattr(answer, "status", None) != 206:  # the server (or a file: URL) gives all of it
                have = 0
            with part.open("ab" if have else "wb") as file:
                while piece := answer.read(CHUNK):
                    file.write(piece)
                    have += len(piece)
                    progress(have, size)
        if have < size:
            raise ConnectionError(f"it ended after {have} of {size} bytes")

    def _packages(self, suite: str) -> dict[str, list[Package]]:
        index = "main/binary-amd64/Packages.xz"
        release = self._signed(self._read(f"dists/{suite}/InRelease"), suite)
        match = re.search(rf"^ ([0-9a-f]{{64}}) +\d+ {re.escape(index)}$", release, re.MULTILINE)
        if match is None:
            raise RunError(f"{self.base}/dists/{suite}/InRelease: names no {index}; is this a Debian mirror?")
        packed = self._read(f"dists/{suite}/{index}")
        if hashlib.sha256(packed).hexdigest() != match.group(1):
            raise RunError(
                f"{self.base}/dists/{suite}/{index}: not what InRelease says (SHA-256); the mirror may be changing, try again"
            )
        return _parse(lzma.decompress(packed).decode())

    def _newest(self, packages: dict[str, list[Package]], suite: str, name: str) -> Package:
        if name not in packages:
            raise RunError(f"{self.base}: {suite} has no package {name}; see testbed/guests/kernels.toml")
        return packages[name][-1]  # a suite has one version of a package, as a rule

    def _read(self, path: str) -> bytes:
        url = f"{self.base}/{path}"
        try:
            with urllib.request.urlopen(url, timeout=READ_TIMEOUT_S) as answer:
                return answer.read()
        except (OSError, http.client.HTTPException) as problem:
            raise _unreachable(url, problem) from None

    def _signed(self, text: bytes, suite: str) -> str:
        if self.keyring is None:
            return text.decode()
        for present, package in ((shutil.which("gpgv"), "gpgv"), (self.keyring.exists(), "debian-archive-keyring")):
            if not present:
                raise RunError(f"{package}: not installed, and packages are checked with it; ./setup.sh --guests installs it")
        command = ["gpgv", "--status-fd", "2", "--keyring", str(self.keyring), "--output", "-"]
        checked = subprocess.run(command, input=text, capture_output=True)
        if b"[GNUPG:] VALIDSIG" not in checked.stderr:
            raise RunError(
                f"{self.base}/dists/{suite}/InRelease: no good signature by Debian's keys ({self.keyring}); "
                "use another mirror (DEBIAN_MIRROR=URL)"
            )
        return checked.stdout.decode()


def _parse(text: str) -> dict[str, list[Package]]:
    """The kernel images and the few other packages in use, of an index of 60 000 entries."""
    packages: dict[str, list[Package]] = {}
    for entry in text.split("\n\n"):
        if not entry.startswith(("Package: linux-image-", "Package: busybox-static\n")):
            continue
        keys = dict(line.split(": ", 1) for line in entry.splitlines() if ": " in line and line[0] != " ")
        package = Package(
            keys["Package"], keys["Version"], keys["Filename"], int(keys["Size"]), keys["SHA256"], keys.get("Depends", "")
        )
        packages.setdefault(package.name, []).append(package)
    return packages


def _unreachable(url: str, problem: Exception) -> RunError:
    reason = getattr(problem, "reason", None) or problem
    return RunError(f"{url}: not reached ({reason}); check the network or proxy, or set DEBIAN_MIRROR to a Debian mirror")
