"""The cycles that tests/rust_modules.py finds in small crates, and structures that are no cycle."""

from pathlib import Path

from tests.rust_modules import cycles


def crate(src: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (src / name).parent.mkdir(parents=True, exist_ok=True)
        (src / name).write_text(text)
    return src


def test_a_cycle_through_nested_uses_inline_paths_and_serde_attributes(tmp_path):
    files = {
        "lib.rs": "pub mod a; pub mod b; pub mod c; pub mod d;",
        "a.rs": "use crate::{b::{X, Y as Z}, d};",
        "b.rs": "fn f() { super::c::g(); }",
        "c.rs": '#[serde(with = "crate::a::text")] struct S;',
        "d.rs": "use std::fmt;",
    }
    assert cycles(crate(tmp_path, files)) == [["a.rs", "b.rs", "c.rs"]]


def test_a_path_is_followed_through_re_exports_to_the_file_that_declares_the_item(tmp_path):
    files = {
        "lib.rs": "pub mod phy; pub use phy::Radio;",
        "phy/mod.rs": "pub mod radio; pub mod range;\npub use radio::Radio;\npub use range::{distance, Range};",
        "phy/range.rs": "use super::Radio;",
        "phy/radio.rs": "struct Radio;",
    }
    assert cycles(crate(tmp_path, files)) == []
    (tmp_path / "phy/radio.rs").write_text("use crate::phy::distance;")
    assert cycles(tmp_path) == [["phy/radio.rs", "phy/range.rs"]]


def test_a_module_and_its_own_submodules_are_one(tmp_path):
    files = {
        "main.rs": "mod air; mod log;",
        "air.rs": "mod ends;\nuse ends::End;",
        "air/ends.rs": "use super::Air;",
        "log.rs": "",
    }
    assert cycles(crate(tmp_path, files)) == []
    (tmp_path / "air/ends.rs").write_text("use crate::log::Row;")
    (tmp_path / "log.rs").write_text("use crate::air::Air;")
    assert cycles(tmp_path) == [["air.rs", "air/ends.rs", "log.rs"]]


def test_comments_literals_and_inline_modules_are_no_uses(tmp_path):
    files = {
        "lib.rs": "pub mod a; pub mod b;",
        "a.rs": "// crate::b\n/* use crate::b; */\nfn f() { \"use crate::b; {\"; '{'; }\n"
        "mod tests { use super::*; mod c { use super::super::b; } }",
        "b.rs": "use crate::a::f;",
    }
    assert cycles(crate(tmp_path, files)) == []
