"""Where the names of points go in a picture, so that none lies on another, on a point or on a line."""

from __future__ import annotations

import math
from collections.abc import Sequence

# A letter's width and a line's height, in pixels of a small font; how far a name stays from points.
_LETTER, _LINE, _GAP, _DOT = 5.0, 10.0, 6.0, 4.0
# Names are tried in so many directions, at so many distances.
_DIRECTIONS, _RINGS, _STEP = 16, 8, 9.0
# What a pixel of a name, point or line below, or one outside of the picture, costs beside a pixel of distance.
_OVERLAP = 50.0

Box = tuple[float, float, float, float]
Place = tuple[float, float]


def placed(
    points: Sequence[Place], names: Sequence[str], width: float, height: float, lines: Sequence[Box] = ()
) -> list[Place]:
    """Put every name near its point, the first ones nearest.

    Args:
        points: Where points are, in pixels from the upper left corner.
        names: What each is called.
        width: How wide the picture is.
        height: How high.
        lines: What else names must not lie on: left, upper, right and lower ends.

    Returns:
        The middle of each name, in the same pixels.

    Example:
        >>> [(round(x), round(y)) for x, y in placed([(50, 50), (52, 50)], ["one", "two"], 200, 100)]
        [(64, 50), (57, 40)]
    """
    dots = [_box(x, y, 2 * _DOT, 2 * _DOT) for x, y in points]
    taken: list[Box] = []
    middles: list[Place] = []
    for (x, y), name in zip(points, names, strict=True):
        wide = _LETTER * len(name)
        best, where = math.inf, (x, y)
        for middle, far in _around(x, y, wide):
            box = _box(*middle, wide, _LINE)
            outside = wide * _LINE - _shared(box, (0.0, 0.0, width, height))
            cost = far + _OVERLAP * (outside + sum(_shared(box, other) for other in (*dots, *lines, *taken)))
            if cost < best - 1e-9:
                best, where = cost, middle
        taken.append(_box(*where, wide, _LINE))
        middles.append(where)
    return middles


def _around(x: float, y: float, wide: float) -> list[tuple[Place, float]]:
    """Places about a point, the nearest first, and how far each is."""
    found = []
    for ring in range(_RINGS):
        for turn in range(_DIRECTIONS):
            angle = 2.0 * math.pi * turn / _DIRECTIONS
            across, up = math.cos(angle), math.sin(angle)
            away = _STEP * ring
            middle = x + across * (wide / 2 + _GAP + away), y - up * (_LINE / 2 + _GAP + away)
            # Beside its point a name reads best, then above it.
            found.append((middle, away + (0.0 if across > 0 else 1.0) + abs(up)))
    return found


def _box(x: float, y: float, wide: float, high: float) -> Box:
    return x - wide / 2, y - high / 2, x + wide / 2, y + high / 2


def _shared(one: Box, other: Box) -> float:
    """How large the part is that two boxes share."""
    across = min(one[2], other[2]) - max(one[0], other[0])
    down = min(one[3], other[3]) - max(one[1], other[1])
    return max(across, 0.0) * max(down, 0.0)
