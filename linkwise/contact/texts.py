"""The functions of models that have contacts, as texts over any scalar; :mod:`.catalogue` lists them."""

from __future__ import annotations

from typing import Any

from linkwise.algorithms.catalogue import Trees, instant
from linkwise.algorithms.configuration import carry, difference
from linkwise.algorithms.kinematics import placed, velocities
from linkwise.contact.compliance import contact_energy, contact_force, felt_at_joints, forces_on_rows
from linkwise.contact.crowd import Crowd, KeptPoint, long
from linkwise.contact.crowd_rows import crowd_push
from linkwise.contact.crowd_step import crowd_step
from linkwise.contact.geometry.pairs import distance
from linkwise.contact.geometry.points import UNUSED_GAP, tangents
from linkwise.contact.impact import impact
from linkwise.contact.joint_rows import FrictionOf, RangeOf, joint_rows, slopes_of
from linkwise.contact.results import ContactForces, ContactPoints, ContactPush, ContactStep, Impact, StepAccount
from linkwise.contact.scene import (
    goes_along_freedoms,
    is_crowded,
    kept_points,
    meetings_of,
    numbers_of,
    touches_of,
)
from linkwise.contact.step import AccountedStep, accounted_step
from linkwise.contact.touching import placed_points, pulled
from linkwise.spatial.scalar import Flat, Scalar, hold, maximum, where


def _accounted(
    t: Trees,
    q: Flat,
    v: Flat,
    tau: Flat,
    impulses: Flat,
    dt: Flat,
    f_ext: Flat | None,
    implicit: Flat | None,
    time: Flat | None,
    active: Flat | None,
) -> AccountedStep:
    scene = t.mechanism._contact_scene
    assert scene is not None
    tree = t.fast
    forces = t.link_forces(f_ext, tree)
    rows, kept = joint_rows(t.mechanism, scene.rules), kept_points(t.mechanism)
    given = (
        q,
        v,
        tau,
        dt[0],
        impulses,
        forces,
        implicit,
        scene.rules,
        rows,
        t.constraints(tree, active),
        instant(time),
    )
    if kept is not None:
        return crowd_step(Crowd(t.mechanism, tree, kept, t.p), *given, goes_along_freedoms(t.mechanism))
    return accounted_step(tree, touches_of(t.mechanism, tree, t.p), *given, is_known=t.p is None)


def step_text(t: Trees, *given: Any) -> ContactStep:
    """The end of a step."""
    return _accounted(t, *given).step


def change_text(t: Trees, *given: Any) -> list[Scalar]:
    """Displacement (nv) from the configuration at the end of a step, zero but for its derivative, and the velocity."""
    end = _accounted(t, *given).step
    return [*difference(t.fast, [hold(x) for x in end.q], end.q), *end.v]


def account_text(t: Trees, *given: Any) -> StepAccount:
    """The end of a step, with its account of energy."""
    end, *account = _accounted(t, *given)
    return StepAccount(*end, *account)


def way_text(t: Trees, q: Flat, dv: Flat) -> list[Scalar]:
    """The configuration to which a part of a step leads."""
    return carry(t.fast, q, dv)


def push_text(t: Trees, q: Flat, impulses: Flat) -> ContactPush:
    """Joint impulses by what they come from."""
    scene = t.mechanism._contact_scene
    assert scene is not None
    tree = t.fast
    rows, kept = joint_rows(t.mechanism, scene.rules), kept_points(t.mechanism)
    if kept is not None:
        crowd = Crowd(t.mechanism, tree, kept, t.p)
        own = kept * crowd.features.rows
        on_points = crowd_push(crowd, q, [*impulses[:own], *impulses[len(impulses) - kept :]])
    else:
        touches, frames = touches_of(t.mechanism, tree, t.p), placed(tree, q)
        points, _ = placed_points(touches, frames, q)
        pulls = pulled(tree, touches, points, frames, q)
        own = len(pulls.rows)
        on_points = felt_at_joints(tree, q, pulls, impulses[:own])
    found = {kind: [0.0] * t.mechanism.nv for kind in (RangeOf, FrictionOf)}
    for row, x in zip(rows, impulses[own : own + len(rows)], strict=True):
        scale = row.joint.mimic.multiplier if row.joint.mimic else 1.0
        for i, slope in enumerate(slopes_of(row, tree, q), row.joint.v_slice.start):
            found[type(row)][i] = found[type(row)][i] + slope * x * scale
    return ContactPush(on_points, found[RangeOf], found[FrictionOf])


def force_text(t: Trees, q: Flat, v: Flat) -> list[Scalar]:
    """Joint forces of compliant contacts."""
    scene = t.mechanism._contact_scene
    assert scene is not None
    return contact_force(t.fast, touches_of(t.mechanism, t.fast, t.p), q, v, scene.rules.friction_speed)


def forces_text(t: Trees, q: Flat, v: Flat) -> ContactForces:
    """Forces along the rows of compliant contacts."""
    scene = t.mechanism._contact_scene
    assert scene is not None
    return forces_on_rows(t.fast, touches_of(t.mechanism, t.fast, t.p), q, v, scene.rules.friction_speed)[1]


def impact_text(t: Trees, q: Flat, v: Flat, time: Flat | None, active: Flat | None) -> Impact:
    """Velocities after an impact."""
    scene = t.mechanism._contact_scene
    assert scene is not None
    touches = touches_of(t.mechanism, t.fast, t.p)
    return impact(t.fast, touches, q, v, scene.rules, t.constraints(t.fast, active), instant(time))


def energy_text(t: Trees, q: Flat) -> Scalar:
    """Energy that compliant contacts hold."""
    return contact_energy(t.fast, touches_of(t.mechanism, t.fast, t.p), q)


def points_text(t: Trees, q: Flat) -> ContactPoints:
    """Where bodies touch or come nearest."""
    kept = kept_points(t.mechanism)
    if kept is not None:
        return _nearest_points(Crowd(t.mechanism, t.fast, kept, t.p), placed(t.fast, q))
    found, _ = placed_points(touches_of(t.mechanism, t.fast, t.p), placed(t.fast, q), q)
    return ContactPoints(
        [x.gap for x in found],
        [list(x.point) for x in found],
        [list(x.normal) for x in found],
        [[list(a) for a in x.tangents] for x in found],
        numbers_of(t.mechanism),
    )


def _nearest_points(crowd: Crowd, frames: Any) -> ContactPoints:
    slots, _ = crowd.nearest(frames)
    found = [KeptPoint.of(slots.of(k), crowd.names) for k in range(crowd.kept)]
    return ContactPoints(
        [where(x.more["number"] > 0.0, x.gap, UNUSED_GAP) for x in found],
        [list(x.point) for x in found],
        [list(x.normal) for x in found],
        [[list(a) for a in tangents(x.normal)] for x in found],
        [x.more["number"] for x in found],
    )


def distances_text(t: Trees, q: Flat) -> list[Scalar]:
    """Distance of every pair."""
    frames = placed(t.fast, q)
    if is_crowded(t.mechanism):
        return Crowd(t.mechanism, t.fast, kept=1, p=t.p).distances(frames)
    return [
        distance(pair.shape, touch.a.within(frames, q), pair.other_shape, touch.b.within(frames, q))
        for pair, touch in zip(meetings_of(t.mechanism), touches_of(t.mechanism, t.fast, t.p), strict=True)
    ]


def surface_speed_text(t: Trees, q: Flat, v: Flat) -> Scalar:
    """A bound on the speeds of all points of shapes for contact, m/s."""
    reaches, twists = Crowd(t.mechanism, t.fast, kept=1, p=t.p).reaches, velocities(t.fast, q, v)
    found: Scalar = 0.0
    for link in t.fast.links:
        if link.index in reaches:
            twist = twists[link]
            found = maximum(found, long(twist.lin) + reaches[link.index] * long(twist.ang))
    return found
