"""Notes on what contacts of a motion may have missed: a line each, for people to read; empty where there is nothing."""

from __future__ import annotations

import numpy as np

from linkwise.array_types import Array
from linkwise.contact.scene import excluding, meetings_of, pair_places, thickness
from linkwise.errors import message
from linkwise.model.model import Model
from linkwise.sim.motion import EquationsOfMotion
from linkwise.sim.touched import point_numbers

_FAR = 1e5  # m; points that are not used are farther away
_DEEP = 1e-3  # m; overlaps that are less deep are not told of


def doubts(motion: EquationsOfMotion, t: Array, numbers: Array) -> str:
    """Lines on what contacts may have missed, from their numbers (..., T, size); empty if nothing.

    Points without room; surfaces that overlap from the start on and do not part; and surfaces that move farther towards
    each other in a step than they are thick, so that they could pass through each other.
    """
    known = motion.contacts
    assert known is not None
    gaps = numbers[..., known.rows : known.rows + known.points]
    lost = float(np.nan_to_num(numbers[..., known.size - 2]).max(initial=0.0))
    found = []
    if lost > 0.0:
        found.append(
            message(
                "some contact points found no room, and had no part in the motion",
                got=f"{lost:.0f} too many at one time; motion.contacts.overflow has when",
                do="use simpler shapes, or several for one body; of a scene with many points, "
                "rules=lw.ContactRules(points=…) keeps more",
            )
        )
    if gaps.size and gaps.shape[-2] > 1:
        which = point_numbers(motion.model, numbers[..., : known.rows], known.points)
        steps = np.nan_to_num(numbers[..., 1:, known.size - 1])
        found += [_stuck(motion.model, t, gaps, which), _too_fast(motion.model, t, gaps, which, steps)]
    return "\n".join(filter(None, found))


def overlap_note(motion: EquationsOfMotion, numbers: Array) -> str:
    """A line on the rigid surfaces that overlap most at the starts of states, by their numbers (n, size)."""
    known, scene = motion.contacts, motion.model._contact_scene
    assert known is not None and scene is not None
    gaps = np.nan_to_num(numbers[:, known.rows : known.rows + known.points])
    pairs = meetings_of(motion.model)
    places = pair_places(point_numbers(motion.model, numbers[:, : known.rows], known.points))
    rigid = np.array([pair.material.is_rigid for pair in pairs])[places] & (places >= 0)
    worst = np.unravel_index(int(np.where(rigid, gaps, 0.0).argmin()), gaps.shape) if gaps.size else None
    if worst is None or not (rigid[worst] and gaps[worst] < -_DEEP):
        return ""
    return (
        f"{pairs[places[worst]].name!r}: surfaces overlap at the start by {-gaps[worst]:.3g} m; "
        f"they are parted at {scene.rules.recovery:g} m/s"
    )


def _stuck(model: Model, t: Array, gaps: Array, which: Array) -> str:
    """A line on rigid surfaces that overlap in the first step, and as deeply in the last, though there was time."""
    scene, pairs = model._contact_scene, meetings_of(model)
    assert scene is not None
    (before, was), (after, now) = (
        (np.nan_to_num(gaps[..., k, :]).reshape(-1, gaps.shape[-1]), which[..., k, :].reshape(-1, gaps.shape[-1]))
        for k in (1, -1)
    )
    found: dict[int, float] = {}
    for state, point in zip(*np.nonzero((after < -_DEEP) & (now > 0.0)), strict=True):
        pair, last = int(pair_places(now[state, point])), -float(after[state, point])
        same = (pair_places(was[state]) == pair) & (was[state] > 0.0)
        first = -float(np.where(same, before[state], 0.0).min())
        there_was_time = scene.rules.recovery * float(t[-1] - t[1]) > 2.0 * first
        if pairs[pair].material.is_rigid and abs(first - last) < 0.1 * last and there_was_time:
            found[pair] = max(last, found.get(pair, 0.0))
    if not found:
        return ""
    worst = max(found, key=found.__getitem__)
    return message(
        f"{pairs[worst].name!r}: surfaces that overlap from the start on do not part",
        got=f"{found[worst]:.3g} m at the end",
        allowed="shapes that some motion can part",
        do=f"{excluding(pairs[pair] for pair in found)} of with_contacts, if these shapes belong into each other; "
        "or smaller shapes",
    )


def _too_fast(model: Model, t: Array, gaps: Array, which: Array, steps: Array) -> str:
    """A line on surfaces that come nearer in a step than they are thick."""
    pairs = meetings_of(model)
    there = np.array([thickness(m) for m in pairs])[pair_places(which[..., 1:, :])]
    nearer = (gaps[..., :-1, :] - gaps[..., 1:, :]) * (steps / np.diff(t))[..., None]
    # Unused points are far away; of the others, those count that the next step may bring together.
    passes = (nearer > there) & (gaps[..., 1:, :] < nearer) & (gaps[..., :-1, :] < _FAR)
    passes &= (which[..., 1:, :] == which[..., :-1, :]) & (which[..., 1:, :] > 0.0)
    if not passes.any():
        return ""
    worst = np.unravel_index(int(np.where(passes, nearer, -np.inf).argmax()), passes.shape)
    most, room, step = float(nearer[worst]), float(there[worst]), float(steps[worst[:-1]])
    name = pairs[int(pair_places(which[..., 1:, :][worst]))].name
    return message(
        f"{name!r}: the step is too long for the speed, so that they may pass through each other",
        got=f"{most:.3g} m nearer in a step of {step:g} s",
        allowed=f"less than their mean thickness, {room:.3g} m",
        do=f"a shorter dt, {0.5 * step * room / most:.2g} s say, thicker shapes, or steps in parts where they are "
        "needed: with_contacts(…, rules=lw.ContactRules(substeps=1000))",
    )


def surfaces_note(model: Model, touching: bool) -> str:
    """A line on a file's surfaces where they are taken as rigid, or where nothing touches them."""
    scene = model._contact_scene
    if not touching:
        untouched = scene is None and model._base_collisions and any(body.collisions for body in model.bodies)
        return 'nothing touches the ground of the file; method="moreau" takes its contacts' if untouched else ""
    soft = any(
        shape.compliance is not None for meeting in meetings_of(model) for shape in (meeting.shape, meeting.other_shape)
    )
    if scene is None or scene.softness == "file" or not soft:
        return ""
    return 'surfaces are rigid; as soft as the file has them: model.with_contacts(softness="file")'
