"""Results in formats of other tools (docs/results-store.md, `manet export`): CSV, Flent's data files, Perfetto's traces."""
