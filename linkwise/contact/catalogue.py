"""The functions of models that have contacts, as texts over any scalar."""

from __future__ import annotations

from typing import Any, NamedTuple

from linkwise.algorithms.catalogue import INPUTS, Flat, Input, Text, Trees, instant
from linkwise.algorithms.closed_catalogue import EVERY as WITHOUT_CONTACT
from linkwise.algorithms.kinematics import placed
from linkwise.contact import step
from linkwise.contact.compliance import contact_energy, contact_force
from linkwise.contact.geometry.pairs import distance
from linkwise.contact.impact import Impact, impact
from linkwise.contact.joint_rows import joint_rows
from linkwise.contact.scene import meetings_of, rows_of, touches_of
from linkwise.contact.touching import placed_points
from linkwise.spatial.scalar import Scalar


def _step(
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
) -> step.ContactStep:
    scene = t.mechanism._contact_scene
    assert scene is not None
    tree = t.fast
    touches = touches_of(t.mechanism, tree)
    forces = t.link_forces(f_ext, tree)
    rows, constraints = joint_rows(t.mechanism, scene.rules), t.constraints(tree, active)
    return step.contact_step(
        tree, touches, q, v, tau, dt[0], impulses, forces, implicit, scene.rules, rows, constraints, instant(time)
    )


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
    """

    gap: Any
    point: Any
    normal: Any
    tangents: Any


def _points(t: Trees, q: Flat) -> ContactPoints:
    found, _ = placed_points(touches_of(t.mechanism, t.fast), placed(t.fast, q), q)
    return ContactPoints(
        [x.gap for x in found],
        [list(x.point) for x in found],
        [list(x.normal) for x in found],
        [[list(a) for a in x.tangents] for x in found],
    )


def _distances(t: Trees, q: Flat) -> list[Scalar]:
    frames = placed(t.fast, q)
    return [
        distance(pair.shape, touch.a.within(frames, q), pair.other_shape, touch.b.within(frames, q))
        for pair, touch in zip(meetings_of(t.mechanism), touches_of(t.mechanism, t.fast), strict=True)
    ]


CONTACT: dict[str, Text] = {
    "distances": Text(("q",), _distances),
    "contact_points": Text(("q",), _points, result=ContactPoints, method="contacts.points"),
    "contact_step": Text(
        ("q", "v", "tau", "impulses", "dt"), _step, ("f_ext", "implicit", "t", "active"), result=step.ContactStep
    ),
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
