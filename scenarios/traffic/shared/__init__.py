"""What several traffic kinds use: the interface of a kind, and keys that mean the same in each."""
