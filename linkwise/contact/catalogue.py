"""The functions of models that have contacts, as texts over any scalar."""

from __future__ import annotations

from linkwise.algorithms.catalogue import INPUTS, Flat, Input, Text, Trees, instant
from linkwise.algorithms.closed_catalogue import EVERY as WITHOUT_CONTACT
from linkwise.contact import step
from linkwise.contact.compliance import contact_energy, contact_force
from linkwise.contact.joint_rows import joint_rows
from linkwise.contact.scene import rows_of, touches_of
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
    scene = t.mechanism.contacts
    assert scene is not None
    tree = t.fast
    touches = touches_of(t.mechanism, tree)
    forces = t.link_forces(f_ext, tree)
    rows, constraints = joint_rows(t.mechanism, scene.rules), t.constraints(tree, active)
    return step.contact_step(
        tree, touches, q, v, tau, dt[0], impulses, forces, implicit, scene.rules, rows, constraints, instant(time)
    )


def _force(t: Trees, q: Flat, v: Flat) -> list[Scalar]:
    scene = t.mechanism.contacts
    assert scene is not None
    return contact_force(t.fast, touches_of(t.mechanism, t.fast), q, v, scene.rules.friction_speed)


CONTACT: dict[str, Text] = {
    "contact_step": Text(
        ("q", "v", "tau", "impulses", "dt"), _step, ("f_ext", "implicit", "t", "active"), result=step.ContactStep
    ),
    "contact_force": Text(("q", "v"), _force),
    "contact_energy": Text(("q",), lambda t, q: contact_energy(t.fast, touches_of(t.mechanism, t.fast), q)),
}
"""Functions of models that have contacts."""

INPUTS["impulses"] = Input("none", lambda m: (rows_of(m),))
INPUTS["dt"] = Input("none", lambda m: ())
INPUTS["implicit"] = Input("v", lambda m: (m.nv,))

EVERY = {**WITHOUT_CONTACT, **CONTACT}
"""All functions."""
