"""The document of an editor: versions between tabs, the draft, saving."""

import json
from pathlib import Path

import pytest

from testbed.errors import UsageError
from testbed.view.editor.session import NEW, Question, Session, Stale
from testbed.view.editor.workspace import Workspace

HOPS = {"op": "text", "text": "hops = 2 # mine\n", "joins": False}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def opened(folder: Path, name: str = "a.toml") -> Session:
    return Session(Workspace(folder), name)


def test_a_change_is_in_the_draft_at_once_and_saving_removes_it(folder):
    session = opened(folder)
    assert session.text == NEW and session.is_saved and session.last_words() is None
    state = session.apply(HOPS, 1)
    assert (folder / ".a.toml.draft").read_text() == "hops = 2 # mine\n" and not state["saved"]
    assert "a.toml is not saved; its draft is" in session.last_words()
    state = session.save(None, state["version"], overwrite=False)
    assert (folder / "a.toml").read_text() == "hops = 2 # mine\n" and state["saved"]
    assert not (folder / ".a.toml.draft").exists() and session.last_words() is None


def test_undo_back_to_the_saved_text_removes_the_draft(folder):
    (folder / "a.toml").write_text("hops = 1\n")
    session = opened(folder)
    session.apply(HOPS, 1)
    assert (folder / ".a.toml.draft").exists()
    assert session.apply({"op": "undo"}, 2)["saved"] and not (folder / ".a.toml.draft").exists()


def test_after_a_killed_server_the_draft_is_asked_about_and_nothing_else_happens_before(folder):
    (folder / "a.toml").write_text("hops = 1\n")
    opened(folder).apply(HOPS, 1)  # and nobody ends it
    session = opened(folder)
    assert session.state()["draft"] == HOPS["text"] and session.text == "hops = 1\n"
    for act in (lambda: session.apply(HOPS, 1), lambda: session.save(None, 1, overwrite=True)):
        with pytest.raises(UsageError, match="take or discard"):
            act()
    state = session.answer_draft(take=True)
    assert state["text"] == HOPS["text"] and state["draft"] is None and state["can_undo"]
    assert (folder / ".a.toml.draft").read_text() == HOPS["text"]
    again = opened(folder)
    assert not again.answer_draft(take=False)["can_undo"] and not (folder / ".a.toml.draft").exists()


def test_a_tab_that_shows_an_older_version_changes_nothing(folder):
    session = opened(folder)
    session.apply(HOPS, 1)
    for act in (
        lambda: session.apply({"op": "set", "path": ["hops"], "value": 9}, 1),
        lambda: session.save(None, 1, overwrite=True),
    ):
        with pytest.raises(Stale):
            act()
    assert session.text == HOPS["text"] and not (folder / "a.toml").exists()
    assert session.since(2) == {"version": 2} and session.since(1)["text"] == HOPS["text"]
    for wrong in (None, "2", True, 2.0):
        with pytest.raises(UsageError):
            session.apply(HOPS, wrong)


def test_saving_asks_before_it_replaces_what_it_has_not_seen(folder):
    (folder / "a.toml").write_text("hops = 1\n")
    (folder / "b.toml").write_text("hops = 8\n")
    session = opened(folder)
    version = session.apply(HOPS, 1)["version"]
    (folder / "a.toml").write_text("hops = 7 # by hand\n")
    with pytest.raises(Question, match="changed by another program"):
        session.save(None, version, overwrite=False)
    with pytest.raises(Question, match="exists"):
        session.save("b.toml", version, overwrite=False)
    assert (folder / "a.toml").read_text() == "hops = 7 # by hand\n" and (folder / "b.toml").read_text() == "hops = 8\n"
    state = session.save("c.toml", version, overwrite=False)
    assert state["name"] == "c.toml" and (folder / "c.toml").read_text() == HOPS["text"]
    session.save("b.toml", state["version"], overwrite=True)
    assert (folder / "b.toml").read_text() == HOPS["text"]


def test_a_draft_that_cannot_be_written_is_said_and_tried_again(folder):
    session = opened(folder)
    (folder / ".a.toml.draft").mkdir()
    state = session.apply(HOPS, 1)
    assert "no plain file" in state["draft_error"] and state["text"] == HOPS["text"]
    assert "could not be written" in session.last_words()
    (folder / ".a.toml.draft").rmdir()
    assert session.apply({"op": "text", "text": "hops = 3\n", "joins": False}, state["version"])["draft_error"] is None
    assert (folder / ".a.toml.draft").read_text() == "hops = 3\n"


def test_a_draft_that_could_not_be_written_is_tried_again_without_a_change(folder):
    session = opened(folder)
    (folder / ".a.toml.draft").mkdir()
    version = session.apply(HOPS, 1)["version"]
    assert "no plain file" in session.at_risk() and session.since(version) == {"version": version}
    (folder / ".a.toml.draft").rmdir()
    assert session.since(0)["draft_error"] is None and (folder / ".a.toml.draft").read_text() == HOPS["text"]
    assert session.at_risk() is None and "its draft is" in session.last_words()


def test_at_the_end_the_draft_is_tried_once_more(folder):
    session = opened(folder)
    (folder / ".a.toml.draft").mkdir()
    session.apply(HOPS, 1)
    (folder / ".a.toml.draft").rmdir()
    assert "its draft is" in session.last_words() and (folder / ".a.toml.draft").read_text() == HOPS["text"]


def test_saving_after_a_draft_that_could_not_be_written_leaves_nothing_to_say(folder):
    session = opened(folder)
    (folder / ".a.toml.draft").mkdir()
    version = session.apply(HOPS, 1)["version"]
    (folder / ".a.toml.draft").rmdir()
    assert session.save(None, version, overwrite=False)["draft_error"] is None and session.last_words() is None


def test_two_editors_of_one_file_never_replace_each_others_draft(folder):
    one, other = opened(folder), opened(folder)
    one.apply(HOPS, 1)
    state = other.apply({"op": "text", "text": "hops = 9\n", "joins": False}, 1)
    assert "by another editor" in state["draft_error"] and (folder / ".a.toml.draft").read_text() == HOPS["text"]
    assert other.save("b.toml", state["version"], overwrite=False)["draft_error"] is None
    assert (folder / ".a.toml.draft").read_text() == HOPS["text"], "saving has removed the draft of another editor"
    one.save(None, 2, overwrite=False)
    assert sorted(path.name for path in folder.iterdir()) == ["a.toml", "b.toml"]


def test_an_editor_that_saves_takes_its_own_draft_away_alone(folder):
    one, other = opened(folder), opened(folder)
    one.apply(HOPS, 1)
    other.apply({"op": "text", "text": "hops = 9\n", "joins": False}, 1)
    assert other.save(None, 2, overwrite=False)["saved"] and (folder / ".a.toml.draft").read_text() == HOPS["text"]
    with pytest.raises(Question, match="changed by another program"):
        one.save(None, 2, overwrite=False)


def test_saving_under_a_name_that_has_a_draft_asks(folder):
    (folder / ".b.toml.draft").write_text("hops = 8 # never saved\n")
    session = opened(folder)
    version = session.apply(HOPS, 1)["version"]
    with pytest.raises(Question, match="never saved"):
        session.save("b.toml", version, overwrite=False)
    assert not (folder / "b.toml").exists() and (folder / ".b.toml.draft").read_text() == "hops = 8 # never saved\n"
    assert session.save("b.toml", version, overwrite=True)["name"] == "b.toml"
    assert sorted(path.name for path in folder.iterdir()) == ["b.toml"]


def test_the_state_of_a_text_that_is_no_toml_names_the_error(folder):
    state = opened(folder).apply({"op": "text", "text": "hops = = 2", "joins": False}, 1)
    assert state["values"] == {} and "not TOML" in state["error"] and state["text"] == "hops = = 2"


@pytest.mark.parametrize("value", ["inf", "-inf", "nan", "1e400", "2026-11-28", "08:30:00"])
def test_values_that_json_does_not_know_are_shown_as_text(tmp_path, value):
    (tmp_path / "x.toml").write_text(f"window = {value}\n")
    state = Session(Workspace(tmp_path), "x.toml").state()
    assert isinstance(state["values"]["window"], str) and state["error"] is None
    json.dumps(state, allow_nan=False)


@pytest.mark.parametrize(
    "text",
    ["a." * 5000 + "b = 1", "a = " + "9" * 5000, "a = 0x" + "f" * 9000, "a = " + "[" * 3000, "a = " + "[" * 900 + "]" * 900],
)
def test_a_text_that_no_scenario_has_is_shown_with_its_error_and_can_be_undone(tmp_path, text):
    session = Session(Workspace(tmp_path), "x.toml")
    state = session.apply({"op": "text", "text": text, "joins": False}, 1)
    assert state["text"] == text and state["error"] and session.check()["problem"]
    assert Session(Workspace(tmp_path), "x.toml").state()["draft"] == text
    assert session.apply({"op": "undo"}, state["version"])["text"] == NEW
