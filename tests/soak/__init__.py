"""Whether a long run leaves memory and descriptors flat: `make soak` (README.md).

`samples.py` reads what the processes of a run hold, once a minute; `flat.py` judges whether it grew; `__main__.py` does an hour.
"""
