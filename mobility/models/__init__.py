"""The mobility models by name. Each is a file of this folder with a pure function

    (places, area, *, begin_s, end_s, seed, **parameters) -> list of legs

`places` are (name, x, y, z) in metres, `area` (width, height) in metres with its lower left corner at (0, 0). Stations stay
at the position of their first leg until `begin_s` and move until `end_s`. Random numbers depend on the seed and the station's
number (of a group: the group's) alone, so another station changes no movement.

To add one: its file, its line here, its class in scenarios/movement.py, its row in formats/scenario.md, its line in
mobility/models/tests/test_models.py.
"""

from collections.abc import Callable

from mobility.models.gauss_markov import gauss_markov
from mobility.models.group import group
from mobility.models.manhattan import manhattan
from mobility.models.random_walk import random_walk
from mobility.models.random_waypoint import random_waypoint
from mobility.models.schedule import schedule
from mobility.trace import Leg

MODELS: dict[str, Callable[..., list[Leg]]] = {
    "random-waypoint": random_waypoint,
    "random-walk": random_walk,
    "gauss-markov": gauss_markov,
    "group": group,
    "manhattan": manhattan,
    "schedule": schedule,
}
