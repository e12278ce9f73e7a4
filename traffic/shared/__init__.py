"""Parts that several traffic kinds use: the interface of a kind, keys that mean the same in each, streams of datagrams."""
