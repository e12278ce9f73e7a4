"""The name in an object file (operations_name.c): a hostile ELF file is refused, and no byte outside it is touched.

Built with the address and undefined-behaviour sanitizers; the objects are made here, field by field (elf(5)).
"""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
DEADLINE_S = 120
ROUNDS = 300_000
MAX_U64 = 2**64 - 1

# Offsets in Elf64_Ehdr, and in Elf64_Shdr: (offset, format).
CLASS, SHOFF, SHENTSIZE, SHNUM, SHSTRNDX = (4, "B"), (0x28, "<Q"), (0x3A, "<H"), (0x3C, "<H"), (0x3E, "<H")
SH_NAME, SH_TYPE, SH_OFFSET, SH_SIZE = (0, "<I"), (4, "<I"), (24, "<Q"), (32, "<Q")
HEADER_BYTES, SECTION_BYTES, NOBITS = 64, 64, 8
OPERATIONS, STRINGS = 1, 2  # indices of sections
NAMES = b"\0.struct_ops\0.shstrtab\0"


def section(name: int, kind: int, offset: int, size: int) -> bytes:
    return struct.pack("<IIQQQQIIQQ", name, kind, 0, 0, offset, size, 0, 0, 1, 0)


def an_object(operations: bytes = bytes(8) + b"tahoe".ljust(56, b"\0")) -> bytearray:
    """Little-endian, 64 bits: header, `.struct_ops`, the names, and the table of sections at the end."""
    at_names = HEADER_BYTES + len(operations)
    at_table = (at_names + len(NAMES) + 7) // 8 * 8
    ident = b"\x7fELF" + bytes([2, 1, 1]).ljust(12, b"\0")
    header = ident + struct.pack("<HHIQQQIHHHHHH", 1, 247, 1, 0, 0, at_table, 0, 64, 0, 0, SECTION_BYTES, 3, STRINGS)
    table = bytes(SECTION_BYTES) + section(1, 1, HEADER_BYTES, len(operations)) + section(13, 3, at_names, len(NAMES))
    return bytearray((header + operations + NAMES).ljust(at_table, b"\0") + table)


def put(elf: bytearray, field: tuple[int, str], value: int, base: int = 0) -> bytearray:
    struct.pack_into(field[1], elf, base + field[0], value)
    return elf


def of_section(elf: bytearray, index: int) -> int:
    return struct.unpack_from("<Q", elf, SHOFF[0])[0] + index * SECTION_BYTES


def with_section(index: int, field: tuple[int, str], value: int) -> bytearray:
    elf = an_object()
    return put(elf, field, value, of_section(elf, index))


@pytest.fixture(scope="module")
def binary(tmp_path_factory) -> Path:
    if not shutil.which("gcc"):
        pytest.skip("needs gcc and its sanitizers (./setup.sh)")
    target = tmp_path_factory.mktemp("name") / "operations_name"
    sources = [HERE / "operations_name_fuzz.c", HERE.parent / "operations_name.c"]
    flags = ["-g", "-O1", "-std=gnu11", "-fsanitize=address,undefined", "-fno-sanitize-recover", f"-I{HERE.parent}"]
    subprocess.run(["gcc", *flags, "-o", target, *sources], check=True)
    return target


def output_of(binary: Path, path: Path, *arguments: str) -> str:
    done = subprocess.run([binary, path, *arguments], capture_output=True, text=True, timeout=DEADLINE_S)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_an_object_is_renamed(binary, tmp_path):
    path = tmp_path / "sound.bpf.o"
    path.write_bytes(an_object())
    assert output_of(binary, path) == "renamed"


SIZE = len(an_object())
HOSTILE = {
    "empty": bytearray(),
    "magic alone": an_object()[:4],
    "header alone": an_object()[:HEADER_BYTES],
    "header short by a byte": an_object()[: HEADER_BYTES - 1],
    "table short by a byte": an_object()[:-1],
    "32 bits": put(an_object(), CLASS, 1),
    "table at the largest number": put(an_object(), SHOFF, MAX_U64),
    "table that ends beyond 2^64": put(an_object(), SHOFF, MAX_U64 - 3 * SECTION_BYTES + 1),
    "table before the file": put(an_object(), SHOFF, MAX_U64 - 63),
    "sections of another size": put(an_object(), SHENTSIZE, 40),
    "more sections than fit": put(an_object(), SHNUM, 0xFFFF),
    "no sections": put(put(an_object(), SHNUM, 0), SHSTRNDX, 0),
    "names in a section that there is not": put(an_object(), SHSTRNDX, 3),
    "names at the largest number": with_section(STRINGS, SH_OFFSET, MAX_U64),
    "names that end beyond 2^64": with_section(STRINGS, SH_OFFSET, MAX_U64 - 4),
    "names longer than the file": with_section(STRINGS, SH_SIZE, SIZE),
    "names of the largest size": with_section(STRINGS, SH_SIZE, MAX_U64),
    "names that end within the name": with_section(STRINGS, SH_SIZE, 12),
    "names without bytes": with_section(STRINGS, SH_TYPE, NOBITS),
    "a name beyond the names": with_section(OPERATIONS, SH_NAME, len(NAMES)),
    "a name at the largest number": with_section(OPERATIONS, SH_NAME, 0xFFFFFFFF),
    "operations at the largest number": with_section(OPERATIONS, SH_OFFSET, MAX_U64),
    "operations that end beyond 2^64": with_section(OPERATIONS, SH_OFFSET, MAX_U64 - 63),
    "operations of the largest size": with_section(OPERATIONS, SH_SIZE, MAX_U64),
    "operations that wrap around": with_section(OPERATIONS, SH_SIZE, MAX_U64 - HEADER_BYTES + 1),
    "operations beyond the end": with_section(OPERATIONS, SH_SIZE, SIZE - HEADER_BYTES + 1),
    "operations without bytes": with_section(OPERATIONS, SH_TYPE, NOBITS),
    "no room for a name": an_object(bytes(8) + b"tahoe".ljust(15, b"\0")),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_object_is_refused(binary, tmp_path, case):
    path = tmp_path / "hostile.bpf.o"
    path.write_bytes(HOSTILE[case])
    assert output_of(binary, path) == "refused"


def test_an_object_cut_anywhere_is_refused(binary, tmp_path):
    path = tmp_path / "cut.bpf.o"
    for size in range(0, SIZE, 7):
        path.write_bytes(an_object()[:size])
        assert output_of(binary, path) == "refused", size


def test_mutations_touch_no_byte_outside(binary, tmp_path):
    """From a fixed seed; some remain valid objects, so that all of the code runs."""
    path = tmp_path / "sound.bpf.o"
    path.write_bytes(an_object())
    count = int(output_of(binary, path, str(ROUNDS)).split()[0])
    assert 0 < count < ROUNDS
