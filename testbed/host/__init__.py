"""This machine: its namespaces, control groups and processes, what it lacks, and what runs on it."""
