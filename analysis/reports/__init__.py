"""The page of a report: one HTML file without scripts and without other files, for a screen, a phone, paper and a screen reader.

`content.py` is the page as plain data. `numbers.py`, `answers.py`, `forest.py` and `provenance.py` make parts of it from results,
`inline_svg.py` takes the figures in, and `page.py` renders the template `page.html.j2` with `style.css`.
"""
