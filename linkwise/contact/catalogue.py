"""The functions of models that have contacts, as texts over any scalar."""

from __future__ import annotations

from typing import Any, NamedTuple

from linkwise.algorithms.catalogue import INPUTS, Input, Text, Trees, instant
from linkwise.algorithms.closed_catalogue import EVERY as WITHOUT_CONTACT
from linkwise.algorithms.kinematics import placed, velocities
from linkwise.contact import step
from linkwise.contact.compliance import contact_energy, contact_force, felt_at_joints
from linkwise.contact.crowd import Crowd, KeptPoint, long
from linkwise.contact.crowd_rows import crowd_push
from linkwise.contact.crowd_step import crowd_step
from linkwise.contact.geometry.pairs import distance
from linkwise.contact.geometry.points import tangents
from linkwise.contact.impact import Impact, impact
from linkwise.contact.joint_rows import FrictionOf, RangeOf, joint_rows, slopes_of
from linkwise.contact.scene import is_crowded, kept_points, meetings_of, numbers_of, rows_of, touches_of
from linkwise.contact.touching import placed_points, pulled
from linkwise.spatial.scalar import Flat, Scalar, maximum


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
) -> step.AccountedStep:
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
        return crowd_step(Crowd(t.mechanism, tree, kept), *given)
    return step.accounted_step(tree, touches_of(t.mechanism, tree), *given)


def _step(t: Trees, *given: Any) -> step.ContactStep:
    return _accounted(t, *given).step


class StepAccount(NamedTuple):
    """The end of a step and its account of energy; see :class:`linkwise.contact.step.AccountedStep`."""

    q: Any
    v: Any
    impulses: Any
    gaps: Any
    residuals: Any
    overflow: Any
    work: Any
    mean: Any
    change: Any
    shift: Any


def _account(t: Trees, *given: Any) -> StepAccount:
    end, *account = _accounted(t, *given)
    return StepAccount(*end, *account)


class ContactPush(NamedTuple):
    """Joint impulses, N m s or N s, by what they come from.

    Args:
        contact: of contact points (nv).
        limits: of the ends of joints' ranges (nv).
        friction: of dry friction of joints (nv).
    """

    contact: Any
    limits: Any
    friction: Any


def _push(t: Trees, q: Flat, impulses: Flat) -> ContactPush:
    scene = t.mechanism._contact_scene
    assert scene is not None
    tree = t.fast
    rows, kept = joint_rows(t.mechanism, scene.rules), kept_points(t.mechanism)
    if kept is not None:
        crowd = Crowd(t.mechanism, tree, kept)
        own = kept * crowd.features.rows
        on_points = crowd_push(crowd, q, [*impulses[:own], *impulses[len(impulses) - kept :]])
    else:
        touches, frames = touches_of(t.mechanism, tree), placed(tree, q)
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


def _force(t: Trees, q: Flat, v: Flat) -> list[Scalar]:
    scene = t.mechanism._contact_scene
    assert scene is not None
    return contact_force(t.fast, touches_of(t.mechanism, t.fast), q, v, scene.rules.friction_speed)


def _impact(t: Trees, q: Flat, v: Flat, time: Flat | None, active: Flat | None) -> Impact:
    scene = t.mechanism._contact_scene
    assert scene is not None
    touches = touches_of(t.mechanism, t.fast)
    return impact(t.fast, touches, q, v, scene.rules, t.constraints(t.fast, active), instant(time))


def _energy(t: Trees, q: Flat) -> Scalar:
    return contact_energy(t.fast, touches_of(t.mechanism, t.fast), q)


class ContactPoints(NamedTuple):
    """Where bodies touch or come nearest, for every contact point.

    Args:
        gap: m (n), negative where surfaces overlap.
        point: in the world, m (n, 3), midway between the surfaces.
        normal: unit vector from the second surface to the first (n, 3).
        tangents: two unit vectors across it (n, 2, 3), along which friction is written.
        number: of the point (n): 8 times the place of its pair in ``model.contacts.pairs``, and its own place among
            those of the pair, from 1 on; 0 for a point of a crowd that is not used.
    """

    gap: Any
    point: Any
    normal: Any
    tangents: Any
    number: Any


def _points(t: Trees, q: Flat) -> ContactPoints:
    kept = kept_points(t.mechanism)
    if kept is not None:
        return _nearest_points(Crowd(t.mechanism, t.fast, kept), placed(t.fast, q))
    found, _ = placed_points(touches_of(t.mechanism, t.fast), placed(t.fast, q), q)
    return ContactPoints(
        [x.gap for x in found],
        [list(x.point) for x in found],
        [list(x.normal) for x in found],
        [[list(a) for a in x.tangents] for x in found],
        numbers_of(t.mechanism),
    )


def _nearest_points(crowd: Crowd, frames: Any) -> ContactPoints:
    slots, _ = crowd.nearest(frames)
    found = [KeptPoint.of(slot, crowd.names) for slot in slots]
    return ContactPoints(
        [x.gap for x in found],
        [list(x.point) for x in found],
        [list(x.normal) for x in found],
        [[list(a) for a in tangents(x.normal)] for x in found],
        [x.more["number"] for x in found],
    )


def _distances(t: Trees, q: Flat) -> list[Scalar]:
    frames = placed(t.fast, q)
    if is_crowded(t.mechanism):
        return Crowd(t.mechanism, t.fast, kept=1).distances(frames)
    return [
        distance(pair.shape, touch.a.within(frames, q), pair.other_shape, touch.b.within(frames, q))
        for pair, touch in zip(meetings_of(t.mechanism), touches_of(t.mechanism, t.fast), strict=True)
    ]


def _surface_speed(t: Trees, q: Flat, v: Flat) -> Scalar:
    """A bound on the speeds of all points of shapes for contact, m/s."""
    reaches, twists = Crowd(t.mechanism, t.fast, kept=1).reaches, velocities(t.fast, q, v)
    found: Scalar = 0.0
    for link in t.fast.links:
        if link.index in reaches:
            twist = twists[link]
            found = maximum(found, long(twist.lin) + reaches[link.index] * long(twist.ang))
    return found


CONTACT: dict[str, Text] = {
    "distances": Text(("q",), _distances),
    "surface_speed": Text(("q", "v"), _surface_speed, method="contacts.surface_speed"),
    "contact_points": Text(("q",), _points, result=ContactPoints, method="contacts.points"),
    "contact_step": Text(
        ("q", "v", "tau", "impulses", "dt"), _step, ("f_ext", "implicit", "t", "active"), result=step.ContactStep
    ),
    "step_account": Text(
        ("q", "v", "tau", "impulses", "dt"), _account, ("f_ext", "implicit", "t", "active"), result=StepAccount
    ),
    "contact_push": Text(("q", "impulses"), _push, result=ContactPush, method="contacts.push"),
    "impact": Text(("q", "v"), _impact, ("t", "active"), result=Impact, method="contacts.impact"),
    "contact_force": Text(("q", "v"), _force, method="contacts.force"),
    "contact_energy": Text(("q",), _energy, method="contacts.energy"),
}
"""Functions of models that have contacts."""

INPUTS["impulses"] = Input("none", lambda m: (rows_of(m),))
INPUTS["dt"] = Input("none", lambda m: ())
INPUTS["implicit"] = Input("v", lambda m: (m.nv,))

EVERY = {**WITHOUT_CONTACT, **CONTACT}
"""All functions."""
