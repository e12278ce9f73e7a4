"""`manet serve`: runs over HTTP: start, watch, stop, results (docs/serve.md)."""

import argparse

from testbed.commands.options import add_listen, add_verb, folder, results_folder

EXAMPLES = """
  ./manet serve                     results in results/serve
  ./manet serve /data/runs --listen 8000
                                    at this port of 127.0.0.1
  curl -H "Authorization: Bearer TOKEN" -H "Content-Type: application/json" \\
       -d '{"experiment": "chain5"}' http://127.0.0.1:8000/api/runs
                                    start a run

It prints its address and its token; Ctrl-C ends it, and the run under way with
it. docs/serve.md shows how to use it, and who can reach it.
"""


def add(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = add_verb(verbs, "serve", "when a program starts and reads runs: over HTTP", EXAMPLES)
    parser.add_argument(
        "folder", metavar="FOLDER", nargs="?", type=folder, help="folder of runs, which is created (default: results/serve)"
    )
    add_listen(parser)


def run(options: argparse.Namespace) -> int:
    """Serve until Ctrl-C."""
    from testbed.serve.service import serve_folder

    serve_folder(options.folder or results_folder() / "serve", options.listen, public=options.public_url)
    return 0
