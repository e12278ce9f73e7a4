"""Positions of stations over time: trace files, written before a run."""
