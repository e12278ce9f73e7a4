"""Types of keys: quantities, the base of models, errors, lines of a text."""
