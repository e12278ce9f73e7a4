"""`manet bundle`: results and all that is needed to rerun them in one archive, and its check (formats/bundle.md)."""

import argparse
from pathlib import Path

from testbed.commands.options import add_verb, folder, new_file, written

EXAMPLES = """
  ./manet bundle results/hv-fig1     results/hv-fig1.zip, without captures
  ./manet bundle results/hv-fig1 --captures --out /tmp/fig1.zip
  ./manet bundle --verify fig1.zip   what was changed, is missing or was added

The same results give the same archive, byte for byte. --verify unpacks
nothing, and ends with status 1 if the archive is not as it was bundled.
"""
NAMED = 10  # at most so many names of a kind


def add(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = add_verb(verbs, "bundle", "put results and their origin into one archive, or check one", EXAMPLES)
    parser.add_argument("directory", metavar="DIR", nargs="?", type=folder, help="folder of results, or of a campaign")
    parser.add_argument("--out", metavar="FILE", type=new_file, help="the archive (default: DIR.zip)")
    parser.add_argument("--captures", action="store_true", help="include captures (captures/, *.pcap, *.pcapng)")
    parser.add_argument("--license", metavar="URL", help="licence of the results, for the RO-Crate metadata")
    parser.add_argument("--verify", metavar="FILE", type=folder, help="check this archive instead")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(options: argparse.Namespace) -> int:
    """Write or check a bundle. The exit status: 1 if a checked one is not as it was bundled."""
    from testbed.errors import UsageError

    if options.verify is not None:
        stray = [f"--{name}" for name in ("out", "captures", "license") if getattr(options, name)]
        if options.directory is not None or stray:
            raise UsageError(f"{options.directory or stray[0]}: --verify checks an archive alone; leave it out")
        return _verify(options.verify, options.json)
    if options.directory is None:
        raise UsageError("no DIR; give a folder of results, or --verify FILE")
    return _write(options)


def _write(options: argparse.Namespace) -> int:
    import hashlib
    import json

    from record.found_runs import find_runs
    from testbed.bundles.archive import write
    from testbed.errors import UsageError

    directory: Path = options.directory
    out: Path = options.out or directory.resolve().parent / f"{directory.resolve().name}.zip"
    if not out.resolve().parent.is_dir():
        raise UsageError(f"{out}: give a file in an existing folder with --out")
    if out.resolve().is_relative_to(directory.resolve()):
        raise UsageError(f"{out}: is in the folder that is bundled; give a file elsewhere with --out")
    manifest = write(directory, out, options.captures, options.license)
    with out.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    left_out = manifest["left_out"]
    not_counted = find_runs(directory).left_out
    if options.json:
        print(json.dumps({"file": str(out), "sha256": digest, "bytes": out.stat().st_size, "files": len(manifest["files"]),
                          "left_out": left_out, "not_counted": not_counted}, indent=1))  # fmt: skip
        return 1 if not_counted else 0
    print(f"files     {len(manifest['files'])}, {sum(entry['bytes'] for entry in manifest['files'].values())} bytes")
    if left_out:
        size = sum(entry.get("bytes", 0) for entry in left_out.values())
        print(f"left out  {len(left_out)} files, {size} bytes: captures and links; bundle.json lists them")
    print(f"sha256    {digest}")
    for name, why in list(not_counted.items())[:NAMED]:
        print(f"not counted  {name} {why}")
    print(written([out]))
    return 1 if not_counted else 0


def _verify(path: Path, as_json: bool) -> int:
    import json
    from dataclasses import asdict

    from testbed.bundles.verify import verify

    verified = verify(path)
    if as_json:
        print(json.dumps(asdict(verified) | {"ok": verified.ok}, indent=1))
        return 0 if verified.ok else 1
    for kind in ("unsafe", "changed", "missing", "added"):
        names = getattr(verified, kind)
        for name in names[:NAMED]:
            print(f"{kind:<9} {name}")
        if len(names) > NAMED:
            print(f"{kind:<9} and {len(names) - NAMED} more")
    print(f"seal      {verified.seal}")
    print(f"verdict   {'as bundled' if verified.ok else 'not as bundled'}: {verified.files} files in its manifest")
    return 0 if verified.ok else 1
