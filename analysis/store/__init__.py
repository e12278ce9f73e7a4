"""The result store: `runs.parquet` of an experiment's folder, a row per run, and `flows.parquet`, a row per run and flow
(formats/store.md).

    from analysis.store.files import append, read, write

`schema` declares the columns and reads those of other versions, `rows` makes the rows of runs, `files` writes and reads the
files, `query` answers SQL (`manet sql`).
"""
