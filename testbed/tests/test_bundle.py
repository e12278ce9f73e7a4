"""Bundles: contents, reproducible bytes, and the check of archives that were changed or made to harm."""

import fcntl
import hashlib
import io
import json
import os
import random
import shutil
import socket
import stat
import warnings
import zipfile
import zlib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from testbed import __main__ as manet
from testbed.bundles import archive
from testbed.bundles.verify import MAX_RATIO, Verified, verify
from testbed.campaigns import library
from testbed.campaigns.experiment import load
from testbed.errors import RunError, UsageError
from testbed.tests.test_report import results  # noqa: F401  (a fixture)

FOLDER_FILES = {"experiment.json", "all/seed-1/run.json", "all/seed-1/scenario.json", "all/void/seed-1-try-1/run.json"}


@pytest.fixture
def bundle(results, tmp_path_factory):  # noqa: F811
    """A bundle of `results` without captures."""
    out = tmp_path_factory.mktemp("bundle") / "e.zip"
    archive.write(results, out, captures=False)
    return out


def content(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as opened:
        return {name: opened.read(name) for name in opened.namelist()}


def rewritten(path: Path, members: dict[str, bytes], **attributes: dict) -> Path:
    """The archive with other members; `attributes` are entries of each ZipInfo, by the name of the member."""
    with zipfile.ZipFile(path, "w") as opened:
        for name, data in members.items():
            info = zipfile.ZipInfo(name)
            info.external_attr = attributes.get("external_attr", {}).get(name, archive.MODE)
            opened.writestr(info, data)
    return path


def test_results_locks_and_origin_are_in_it_and_captures_are_named(results, bundle):  # noqa: F811
    members, manifest = content(bundle), json.loads(content(bundle)["bundle.json"])
    folder = f"results/{results.name}"
    assert {f"{folder}/{name}" for name in FOLDER_FILES} <= members.keys()
    assert {"checkout/requirements.lock", "checkout/Cargo.lock", "provenance.json", "README.txt"} <= members.keys()
    assert not [name for name in members if "/captures/" in name]
    capture = results / "all/seed-1/captures/sta1.pcap"
    entry = manifest["left_out"][f"{folder}/all/seed-1/captures/sta1.pcap"]
    assert (entry["bytes"], entry["sha256"]) == (capture.stat().st_size, hashlib.sha256(capture.read_bytes()).hexdigest())
    assert entry["reason"] == "a capture; --captures includes it"


def test_captures_are_in_it_on_request(results, tmp_path_factory):  # noqa: F811
    out = tmp_path_factory.mktemp("bundle") / "e.zip"
    manifest = archive.write(results, out, captures=True)
    assert f"results/{results.name}/all/seed-1/captures/sta1.pcap" in manifest["files"]
    assert manifest["left_out"] == {}
    assert verify(out).ok


def test_equal_results_give_equal_bytes(results, bundle, tmp_path_factory):  # noqa: F811
    """Also from a copy with other times and another order of the files in the folder."""
    copy = tmp_path_factory.mktemp("copy") / results.name
    for path in sorted(results.rglob("*"), reverse=True):
        if path.is_file():
            (copy / path.relative_to(results)).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy / path.relative_to(results))
    archive.write(copy, copy.parent / "again.zip", captures=False)
    assert (copy.parent / "again.zip").read_bytes() == bundle.read_bytes()


def test_the_crate_describes_tables_runs_and_their_origin(results, bundle):  # noqa: F811
    crate = json.loads(content(bundle)["ro-crate-metadata.json"])
    entities = {entity["@id"]: entity for entity in crate["@graph"]}
    assert entities["ro-crate-metadata.json"]["conformsTo"] == {"@id": "https://w3id.org/ro/crate/1.1"}
    root = entities["./"]
    assert {"name", "description", "datePublished"} <= root.keys()
    assert {"@id": f"results/{results.name}/all/seed-1/"} in root["hasPart"]
    lock = entities["checkout/requirements.lock"]
    assert lock["sha256"] == hashlib.sha256(content(bundle)["checkout/requirements.lock"]).hexdigest()
    assert entities["#runs"]["instrument"] == {"@id": "#manet"}
    assert {part["@id"] for part in root["hasPart"]} <= entities.keys()


def test_a_link_is_left_out_and_not_followed(results, tmp_path_factory):  # noqa: F811
    secret = tmp_path_factory.mktemp("secret") / "key"
    secret.write_text("secret")
    (results / "all" / "link").symlink_to(secret)
    (results / "all" / "folder").symlink_to(secret.parent)
    out = secret.parent.parent / "e.zip"
    manifest = archive.write(results, out, captures=True)
    assert set(manifest["left_out"]) == {f"results/{results.name}/all/{name}" for name in ("link", "folder")}
    assert b"secret" not in b"".join(content(out).values())


def test_a_campaign_is_bundled_with_all_its_experiments(results, tmp_path_factory):  # noqa: F811
    campaign = tmp_path_factory.mktemp("campaigns") / "hv"
    for name in ("hv-fig1", "hv-fig3"):
        shutil.copytree(results, campaign / name)
    (campaign / "campaign.json").write_text('{"format": "manet-campaign/1", "resume": "./manet campaign hv --quick"}')
    manifest = archive.write(campaign, campaign.parent / "hv.zip", captures=False)
    assert {f"results/hv/{name}/all/seed-1/run.json" for name in ("hv-fig1", "hv-fig3")} <= manifest["files"].keys()
    assert json.loads(content(campaign.parent / "hv.zip")["provenance.json"])["runs"] == 4  # two of them put aside
    assert "\n          ./manet campaign hv --quick\n" in content(campaign.parent / "hv.zip")["README.txt"].decode()
    assert verify(campaign.parent / "hv.zip").ok


def test_a_run_with_a_value_of_another_type_is_one_line(results, tmp_path_factory, capsys):  # noqa: F811
    path = results / "all" / "seed-1" / "run.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"host": "laptop"}))
    assert manet.main(["bundle", str(results), "--out", str(tmp_path_factory.mktemp("out") / "e.zip")]) == 1
    error = capsys.readouterr().err
    assert 'run.json: "host" is "laptop", of another type' in error and len(error.splitlines()) == 1


def test_an_experiment_of_the_users_own_is_in_it_as_it_was_run(results, tmp_path_factory):  # noqa: F811
    """Also the file that it is based on, in a folder beside its own; the file on the disk may have changed since."""
    folder = tmp_path_factory.mktemp("own")
    own, base = folder / "mine" / "e.toml", folder / "common" / "base.toml"
    own.parent.mkdir()
    base.parent.mkdir()
    base.write_text("[scenario]\nhops = 1\n")
    own.write_text('question = "?"\nbase = "../common/base.toml"\n')
    definition = json.loads(load(own).to_json())["definition"]
    description = json.loads((results / "experiment.json").read_text())
    (results / "experiment.json").write_text(json.dumps(description | {"definition": definition}))
    own.write_text("changed")
    archive.write(results, folder / "e.zip", captures=False)
    members = content(folder / "e.zip")
    where = f"definition/{results.name}"
    assert members[f"{where}/mine/e.toml"] == b'question = "?"\nbase = "../common/base.toml"\n'
    assert members[f"{where}/common/base.toml"] == base.read_bytes()
    assert "definition/, if there is one" in members["README.txt"].decode()
    members[f"{where}/mine/e.toml"] += b"#"
    assert verify(rewritten(folder / "e.zip", members)).changed == [f"{where}/mine/e.toml"]


@pytest.mark.parametrize("definition", [5, [5], [{"name": "x"}], [{"name": "../x", "text": ""}], [{"name": "/x", "text": ""}]])
def test_an_edited_definition_is_refused_with_the_remedy(results, tmp_path_factory, definition):  # noqa: F811
    description = json.loads((results / "experiment.json").read_text())
    (results / "experiment.json").write_text(json.dumps(description | {"definition": definition}))
    with pytest.raises(UsageError, match=r'experiment.json: "definition" holds no name and text of a file; run again with'):
        archive.write(results, tmp_path_factory.mktemp("out") / "e.zip", captures=False)


def test_an_experiment_of_the_checkout_is_not_copied():
    assert "definition" not in json.loads(load(library.find("hv-fig1")).to_json())


def test_a_damaged_description_does_not_keep_results_out_of_a_bundle(results, tmp_path_factory):  # noqa: F811
    (results / "experiment.json").write_text("[]")
    out = tmp_path_factory.mktemp("out") / "e.zip"
    archive.write(results, out, captures=False)
    assert content(out)[f"results/{results.name}/experiment.json"] == b"[]"


def test_a_folder_that_is_being_written_is_refused(results, tmp_path_factory):  # noqa: F811
    descriptor = os.open(results, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        with pytest.raises(UsageError, match="a manet is writing there; wait for its end"):
            archive.write(results, tmp_path_factory.mktemp("out") / "e.zip", captures=False)
    finally:
        os.close(descriptor)


def test_the_command_writes_and_checks(results, capsys):  # noqa: F811
    out = results.with_name("bundled.zip")
    assert manet.main(["bundle", str(results), "--out", str(out)]) == 0
    written = capsys.readouterr().out
    assert f"sha256    {hashlib.sha256(out.read_bytes()).hexdigest()}" in written and f"written   {out}" in written
    assert manet.main(["bundle", "--verify", str(out)]) == 0
    assert "verdict   as bundled" in capsys.readouterr().out
    members = content(out)
    members[f"results/{results.name}/experiment.json"] += b" "
    rewritten(out, members)
    assert manet.main(["bundle", "--verify", str(out), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["changed"] == [f"results/{results.name}/experiment.json"]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["bundle"], "no DIR; give a folder of results, or --verify FILE"),
        (["bundle", "/proc/nowhere"], "/proc/nowhere: No such file or directory; give a folder that `manet run` has made"),
        (["bundle", "{}", "--verify", "x.zip"], "--verify checks an archive alone; leave it out"),
        (["bundle", "--verify", "x.zip", "--captures"], "--captures: --verify checks an archive alone; leave it out"),
        (["bundle", "{}", "--out", "{}/in.zip"], "is in the folder that is bundled; give a file elsewhere with --out"),
        (["bundle", "{}/all", "--out", "/tmp/none.zip"], "holds neither experiment.json nor campaign.json"),
        (["bundle", "{}", "--out", "/proc/x.zip"], "/proc/x.zip: No such file or directory; correct the path or its permissions"),
        (
            ["bundle", "--verify", "/proc/nowhere.zip"],
            "/proc/nowhere.zip: No such file or directory; give an archive that `manet bundle`",
        ),
        (["bundle", "/"], "give a file elsewhere with --out"),
        (["bundle", "--verify", "/tmp"], "/tmp: is a folder and no plain file; give an archive that `manet bundle` has written"),
        (["bundle", "--verify", "/dev/zero"], "/dev/zero: is a device and no plain file; give an archive that `manet bundle`"),
        (["bundle", "--verify", "/etc/passwd"], "/etc/passwd: is no bundle, or is cut short (not a zip file); give an archive"),
    ],
)
def test_wrong_use_is_one_line_with_the_remedy(results, capsys, arguments, text):  # noqa: F811
    assert manet.main([argument.format(results) for argument in arguments]) in (1, 2)
    error = capsys.readouterr().err
    assert text in error and len(error.splitlines()) == 1


def test_changed_missing_and_added_files_are_named(bundle):
    members = content(bundle)
    first, second = sorted(name for name in members if name.startswith("results/"))[:2]
    members[first] += b"x"
    del members[second]
    members["results/new.csv"] = b"1"
    found = verify(rewritten(bundle, members))
    assert (found.changed, found.missing, found.added, found.unsafe) == ([first], [second], ["results/new.csv"], [])


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("../../etc/cron.d/x", "leads out"), ("/etc/passwd", "leads out"), ("a/../../b", "leads out"), ("C:\\x", "leads out"),
        ("..\\x", "leads out"), ("a\x1b[2Jb", "control characters"), ("results/", "is no plain file"),
    ],
)  # fmt: skip
def test_names_that_would_harm_are_unsafe_and_shown_without_harm(bundle, name, why):
    found = verify(rewritten(bundle, content(bundle) | {name: b""}))
    assert len(found.unsafe) == 1 and why in found.unsafe[0] and found.unsafe[0].isprintable()


def test_links_and_devices_are_unsafe(bundle):
    members = content(bundle) | {"link": b"/etc/passwd"}
    found = verify(rewritten(bundle, members, external_attr={"link": (stat.S_IFLNK | 0o777) << 16}))
    assert found.unsafe == ["link: is no plain file"]


def test_a_name_that_is_there_twice_is_unsafe(bundle):
    """Two archivers may unpack different ones."""
    name = sorted(content(bundle))[0]
    with warnings.catch_warnings(action="ignore"), zipfile.ZipFile(bundle, "a") as opened:
        opened.writestr(name, b"other")
    found = verify(bundle)
    assert found.unsafe == [f"{name}: is there twice"]


@pytest.mark.parametrize("kind", ["pipe", "socket"])
def test_what_would_never_end_is_no_archive(tmp_path, kind):
    """Without a writer, opening the pipe waited for ever."""
    path = tmp_path / "b.zip"
    if kind == "pipe":
        os.mkfifo(path)
    else:
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(str(path))
    with pytest.raises(UsageError, match=rf"b\.zip: is a {kind} and no plain file; give an archive"):
        verify(path)


@pytest.mark.parametrize("size", [archive.CHUNK - 1, archive.CHUNK, archive.CHUNK + 1])
def test_a_member_of_any_size_is_as_bundled(results, tmp_path_factory, size):  # noqa: F811
    """The mark of the end of its data comes with the last piece, or alone behind it."""
    (results / "zeros").write_bytes(bytes(size))
    (results / "noise").write_bytes(random.Random(1).randbytes(size))
    out = tmp_path_factory.mktemp("out") / "e.zip"
    archive.write(results, out, captures=False)
    assert verify(out) == Verified(files=verify(out).files, seal=verify(out).seal)


def test_a_link_to_an_archive_is_followed(bundle):
    link = bundle.with_name("link.zip")
    link.symlink_to(bundle)
    assert verify(link).ok


def local(name: str, data: bytes) -> bytes:
    """A member that no list of members names: its header and its data."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as opened:
        opened.writestr(zipfile.ZipInfo(name), data)
        return target.getvalue()[: opened.start_dir]


def changed(data: bytes, place: int, value: int) -> bytes:
    return data[:place] + bytes([value]) + data[place + 1 :]


def start_of_list(data: bytes) -> int:
    return int.from_bytes(data[-6:-2], "little")


def hidden_before_the_list(data: bytes) -> bytes:
    """Another member between the last one and the list, whose place the end of the archive states."""
    start, more = start_of_list(data), local("results/evil.sh", b"evil")
    return data[:start] + more + data[start:-6] + (start + len(more)).to_bytes(4, "little") + data[-2:]


def hidden_in_the_last_member(data: bytes) -> bytes:
    """Bytes behind the end of the deflated data of bundle.json, which both of its sizes count."""
    start, more = start_of_list(data), b"evil"
    entry, header = data.rindex(b"PK\x01\x02"), data.rindex(b"PK\x03\x04")
    out = bytearray(data)
    for place in (entry + 20, header + 18):
        out[place : place + 4] = (int.from_bytes(out[place : place + 4], "little") + len(more)).to_bytes(4, "little")
    out[-6:-2] = (start + len(more)).to_bytes(4, "little")
    return bytes(out[:start]) + more + bytes(out[start:])


FORGED = {
    "bytes before the archive": lambda data: b"#!/bin/sh\n" + data,
    "a member before the archive": lambda data: local("results/evil.sh", b"evil") + data,
    "bytes behind the archive": lambda data: data + b"evil",
    "a comment of the archive": lambda data: data[:-2] + b"\x04\x00evil",
    "a member that is in no list": hidden_before_the_list,
    "bytes in the last member": hidden_in_the_last_member,
    "the flag of encryption in a local header": lambda data: changed(data, 6, 1),
    "another time in a local header": lambda data: changed(data, 10, 1),
    "another name in a local header": lambda data: changed(data, 30, ord("X")),
    "another size in a local header": lambda data: changed(data, 22, 1),
    "the flag of encryption in the list": lambda data: changed(data, start_of_list(data) + 8, 1),
    "another disk in the list": lambda data: changed(data, start_of_list(data) + 34, 1),
}


@pytest.mark.parametrize("forge", FORGED.values(), ids=FORGED.keys())
def test_bytes_that_no_member_accounts_for_are_not_as_bundled(tmp_path, capsys, forge):
    """Another program may unpack what this one does not see."""
    path = tmp_path / "b.zip"
    path.write_bytes(SMALL)
    assert verify(path).ok
    path.write_bytes(forge(SMALL))
    assert manet.main(["bundle", "--verify", str(path)]) == 1
    output = capsys.readouterr()
    assert "verdict   as bundled" not in output.out and len(output.err.splitlines()) <= 1


def test_bytes_inside_a_member_behind_its_data_are_a_change(tmp_path):
    """Stored data with a size that differs from the list's second one."""
    data, wanted = b"a" * 20, hashlib.sha256(b"a" * 10).hexdigest()
    listed = {"format": archive.FORMAT, "files": {"a": {"bytes": 10, "sha256": wanted}}}
    path = rewritten(tmp_path / "b.zip", {"bundle.json": json.dumps(listed).encode(), "a": data})
    content_bytes, crc = path.read_bytes(), zlib.crc32(b"a" * 10).to_bytes(4, "little")
    sizes = zlib.crc32(data).to_bytes(4, "little") + (20).to_bytes(4, "little") * 2
    path.write_bytes(content_bytes.replace(sizes, crc + (20).to_bytes(4, "little") + (10).to_bytes(4, "little")))
    assert zipfile.ZipFile(path).read("a") == b"a" * 10
    assert verify(path).changed == ["a"]


def bomb(out: Path, entry_bytes: int, method: int = zipfile.ZIP_DEFLATED) -> Path:
    """An archive whose manifest lists one member of zeros as so many bytes."""
    listed = {"format": archive.FORMAT, "files": {"zeros": {"bytes": entry_bytes, "sha256": "0" * 64}}}
    with zipfile.ZipFile(out, "w", method) as opened:
        opened.writestr("bundle.json", json.dumps(listed))
        opened.writestr("zeros", bytes(50_000_000))
    return out


def test_no_more_of_a_member_is_read_than_the_manifest_states(tmp_path, monkeypatch):
    """50 MB of zeros in 49 kB: the sizes differ, so not a byte is decompressed."""
    read = []
    monkeypatch.setattr(zipfile.ZipExtFile, "read", _counting(read, zipfile.ZipExtFile.read))
    assert verify(bomb(tmp_path / "b.zip", 10)).changed == ["zeros"]
    assert sum(read) < 1000  # the manifest


def test_a_large_member_is_read_in_chunks(tmp_path, monkeypatch):
    read = []
    monkeypatch.setattr(zipfile.ZipExtFile, "read", _counting(read, zipfile.ZipExtFile.read))
    assert verify(bomb(tmp_path / "b.zip", 50_000_000)).changed == ["zeros"]
    assert max(read) <= archive.CHUNK and sum(read) < 51_000_000


def _counting(sizes, read):
    def counted(self, n=-1):
        data = read(self, n)
        sizes.append(len(data))
        return data

    return counted


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_methods_that_expand_further_are_not_decompressed(tmp_path, method):
    with pytest.raises(RunError, match="compressed by another method than deflate"):
        verify(bomb(tmp_path / "b.zip", 50_000_000, method))


def test_a_size_that_deflate_cannot_reach_is_unsafe(tmp_path):
    """The size in the list of members is changed to 3 GB, and the manifest agrees."""
    path = bomb(tmp_path / "b.zip", 3_000_000_000)
    data, true, false = path.read_bytes(), (50_000_000).to_bytes(4, "little"), (3_000_000_000).to_bytes(4, "little")
    path.write_bytes(data.replace(true, false))
    compressed = zipfile.ZipFile(path).getinfo("zeros").compress_size
    assert MAX_RATIO * compressed + archive.CHUNK < 3_000_000_000
    found = verify(path)
    assert found.unsafe == ["zeros: states a size that its data cannot have"] and found.changed == ["zeros"]


def test_members_that_share_their_data_are_refused(tmp_path):
    """As in a bomb whose entries all point to one block of data."""
    path = bomb(tmp_path / "b.zip", 50_000_000)
    data = path.read_bytes()
    end = data.rindex(b"PK\x05\x06")
    directory = data[int.from_bytes(data[end + 16 : end + 20], "little") : end]
    entry = directory[directory.index(b"PK\x01\x02", 4) :]
    copies = b"".join(entry.replace(b"zeros", b"z%04d" % number) for number in range(100))
    count, size = (102).to_bytes(2, "little"), (len(directory) + len(copies)).to_bytes(4, "little")
    path.write_bytes(data[:end] + copies + data[end : end + 8] + count + count + size + data[end + 16 :])
    assert len(zipfile.ZipFile(path).namelist()) == 102
    with pytest.raises(RunError, match="its members overlap"):
        verify(path)


@pytest.mark.parametrize(
    ("manifest", "why"),
    [
        (b"", 'is no "manet-bundle/1"'), (b"[]", 'is no "manet-bundle/1"'), (b"[" * 200_000, 'is no "manet-bundle/1"'),
        (b'{"format": "manet-bundle/2", "files": {}}', 'is no "manet-bundle/1"'), (b"\xff\xfe", 'is no "manet-bundle/1"'),
        (b'{"format": "manet-bundle/1", "files": {"a": 1}}', "without size and sha256"),
        (b'{"format": "manet-bundle/1", "files": {"a": {"bytes": true, "sha256": ""}}}', "without size and sha256"),
    ],
)  # fmt: skip
def test_a_manifest_of_another_kind_is_an_error_of_one_line(tmp_path, manifest, why):
    with pytest.raises(RunError, match=why) as problem:
        verify(rewritten(tmp_path / "b.zip", {"bundle.json": manifest}))
    assert len(str(problem.value).splitlines()) == 1


@pytest.mark.parametrize("data", [b"", b"PK", b"no archive", b"PK\x05\x06" + bytes(18)])
def test_a_file_of_another_kind_is_an_error_of_one_line(tmp_path, data):
    (tmp_path / "b.zip").write_bytes(data)
    with pytest.raises(RunError, match=r"b.zip: is no bundle, or is cut short"):
        verify(tmp_path / "b.zip")


def small() -> bytes:
    """A small bundle, in memory."""
    files = {f"results/e/{name}": name.encode() * 20 for name in ("a.csv", "b.json", "c/run.json")}
    listed = {name: {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()} for name, data in files.items()}
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as opened:
        for name, data in {**files, "bundle.json": json.dumps({"format": archive.FORMAT, "files": listed}).encode()}.items():
            opened.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
    return target.getvalue()


SMALL = small()
CHANGE = st.tuples(st.integers(0, len(SMALL) - 1), st.integers(0, 255))


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(changes=[(710, 2)], cut=None, more=b"")  # led zipfile to a place before the file
@given(changes=st.lists(CHANGE, max_size=6), cut=st.none() | st.integers(0, len(SMALL)), more=st.binary(max_size=40))
def test_any_bytes_are_verified_or_an_error_and_never_pass_with_other_contents(tmp_path_factory, changes, cut, more):
    """If a changed archive passes under the seal of the true one, it unpacks to the same files."""
    data = bytearray(SMALL)
    for place, value in changes:
        data[place] = value
    path = tmp_path_factory.mktemp("fuzz") / "b.zip"
    path.write_bytes(bytes(data[:cut]) + more)
    try:
        with warnings.catch_warnings(action="ignore"):
            found: Verified = verify(path)
    except RunError as problem:
        assert len(str(problem).splitlines()) == 1
        return
    assert all(name.isprintable() for name in (*found.changed, *found.missing, *found.added, *found.unsafe))
    true = path.with_name("true.zip")
    true.write_bytes(SMALL)
    if found.ok and found.seal == verify(true).seal:
        assert content(path) == content(true)
