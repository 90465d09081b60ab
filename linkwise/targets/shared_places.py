"""Places in memory for values that wait there, and for buffers of programs: as few as are needed at once."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping

from linkwise.trace.block import Block
from linkwise.trace.program import Call, Program, Statement, buffer_of, inside, places_of


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


def lifetimes(program: Program, *, as_a_whole: bool = False) -> dict[str, tuple[int, int]]:
    """Of each buffer, the first and the last of the program's statements that need it.

    Args:
        program: any.
        as_a_whole: whether a buffer that the first of them does not make as a whole, by a block, is taken to be needed
            all the time. Programs may leave numbers as they were that nobody asks for; some processors are slow with
            what happens to be there.
    """
    always = 0, len(program.statements)
    found: dict[str, tuple[int, int]] = {b.name: always for b in program.buffers if b.load}
    found |= {number.buffer: always for number in program.initial}
    for k, statement in enumerate(program.statements):
        made = set[str]()
        if isinstance(statement, Call) and isinstance(statement.code, Block):
            made = {place for place in statement.outputs if isinstance(place, str)}
        read, written = _buffers_of(statement)
        for name in read | written:
            if name in found:
                found[name] = found[name][0], max(k, found[name][1])
            else:
                found[name] = always if as_a_whole and (name not in made or name in read) else (k, k)
    for buffer in program.buffers:
        if buffer.store or buffer.name not in found:
            found[buffer.name] = found.get(buffer.name, always)[0], always[1]
    return found


def _buffers_of(statement: Statement) -> tuple[set[str], set[str]]:
    """Buffers that a statement, or one inside it, reads, and those that it writes."""
    read, written = ({buffer_of(place) for place in places} for places in places_of(statement))
    for one in inside(statement):
        more = _buffers_of(one)
        read |= more[0]
        written |= more[1]
    return read, written


def places_of_buffers(sizes: Mapping[str, int], lives: Mapping[str, tuple[int, int]]) -> dict[str, int]:
    """The beginning of each buffer, if those may lie in one place that are never needed together."""
    starts: dict[str, int] = {}
    for name in sorted(sizes, key=lambda name: -sizes[name]):
        first, last = lives[name]
        beside = [other for other in starts if lives[other][0] <= last and first <= lives[other][1]]
        start = 0
        for other in sorted(beside, key=lambda other: starts[other]):
            if start + sizes[name] <= starts[other]:
                break
            start = max(start, starts[other] + sizes[other])
        starts[name] = start
    return starts
