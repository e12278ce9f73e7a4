"""The verbs of `manet`, one module each: `add(subparsers)` declares it, `run(options)` executes it and returns the exit status.

A verb imports what it needs when it runs, so that `./manet --help` is fast.
"""

VERBS = (
    "demo", "list", "test", "run", "campaign", "batch", "replay", "report", "sql", "bundle", "export",
    "cli", "script", "view", "serve", "map", "routes", "rates", "trace", "curve", "story", "plot", "tcp",
    "validate", "nightly", "schema", "doctor", "vm", "clean",
)  # fmt: skip
