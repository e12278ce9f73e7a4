"""`manet view`: a page in the browser about a run: recorded, under way, or not yet started (docs/view.md)."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from testbed.commands.options import add_listen, add_overrides, add_verb, folder, overrides, results_folder

if TYPE_CHECKING:
    from testbed.view.editor.session import Session
    from testbed.view.editor.starts import Starts
    from testbed.view.plan import Plan
    from testbed.view.site import Site
    from testbed.web.server import Listener

EXAMPLES = """
  ./manet view                      the run under way; without one the last runs
                                    and the scenarios of the project
  ./manet view results/chain5/all/seed-1
                                    a recorded run
  ./manet view results/chain5       a folder of runs: the page lists them
  ./manet view --control            also move stations, switch them, break
                                    links, start flows and scenarios
  ./manet view chain5 --control     a scenario, which the page may start
  ./manet view --new walk.toml      draw a scenario; without a name
                                    scenario.toml in the current folder
  ./manet view --edit FILE.toml --control
                                    edit a scenario, and run it from the page
  ./manet view RUN --listen 8000    at this port of 127.0.0.1

The page is at the address that it prints; Ctrl-C ends it. docs/view.md explains
the page, and who can reach it.
"""


def add(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = add_verb(verbs, "view", "when you want to watch: a run in the browser, live or afterwards", EXAMPLES)
    parser.add_argument(
        "what", metavar="RUN|NAME|FILE", nargs="?",
        help="a run's directory, a folder of runs, an experiment or a scenario (default: the run under way, or the first page)",
    )  # fmt: skip
    drawn = parser.add_mutually_exclusive_group()
    drawn.add_argument("--new", action="store_true", help="draw a new scenario: FILE.toml, which saving writes (docs/editor.md)")
    drawn.add_argument("--edit", action="store_true", help="edit a scenario: FILE.toml")
    parser.add_argument("--control", action="store_true", help="let the page start runs and act on them; actions are recorded")
    parser.add_argument("--quick", action="store_true", help="an experiment in its quick size")
    parser.add_argument(
        "--out", metavar="DIR", type=folder,
        help="results of runs that it starts (default: results/NAME[-quick]); without a name: the first page of this folder",
    )  # fmt: skip
    add_overrides(parser)
    add_listen(parser)


def run(options: argparse.Namespace) -> int:
    """Serve the page until Ctrl-C."""
    from testbed.view.site import app_of
    from testbed.web.server import listen, serve

    if options.new or options.edit:
        return _edit(options)
    if options.what is None and _is_first_page(options):
        return _first_page(options)
    site = _runs_of(options)
    listener = listen(options.listen, options.public_url)
    may = f"controls runs, {_as_whom()}" if site.control else "sees the run"

    def ready() -> None:
        site.read_ahead()
        _print_address(listener, site.title, "", may)

    try:
        serve(listener, app_of(site, listener), ready)
    finally:
        site.close()
    return 0


def _is_first_page(options: argparse.Namespace) -> bool:
    """Whether a folder of results is given, or no run is under way, or several are, and no option is one of a single run."""
    from testbed.runs.under_way import runs_under_way

    stray = options.quick or options.overrides or options.profile
    return not stray and (options.out is not None or len(runs_under_way()) != 1)


def _first_page(options: argparse.Namespace) -> int:
    """Serve the runs of the folder of results and the scenarios of the project, with --control also the editor of a new one."""
    from testbed.view.home import Home
    from testbed.view.site import app_of
    from testbed.web.server import listen, serve

    home = Home((options.out or results_folder()).resolve(), options.control)
    listener = listen(options.listen, options.public_url)

    def ready(may: str) -> None:
        _print_address(listener, home.title, "", may)

    try:
        if not options.control:
            serve(listener, app_of(home, listener), lambda: ready("sees the runs"))
            return 0
        from testbed.view.editor.site import editor_app, editor_of

        session, starts = editor_of(None, home.folder, new=True, control=True)
        home.further = starts
        may = f"controls runs, {_as_whom()}, and edits the scenarios of this folder"
        try:
            application = editor_app(session, starts, listener, home)
            serve(listener, application, lambda: ready(may), may_end=lambda: _may_end(session))
        finally:
            _close_editor(session, starts)
    finally:
        home.close()
    return 0


def _print_address(listener: "Listener", title: str, page: str, may: str) -> None:
    """Where the page is, and who else reaches it."""
    print(f"manet view: {title}: {listener.url}/{page}?token={listener.token}", flush=True)
    if (line := listener.who_reaches_it(may)) is not None:
        print(f"manet view: {line}", flush=True)


def _close_editor(session: "Session", starts: "Starts") -> None:
    """End the runs, and name unsaved work."""
    import sys

    starts.close()
    if (words := session.last_words()) is not None:
        print(f"manet view: {words}", file=sys.stderr, flush=True)


def _may_end(session: "Session") -> bool:
    """Whether Ctrl-C loses no work; else the user must press it again."""
    import sys

    if (words := session.at_risk()) is None:
        return True
    print(f"manet view: {words}; make room, or press Ctrl-C again to lose it", file=sys.stderr, flush=True)
    return False


def _edit(options: argparse.Namespace) -> int:
    """Serve the editor until Ctrl-C; unsaved work is named at the end."""
    from testbed.campaigns.library import find
    from testbed.errors import UsageError
    from testbed.view.editor.site import editor_app, editor_of
    from testbed.web.server import listen, serve

    option = "--new" if options.new else "--edit"
    stray = next(
        (
            name
            for name, value in (("--set", options.overrides), ("--profile", options.profile), ("--quick", options.quick))
            if value
        ),
        None,
    )
    if stray is not None:
        raise UsageError(f"{stray}: is for a run, and {option} writes a file; set the key there")
    if options.edit and options.what is None:
        raise UsageError("--edit: name the file of a scenario, or draw one with --new")
    file = None if options.what is None else Path(options.what) if options.new else find(options.what)
    results = (options.out or results_folder()).resolve()
    session, starts = editor_of(file, results, new=options.new, control=options.control)
    listener = listen(options.listen, options.public_url)
    may = "edits the scenarios of this folder" + (f" and runs them, {_as_whom()}" if options.control else "")

    def ready() -> None:
        _print_address(listener, f"edit {session.name}", "edit", may)

    try:
        serve(listener, editor_app(session, starts, listener), ready, may_end=lambda: _may_end(session))
    finally:
        _close_editor(session, starts)
    return 0


def _runs_of(options: argparse.Namespace) -> "Site | Plan":
    """The runs of a folder, or of what could be run."""
    from testbed.campaigns.library import is_folder
    from testbed.campaigns.request import Request
    from testbed.errors import UsageError
    from testbed.view.site import plan_of, site_of

    of_plan = {"--quick": options.quick, "--out": options.out, "--set": options.overrides, "--profile": options.profile}
    name, stray = options.what, next((option for option, value in of_plan.items() if value), None)
    if name is None or is_folder(name):
        if stray is not None:
            raise UsageError(f"{stray}: is for an experiment or a scenario that has not been run; name it, or leave this out")
        return site_of(name, control=options.control)
    request = Request(options.quick, overrides(options))
    command = [name, *(["--quick"] if options.quick else [])]
    command += [word for value in options.overrides for word in ("--set", value)]
    command += ["--profile", options.profile] if options.profile else []
    results = options.out or results_folder() / (Path(name).stem + ("-quick" if options.quick else ""))
    return plan_of(name, request, command, results.resolve(), control=options.control)


def _as_whom() -> str:
    from testbed.host.privileges import rootless

    return "as this user here" if rootless() else "as root here"
