"""Places in memory for values that wait there: as few as are needed at once."""

from __future__ import annotations

import heapq
from collections.abc import Iterable


def shared_places(lives: Iterable[tuple[int, int, int]], first: int = 0) -> tuple[dict[int, int], int]:
    """Places from ``first`` on for values with the times of their beginning and end, and the number of places.

    Values come in the order in which they begin. A place is free for another one after the end of its value.
    """
    places: dict[int, int] = {}
    free: list[int] = []
    ending: list[tuple[int, int]] = []
    count = 0
    for value, begin, end in lives:
        while ending and ending[0][0] < begin:
            free.append(heapq.heappop(ending)[1])
        if not free:
            free.append(first + count)
            count += 1
        places[value] = free.pop()
        heapq.heappush(ending, (end, places[value]))
    return places, count
