"""What decides the meaning of a run: the keys of a scenario, read from files and checked."""
