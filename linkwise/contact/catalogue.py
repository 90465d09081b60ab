"""The functions of models that have contacts, as texts over any scalar."""

from __future__ import annotations

from typing import Any, NamedTuple

from linkwise.algorithms.catalogue import INPUTS, Flat, Input, Text, Trees
from linkwise.algorithms.closed_catalogue import EVERY as WITHOUT_CONTACT
from linkwise.algorithms.kinematics import placed
from linkwise.contact import step
from linkwise.contact.scene import rows_of, touches_of
from linkwise.contact.touching import placed_points


def _step(
    t: Trees,
    q: Flat,
    v: Flat,
    tau: Flat,
    impulses: Flat,
    dt: Flat,
    f_ext: Flat | None,
    implicit: Flat | None,
) -> step.ContactStep:
    scene = t.mechanism.contacts
    assert scene is not None
    tree = t.fast
    touches = touches_of(t.mechanism, tree)
    forces = t.link_forces(f_ext, tree)
    return step.contact_step(tree, touches, q, v, tau, dt[0], impulses, forces, implicit, scene.rules)


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


CONTACT: dict[str, Text] = {
    "contact_points": Text(("q",), _points, result=ContactPoints),
    "contact_step": Text(
        ("q", "v", "tau", "impulses", "dt"), _step, ("f_ext", "implicit"), result=step.ContactStep
    ),
}
"""Functions of models that have contacts."""

INPUTS["impulses"] = Input("none", lambda m: (rows_of(m),))
INPUTS["dt"] = Input("none", lambda m: ())
INPUTS["implicit"] = Input("v", lambda m: (m.nv,))

EVERY = {**WITHOUT_CONTACT, **CONTACT}
"""All functions."""
