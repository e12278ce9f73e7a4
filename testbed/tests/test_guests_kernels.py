"""The kernels of `manet vm`: fetched whole and checked, or not at all. A folder on disk stands in for Debian's mirror."""

import hashlib
import http.server
import lzma
import subprocess
import threading
from pathlib import Path

import pytest

from testbed.errors import ManetError, RunError, UsageError
from testbed.guests import kernels
from testbed.guests.archive import Archive, mirror

DEB = "pool/linux-image-6.1.0-9-amd64_6.1.9-1_amd64.deb"
RELEASE = "6.1.0-9-amd64"
KERNEL = kernels.Kernel("6.1", "Debian 12", "debian", "bookworm", "linux-image-amd64")


@pytest.fixture
def archive_folder(tmp_path):
    """A mirror with one kernel and the meta package that depends on it."""
    folder, tree = tmp_path / "mirror", tmp_path / "tree"
    for name, text in (
        (f"boot/vmlinuz-{RELEASE}", "kernel" * 10_000),
        (f"lib/modules/{RELEASE}/modules.order", ""),
        (f"lib/modules/{RELEASE}/modules.builtin", ""),
        ("DEBIAN/control", "Package: x\nVersion: 1\nArchitecture: amd64\nMaintainer: t <t@t>\nDescription: t\n"),
    ):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text)
    (folder / "pool").mkdir(parents=True)
    subprocess.run(["dpkg-deb", "--build", "-Znone", str(tree), str(folder / DEB)], check=True, capture_output=True)
    publish(folder)
    return folder


def publish(folder, sha256=None, index_sha256=None):
    """Writes the index of the mirror; with the hashes given where they are not to be true."""
    content = (folder / DEB).read_bytes()
    packages = (
        "Package: linux-image-amd64\nVersion: 6.1.9-1\nDepends: linux-image-6.1.0-9-amd64 (= 6.1.9-1)\n"
        f"Filename: none\nSize: 1\nSHA256: {'0' * 64}\n\n"
        f"Package: linux-image-6.1.0-9-amd64\nVersion: 6.1.9-1\nDepends: kmod, linux-base\nFilename: {DEB}\n"
        f"Size: {len(content)}\nSHA256: {sha256 or hashlib.sha256(content).hexdigest()}\n\n"
    )
    packed = lzma.compress(packages.encode())
    index = folder / "dists/bookworm/main/binary-amd64/Packages.xz"
    index.parent.mkdir(parents=True, exist_ok=True)
    index.write_bytes(packed)
    digest = index_sha256 or hashlib.sha256(packed).hexdigest()
    (folder / "dists/bookworm/InRelease").write_text(f"SHA256:\n {digest} {len(packed)} main/binary-amd64/Packages.xz\n")


def cache_of(tmp_path, base):
    return kernels.Cache(tmp_path / "cache", open_archive=lambda _name: Archive(base, keyring=None))


@pytest.fixture
def no_depmod(monkeypatch):
    """kmod is not needed to see what the cache does."""
    real = kernels._call
    monkeypatch.setattr(kernels, "_call", lambda command, package: None if command[0] == "depmod" else real(command, package))


@pytest.fixture
def cache(tmp_path, archive_folder, no_depmod):
    return cache_of(tmp_path, archive_folder.as_uri())


class Server(http.server.BaseHTTPRequestHandler):
    """Serves `root`, with Range; the first answer about a package breaks off after `breaks_after` bytes."""

    def do_GET(self):
        content = (self.server.root / self.path.lstrip("/")).read_bytes()
        start = int(self.headers.get("Range", "bytes=0-").removeprefix("bytes=").rstrip("-"))
        self.server.requests.append((self.path, start))
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(content) - start))
        self.end_headers()
        part = content[start:]
        if self.path.endswith(".deb") and self.server.breaks_after:
            part, self.server.breaks_after = part[: self.server.breaks_after], 0
        self.wfile.write(part)

    def log_message(self, *_words):
        pass


@pytest.fixture
def server(archive_folder):
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server) as server:
        server.root, server.requests, server.breaks_after = archive_folder, [], 0
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        server.base = f"http://127.0.0.1:{server.server_address[1]}"
        yield server
        server.shutdown()
        thread.join()


def test_the_list_names_debian_12_and_13s_kernels():
    assert {"6.1", "6.12"} <= set(kernels.known_kernels())
    with pytest.raises(UsageError, match=r"--kernel 5.0: not known; there are 6.1, 6.12"):
        kernels.find("5.0")


def test_a_meta_package_leads_to_the_kernel_it_depends_on_which_is_unpacked_into_the_cache(cache):
    got = cache.get(KERNEL)
    assert (got.release, got.package, got.version) == (RELEASE, "linux-image-6.1.0-9-amd64", "6.1.9-1")
    assert got.image.read_text().startswith("kernel")
    assert (got.folder / "usr/lib/modules" / RELEASE).is_dir()
    assert sorted(path.name for path in cache.folder.iterdir()) == ["6.1.json", got.folder.name, "lock"]


def test_cached_kernels_need_no_network(cache, tmp_path):
    got = cache.get(KERNEL)
    assert cache_of(tmp_path, "http://127.0.0.1:1/none").get(KERNEL) == got


def test_without_network_and_cache_the_error_has_the_remedy(tmp_path):
    with pytest.raises(RunError, match=r"http://127\.0\.0\.1:1/none/dists/bookworm/InRelease: not reached .*DEBIAN_MIRROR"):
        cache_of(tmp_path, "http://127.0.0.1:1/none").get(KERNEL)


def test_a_broken_download_is_removed_and_reported(cache, archive_folder):
    publish(archive_folder, sha256="ab" * 32)
    with pytest.raises(RunError, match=r"broken download: its SHA-256 is .* index says abababab"):
        cache.get(KERNEL)
    assert [path.name for path in cache.folder.iterdir()] == ["lock"]
    publish(archive_folder)
    assert cache.get(KERNEL).release == RELEASE


def test_an_index_that_is_not_the_released_one_is_refused(cache, archive_folder):
    publish(archive_folder, index_sha256="cd" * 32)
    with pytest.raises(RunError, match="not what InRelease says"):
        cache.get(KERNEL)


def test_an_unsigned_release_is_refused(tmp_path, archive_folder):
    with pytest.raises(ManetError, match=r"no good signature|not installed, and packages are checked"):
        Archive(archive_folder.as_uri()).find("bookworm", "linux-image-amd64")


def test_an_interrupted_download_is_continued(tmp_path, server, no_depmod):
    server.breaks_after = 20_000
    assert cache_of(tmp_path, server.base).get(KERNEL).release == RELEASE
    assert [start for path, start in server.requests if path.endswith(".deb")] == [0, 20_000]


def test_a_download_that_was_killed_is_taken_up_by_the_next_call(tmp_path, server, no_depmod):
    cache = cache_of(tmp_path, server.base)
    cache.folder.mkdir()
    part = cache.folder / "linux-image-6.1.0-9-amd64_6.1.9-1.deb.part"
    part.write_bytes((server.root / DEB).read_bytes()[:30_000])
    (cache.folder / "unpacking.killed").mkdir()
    assert cache.get(KERNEL).release == RELEASE
    assert [start for path, start in server.requests if path.endswith(".deb")] == [30_000]
    assert not part.exists() and not (cache.folder / "unpacking.killed").exists()


def test_a_half_written_entry_counts_as_missing(cache):
    got = cache.get(KERNEL)
    (cache.folder / "6.1.json").write_text('{"folder": ')
    assert cache.cached(KERNEL) is None
    assert cache.get(KERNEL) == got


def test_a_package_that_the_suite_has_not_is_named(cache):
    with pytest.raises(RunError, match=r"bookworm has no package linux-image-9"):
        cache.get(kernels.Kernel("9", "", "debian", "bookworm", "linux-image-9"))


def test_the_mirror_is_apts_own(tmp_path, monkeypatch):
    monkeypatch.delenv("DEBIAN_MIRROR", raising=False)
    (tmp_path / "sources.list.d").mkdir()
    assert mirror(tmp_path) == "http://deb.debian.org/debian"
    (tmp_path / "sources.list.d" / "debian.sources").write_text(
        "Types: deb\nURIs: https://other.example/ubuntu\n\nTypes: deb\nURIs: https://mirror.example/debian/\nSuites: trixie\n"
    )
    assert mirror(tmp_path) == "https://mirror.example/debian"
    (tmp_path / "sources.list").write_text("deb [signed-by=/x] http://old.example/debian trixie main\n")
    assert mirror(tmp_path) == "http://old.example/debian"
    monkeypatch.setenv("DEBIAN_MIRROR", "http://given.example/debian/")
    assert mirror(tmp_path) == "http://given.example/debian"


def test_a_full_disk_is_reported_before_anything_is_fetched(cache, monkeypatch):
    monkeypatch.setattr(kernels.shutil, "disk_usage", lambda _folder: type("Usage", (), {"free": 5_000_000})())
    with pytest.raises(RunError, match="only 5 MB are free"):
        cache.get(KERNEL)


def test_the_list_can_grow(tmp_path):
    file = Path(tmp_path / "kernels.toml")
    file.write_text('["7.0"]\ntext = "t"\narchive = "debian"\nsuite = "forky"\npackage = "linux-image-amd64"\n')
    assert kernels.find("7.0", file).suite == "forky"
