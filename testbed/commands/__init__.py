"""The verbs of `manet`, one module each: `add(subparsers)` declares it, `run(options)` does it and gives the exit status.

Whatever a verb needs is imported when it runs, so that `./manet --help` answers at once.
"""

VERBS = (
    "demo", "test", "run", "replay", "report", "cli", "script", "map", "routes", "trace", "curve", "story", "plot", "tcp",
    "validate", "schema", "doctor", "vm", "clean",
)  # fmt: skip
