"""What a run is made of, each a `with` block that undoes itself: stations, medium, addresses, routes, TCP, captures, traffic."""
