"""What the pages and the HTTP interface share: who may ask (guard.py), the server (server.py)
and its connections (connection.py).

Both listen on loopback unless asked otherwise, and need a token: every user of a machine reaches its loopback, and every page in
a browser can send requests to it.
"""
