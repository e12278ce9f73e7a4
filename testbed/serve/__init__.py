"""The HTTP interface `manet serve`: a queue of runs, their progress and results (formats/serve.md)."""
