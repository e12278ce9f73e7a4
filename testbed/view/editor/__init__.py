"""The editor of `manet view --new` and `--edit`: a scenario's TOML, changed by forms and a map as a person would change it.

`toml_edits.py`, `stations.py` and `drawing.py` are machines: text and operation in, text out. `session.py` owns the document that
all tabs share, `workspace.py` its files, `check.py` asks the checks of `manet run`, `forms.py` reads the JSON Schema, `starts.py`
starts runs, `app.py` has the addresses (formats/view.md), `site.py` joins them. The browser's half is in ../page/editor.
"""
