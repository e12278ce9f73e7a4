"""Experiments of many runs: their cells, running them side by side, and what is printed of them."""
