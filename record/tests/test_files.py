"""Files of a run line by line."""

import pytest

from record.errors import RunFileError
from record.files import read_json_lines


def test_a_line_of_json_ends_at_the_line_feed_alone(tmp_path):
    """RFC 8259, 7: a string may contain U+2028 and U+0085 as they are. The last line was left unfinished."""
    path = tmp_path / "sta1.jsonl"
    path.write_text('{"about": "a\u2028b\u0085c"}\n{"about": 2}\r\n{"abo')
    assert list(read_json_lines(path)) == [{"about": "a\u2028b\u0085c"}, {"about": 2}]
    assert list(read_json_lines(path, "b\u0085")) == [{"about": "a\u2028b\u0085c"}]
    assert list(read_json_lines(tmp_path / "none.jsonl")) == []


@pytest.mark.parametrize("damage", [b"\xff\xfe", b"\x00", b"no"])
def test_other_bytes_are_an_error_that_names_the_file(tmp_path, damage):
    path = tmp_path / "sta1.jsonl"
    path.write_bytes(b'{"about": 1}\n{"about": "' + damage + b'"\n')
    with pytest.raises(RunFileError, match=rf"{path}: not JSON"):
        list(read_json_lines(path))
