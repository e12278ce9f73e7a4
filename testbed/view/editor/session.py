"""The document of an editor: one for all tabs, with its file and its draft. All that can be lost is in the draft at once.

Each change raises `version`; an operation names the version that it saw, and one that saw another is refused with the current
state, so that a tab never overwrites what another tab did. The draft, `.FILE.toml.draft` beside the file, is written at each
change and removed when the file is as the document. A draft that is found at the start is asked about before anything else.

A file or a draft that is not as this session left it is somebody else's: it is neither replaced nor removed without a question.
"""

import threading
from typing import Any

from testbed.errors import UsageError, shortened
from testbed.view.editor.check import Checker
from testbed.view.editor.drawing import Drawing, background_of, prefix_of, scenario_values
from testbed.view.editor.toml_edits import for_json, values_of
from testbed.view.editor.workspace import MAX_PICTURE_BYTES, PICTURES, Workspace

NEW = "# A scenario (formats/scenario.md).\n"


class Stale(UsageError):
    """The operation was for another version; the answer is the current state."""


class Question(UsageError):
    """Going on could lose something: the user must say so."""


class Session:
    """`name`: of the file in the workspace; it need not exist."""

    def __init__(self, workspace: Workspace, name: str) -> None:
        self.workspace, self.name = workspace, workspace.scenario(name)
        self._lock = threading.RLock()
        self._checker = Checker(workspace)
        self._saved = workspace.read(self.name)
        self._drawing = Drawing(NEW if self._saved is None else self._saved)
        self._draft = workspace.read(workspace.draft_of(self.name))  # as read or written here last; None: there is none
        self._found_draft = self._draft if self._draft != self._saved else None
        self._version = 1
        self._draft_error: str | None = None
        self._checked: tuple[str, str, dict[str, Any]] | None = None

    @property
    def text(self) -> str:
        """The text now."""
        return self._drawing.text

    @property
    def is_saved(self) -> bool:
        """Whether the file has this text, or there is nothing to save."""
        return self.text == (NEW if self._saved is None else self._saved)

    @property
    def found_draft(self) -> bool:
        """Whether a draft of an earlier editor waits for an answer."""
        return self._found_draft is not None

    def state(self) -> dict[str, Any]:
        """Everything but the check."""
        with self._lock:
            try:
                values, error = for_json(values_of(self.text)), None
            except UsageError as problem:
                values, error = {}, str(problem)
            return {
                "version": self._version, "name": self.name, "folder": str(self.workspace.folder), "text": self.text,
                "saved": self.is_saved, "exists": self._saved is not None, "can_undo": self._drawing.can_undo,
                "can_redo": self._drawing.can_redo, "values": scenario_values(values), "base": values.get("base"),
                "prefix": list(prefix_of(values)), "error": error, "background": background_of(self.text),
                "draft": self._found_draft, "draft_error": self._draft_error,
            }  # fmt: skip

    def since(self, version: int) -> dict[str, Any]:
        """The state if it has changed since `version`, else the version alone. A draft that was not written is tried again."""
        with self._lock:
            if self._draft_error is not None:
                self._keep_draft()
            return {"version": version} if version == self._version else self.state()

    def apply(self, operation: object, version: object) -> dict[str, Any]:
        """Carry out an operation of a tab that shows `version`. Raises UsageError, Stale."""
        with self._lock:
            self._require(version)
            before = self.text
            self._drawing.apply(operation)
            if self.text != before:
                self._changed()
            return self.state()

    def answer_draft(self, take: bool) -> dict[str, Any]:
        """Take the draft that was found as the text, which undo takes back, or remove it."""
        with self._lock:
            found, self._found_draft = self._found_draft, None
            if found is None:
                raise UsageError("there is no draft to answer for")
            if take:
                self._drawing.apply({"op": "text", "text": found, "joins": False})
            self._changed()
            return self.state()

    def save(self, name: object, version: object, overwrite: bool) -> dict[str, Any]:
        """Write the file, under another name if one is given. Raises UsageError, Stale, and Question if it would replace what
        this editor has not seen."""
        with self._lock:
            self._require(version)
            target = self.name if name is None else self.workspace.scenario(name)
            there, draft = self.workspace.read(target), self._draft if target == self.name else self._draft_beside(target)
            if target == self.name and there != self._saved and not overwrite:
                what = "was removed" if there is None else "was changed by another program"
                raise Question(f"{target} {what} since it was read; save over it?")
            if target != self.name and there is not None and not overwrite:
                raise Question(f"{target} exists; replace it?")
            if target != self.name and draft not in (None, there, self.text) and not overwrite:
                raise Question(f"{target} has a draft that was never saved; save, and remove the draft?")
            self.workspace.write(target, self.text)
            self._saved = self.text
            self._keep_draft()
            if target != self.name:
                self.name, self._draft = target, draft
                self._keep_draft()
            self._version += 1
            return self.state()

    def check(self) -> dict[str, Any]:
        """`version`, and the check of its text."""
        with self._lock:
            version, text, name = self._version, self.text, self.name
        kept = self._checked
        if kept is None or kept[:2] != (text, name):
            kept = (text, name, self._checker.check(text, name))
            self._checked = kept
        return {"version": version, **kept[2]}

    def picture(self) -> tuple[bytes, str]:
        """The background picture and its media type. Raises UsageError."""
        background = background_of(self.text)
        if background is None:
            raise UsageError("the scenario has no background picture")
        name = self.workspace.picture(background["file"])
        content = self.workspace.read_bytes(name, MAX_PICTURE_BYTES)
        if content is None:
            raise UsageError(f"{name}: there is no such picture in {self.workspace.folder}")
        return content, PICTURES[f".{name.rsplit('.', 1)[1].lower()}"]

    def at_risk(self) -> str | None:
        """Why the end would lose work that no draft holds; None if it would lose none. Tries to write the draft before."""
        with self._lock:
            if self.found_draft or self.is_saved or self._draft_error is None or self._keep_draft():
                return None
            return f"{self.name} is not saved, and its draft could not be written: {self._draft_error}"

    def last_words(self) -> str | None:
        """For the terminal at the end: where unsaved work is; None if there is none."""
        with self._lock:
            if self.found_draft or self.is_saved:
                return None
            if (words := self.at_risk()) is not None:
                return words
            draft = self.workspace.folder / self.workspace.draft_of(self.name)
            return f"{self.name} is not saved; its draft is {draft}, and `manet view --edit {self.name}` asks about it"

    def _require(self, version: object) -> None:
        if self._found_draft is not None:
            raise UsageError(f"{self.name} has a draft that was never saved; take or discard it first")
        if isinstance(version, bool) or not isinstance(version, int):
            raise UsageError(f"version {shortened(str(version), 20)}: give the number of the version that the change is for")
        if version != self._version:
            raise Stale("another tab has changed the scenario; it is shown now, repeat your last change")

    def _changed(self) -> None:
        self._version += 1
        self._keep_draft()

    def _draft_beside(self, target: str) -> str | None:
        try:
            return self.workspace.read(self.workspace.draft_of(target))
        except UsageError:  # said when a draft is to be written there
            return None

    def _keep_draft(self) -> bool:
        """Write the draft, or remove it if there is nothing to save; False, with the reason, if that could not be done."""
        draft = self.workspace.draft_of(self.name)
        try:
            there = self.workspace.read(draft)
            is_ours = there in (None, self._draft, self.text)
            if not is_ours and not self.is_saved:
                raise UsageError(f"{draft}: was written by another editor; save under another name")
            if is_ours and self.is_saved:
                self.workspace.remove(draft)
            elif is_ours and there != self.text:
                self.workspace.write(draft, self.text)
            self._draft = None if self.is_saved else self.text
            self._draft_error = None
        except UsageError as problem:
            self._draft_error = str(problem)
        return self._draft_error is None
