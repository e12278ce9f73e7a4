"""The editor that a command asks for, and its application. A view without one imports nothing of it."""

import os
from pathlib import Path

from starlette.types import ASGIApp

from testbed.errors import UsageError
from testbed.view.app import View
from testbed.view.editor.app import PATH, Editor
from testbed.view.editor.session import Session
from testbed.view.editor.starts import Starts
from testbed.view.editor.workspace import Workspace
from testbed.view.viewed import Runs
from testbed.web.guard import Rules
from testbed.web.server import NICE, Listener

MAX_EDIT_BYTES = 4 << 20  # of a request of the editor: a scenario's text of 1 MiB, whose escapes in JSON take more


def editor_of(file: Path | None, results: Path, *, new: bool, control: bool) -> tuple[Session, Starts]:
    """The editor of a scenario's file; None: of a new one in the current folder. Its workspace is the current folder if the file
    is below it, else the file's folder. Raises UsageError."""
    if file is None:
        workspace = Workspace(Path())
        name = workspace.free_name()
    else:
        whole = file.parent.resolve() / file.name
        if not whole.parent.is_dir():
            raise UsageError(f"{file}: there is no folder {whole.parent}; make it first")
        workspace = Workspace(Path() if whole.is_relative_to(Path.cwd()) else whole.parent)
        name = str(whole.relative_to(workspace.folder))
    if new and (workspace.folder / name).exists():
        raise UsageError(f"{name}: exists; edit it with `manet view --edit {name}`, or give another name")
    session = Session(workspace, name)
    starts = Starts(lambda: workspace.folder / session.name, results, control=control, within=workspace.folder)
    return session, starts


def editor_app(session: Session, starts: Starts, listener: Listener, runs: Runs | None = None) -> ASGIApp:
    """The application of an editor, and of a view: of the editor's runs, or of `runs`."""
    os.nice(NICE)

    def is_open(path: str) -> bool:
        return path in ("/", PATH) or path.startswith("/static/")

    rules = Rules(listener.address, listener.token, is_open, frozenset({"GET", "HEAD", "POST"}), MAX_EDIT_BYTES)
    return View(runs or starts, Editor(session, starts).routes()).app(rules)
