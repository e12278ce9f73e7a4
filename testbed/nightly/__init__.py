"""`manet nightly`: what a night's automation measures, one module per part, each with `figures(...) -> Part`.

figure.py is what a part gives back, night.py makes the rows of a night and judges them, junit.py writes JUnit XML.
"""
