"""Types of keys: quantities, the base of models, errors."""
