"""A scripted schedule: listed moves of stations, as in the papers' tables.

In a move, `station` goes straight to `to` at `speed` from `at` on (s after the beginning); without a speed it jumps. A move
that begins before the end of the last one changes course during it. Nothing is random; the seed has no effect.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from mobility.trace import Leg, Place, TraceError, is_inside, outside, place


def schedule(
    places: Sequence[Place],
    area: tuple[float, float] | None = None,
    *,
    begin_s: float = 0.0,
    end_s: float = math.inf,
    seed: int = 0,
    moves: Sequence[Mapping[str, Any]] = (),
) -> list[Leg]:
    """`moves`: tables with `at` (s, 0 or more), `station`, `to` (x, y or x, y, z in metres; without z the height stays) and
    `speed` (m/s, above 0; None: a jump)."""
    heights = {name: z for name, _x, _y, z in places}
    legs = place(places)
    for number, move in enumerate(sorted(moves, key=lambda move: move["at"]), start=1):
        name, to, speed = move["station"], tuple(move["to"]), move.get("speed")
        if name not in heights:
            raise TraceError(f'schedule: move {number}: there is no station "{name}"; name one that the layout has')
        if area is not None and min(area) > 0 and not is_inside(to, area):
            text = f"{name} goes to {outside(to, area)}; correct the move, or give a larger area"
            raise TraceError(f"schedule: move {number}: {text}")
        if len(to) == 3:
            heights[name] = to[2]
        legs.append(Leg(begin_s + move["at"], name, (to[0], to[1], heights[name]), math.inf if speed is None else speed))
    return legs
