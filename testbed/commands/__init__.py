"""The verbs of `manet`, one module each: `add(subparsers)` declares it, `run(options)` executes it and returns the exit status.

A verb imports what it needs when it runs, so that `./manet --help` is fast.
"""

GROUPS = {  # as --help shows them
    "start": ("demo", "list", "doctor", "test"),
    "run": ("run", "campaign", "script", "replay", "tcp", "vm"),
    "enter a running network": ("cli", "view", "serve", "exec", "shell", "wireshark"),
    "look at a run": ("report", "map", "story", "plot", "routes", "rates", "trace", "links", "sql"),
    "share": ("bundle", "export"),
    "maintain": ("validate", "curve", "schema", "nightly", "clean"),
}
HIDDEN = ("batch",)  # for programs
# those that make networks, or enter them; of an ordinary user in a user namespace (testbed/host/privileges.py)
WITH_NETWORKS = (
    "demo", "run", "campaign", "script", "cli", "view", "serve", "exec", "shell", "wireshark", "map", "routes", "curve", "batch",
)  # fmt: skip
SHOWN = tuple(verb for group in GROUPS.values() for verb in group)
VERBS = (*SHOWN, *HIDDEN)
