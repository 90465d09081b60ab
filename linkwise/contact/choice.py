"""Which way steps with contact are solved: with all points written out, or in loops over the nearest, by operations.

Written out, every pair is looked at in every step, and Newton's method solves for the pulls of all rows. In loops, few
pairs are looked at and few points kept, and Newton's method solves for all freedoms (:mod:`linkwise.contact.primal`),
or for the rows of the points that are used (:mod:`linkwise.contact.along_rows`). Which takes less is told from counts:
those of the functions of pairs, and formulas of what a step does with points, fitted to programs and tested against
them. Passes of Newton's method are counted once on both sides, as many as they may be.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from linkwise.contact.touching import rows_of_material

if TYPE_CHECKING:
    from linkwise.contact.scene import Meeting

MOST_WRITTEN_OUT = 300_000
"""Operations of a step beyond which it goes in loops, whatever these take: more would take minutes to compile."""

USED = 0.5
"""Of the points that are kept in loops, the part that is counted as used where there are more than these."""

ROOM, MORE_ROOM = 16, 32
"""Points that are kept: of most scenes, and of those whose bodies may touch what is fixed with many points each."""

MANY = 16
"""Points of pairs with what is fixed in the world, for each body that has some, beyond which a scene is one of these.

Of the scenes of MuJoCo Menagerie, those that were seen to use more than sixteen at a time are: aloha, crazyflie,
i2rt_yam.
"""

TYPICAL = 8
"""Points that a state uses, of those that are kept."""

_PAIRS = {
    ("sphere", "plane"): 30,
    ("capsule", "plane"): 60,
    ("box", "plane"): 200,
    ("cylinder", "plane"): 170,
    ("ellipsoid", "plane"): 100,
    ("sphere", "sphere"): 45,
    ("sphere", "capsule"): 90,
    ("sphere", "box"): 120,
    ("sphere", "cylinder"): 110,
    ("sphere", "ellipsoid"): 400,
    ("capsule", "capsule"): 360,
    ("capsule", "box"): 7_600,
    ("capsule", "cylinder"): 7_100,
    ("capsule", "ellipsoid"): 27_000,
    ("box", "box"): 3_900,
}
"""Operations of pairs without hulls, of which those of two convex shapes by their supports alone are not here."""

_SUPPORTED = 40_000
_HULLS = {"plane": (260, 95), "sphere": (16_000, 470), "cylinder": (40_000, 850), "ellipsoid": (38_000, 700)}
"""Of a hull and another shape, and for each vertex; of others, the next."""
_HULL = 26_000, 570


def of_pair(kind: str, other: str, vertices: int) -> int:
    """Operations that the points of two shapes take, with so many vertices of hulls in all."""
    for both in ((kind, other), (other, kind)):
        if both in _PAIRS:
            return _PAIRS[both]
    if "convex" not in (kind, other):
        return _SUPPORTED
    fixed, each = _HULLS.get(other if kind == "convex" else kind, _HULL)
    return fixed + each * vertices


def written_out(meetings: Sequence[Meeting], freedoms: int) -> float:
    """Operations of a step whose points all have places of their own."""
    rows = sum(meeting.points * rows_of_material(meeting.material) for meeting in meetings)
    links = {body.index for meeting in meetings for body in (meeting.body, meeting.other) if body is not None}
    pulls = min(rows, 6 * len(links))
    geometry = sum(
        of_pair(m.shape.kind, m.other_shape.kind, sum(len(s.vertices) for s in (m.shape, m.other_shape)))
        for m in meetings
    )
    return geometry + 350.0 * freedoms + rows * (260.0 + 15.0 * pulls) + 0.9 * pulls**3


def in_loops(points: float, rows: int, freedoms: int) -> float:
    """Operations of a step that keeps points of so many rows each, all of them used."""
    n = freedoms
    return 350.0 * n + points * rows / 3.0 * (1900.0 + 560.0 * n + 8.0 * n * n) + n**3 / 1.5


def loops_are_cheaper(meetings: Sequence[Meeting], kept: int, freedoms: int) -> bool:
    """Whether a step goes in loops over the nearest points, so many that are kept."""
    rows = max(rows_of_material(meeting.material) for meeting in meetings)
    used = kept * (USED if sum(meeting.points for meeting in meetings) > kept else 1.0)
    return written_out(meetings, freedoms) > min(in_loops(used, rows, freedoms), MOST_WRITTEN_OUT)


def room_for(meetings: Sequence[Meeting]) -> int:
    """How many points are kept in loops where nobody says how many."""
    on_world = [meeting for meeting in meetings if meeting.other is None]
    bodies = {meeting.body.index for meeting in on_world}
    return MORE_ROOM if sum(meeting.points for meeting in on_world) > MANY * len(bodies) else ROOM


def freedoms_are_cheaper(rows: int, ends: int, freedoms: int) -> bool:
    """Whether a Newton step in loops takes less for all freedoms than for the rows of a typical state.

    Args:
        rows: of a point.
        ends: rows along joints, of which a quarter counts as used.
        freedoms: of the mechanism.
    """
    n, own, points = freedoms, rows * TYPICAL + 0.25 * ends, rows * TYPICAL
    along_rows = own**3 / 3.0 + 2.0 * rows * own**2
    return points * n * (1.5 * n + 10.0) + n**3 / 3.0 < along_rows
