"""The stages of a run, each a `with` block that undoes itself: stations, medium, addresses, routes, TCP, captures, traffic."""
