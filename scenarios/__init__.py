"""The keys of a scenario, read from files and checked: the complete description of a run."""
