"""`manet view`: a page about a run, recorded or under way. The server half; the page is in page/.

`frames.py` has the air log as columns, `recorded.py` everything that the page asks about a recorded run, `app.py` the addresses
(formats/view.md). Nothing here computes what analysis/ has: the story is `manet story`'s, routes are `manet map`'s.
"""
