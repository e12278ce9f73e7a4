"""`manet view`: a page in the browser about a run, recorded or under way (docs/view.md)."""

import argparse

from testbed.commands.options import add_verb

EXAMPLES = """
  ./manet view                      the run under way
  ./manet view results/chain5/all/seed-1
                                    a recorded run
  ./manet view results/chain5       a folder of runs: the page lists them
  ./manet view --control            also move stations, switch them, break links
  ./manet view RUN --listen 8000    at this port of 127.0.0.1

The page is at the address that it prints; Ctrl-C ends it. docs/view.md explains
the page, and who can reach it.
"""


def add(verbs: argparse._SubParsersAction) -> None:
    """Declare the verb and its options."""
    parser = add_verb(verbs, "view", "show a run in the browser, recorded or under way", EXAMPLES)
    parser.add_argument(
        "what", metavar="RUN", nargs="?", help="a run's directory or a folder of runs (default: the run under way)"
    )
    parser.add_argument("--control", action="store_true", help="let the page act on a run under way; its actions are recorded")
    parser.add_argument(
        "--listen",
        metavar="[ADDRESS:]PORT",
        help="where it listens (default: a free port of 127.0.0.1, which only this machine reaches)",
    )


def run(options: argparse.Namespace) -> int:
    """Serve the page until Ctrl-C."""
    from testbed.view.site import site_of
    from testbed.web.server import listen, serve

    site = site_of(options.what, control=options.control)
    listener = listen(options.listen)

    def ready() -> None:
        print(f"manet view: {site.title}: {listener.url}/?token={listener.token}", flush=True)
        if not listener.is_local:
            print("manet view: other machines can reach this address; who has the token sees the run", flush=True)

    serve(listener, site.app(listener), ready)
    return 0
