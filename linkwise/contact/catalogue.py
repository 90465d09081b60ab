"""The functions of models that have contacts, and all functions together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from linkwise.algorithms.catalogue import INPUTS, Input, Text, Trees
from linkwise.algorithms.closed_catalogue import EVERY as WITHOUT_CONTACT
from linkwise.contact.results import ContactForces, ContactPoints, ContactPush, ContactStep, Impact, StepAccount
from linkwise.mechanism.mechanism import Mechanism


def _late(name: str) -> Callable[..., Any]:
    """A text of :mod:`linkwise.contact.texts`, imported when it is first run: models without contacts load faster."""

    def text(trees: Trees, *given: Any) -> Any:
        from linkwise.contact import texts

        return getattr(texts, f"{name}_text")(trees, *given)

    return text


def _impulses(mechanism: Mechanism) -> tuple[int, ...]:
    from linkwise.contact.scene import rows_of

    return (rows_of(mechanism),)


CONTACT: dict[str, Text] = {
    "distances": Text(("q",), _late("distances")),
    "surface_speed": Text(("q", "v"), _late("surface_speed"), method="contacts.surface_speed"),
    "contact_points": Text(("q",), _late("points"), result=ContactPoints, method="contacts.points"),
    "contact_step": Text(
        ("q", "v", "tau", "impulses", "dt"), _late("step"), ("f_ext", "implicit", "t", "active"), result=ContactStep
    ),
    "contact_change": Text(("q", "v", "tau", "impulses", "dt"), _late("change"), ("f_ext", "implicit", "t", "active")),
    "step_account": Text(
        ("q", "v", "tau", "impulses", "dt"), _late("account"), ("f_ext", "implicit", "t", "active"), result=StepAccount
    ),
    "step_way": Text(("q", "dv"), _late("way")),
    "contact_push": Text(("q", "impulses"), _late("push"), result=ContactPush, method="contacts.push"),
    "impact": Text(("q", "v"), _late("impact"), ("t", "active"), result=Impact, method="contacts.impact"),
    "contact_force": Text(("q", "v"), _late("force"), method="contacts.force"),
    "contact_forces": Text(("q", "v"), _late("forces"), result=ContactForces),
    "contact_energy": Text(("q",), _late("energy"), method="contacts.energy"),
}
"""Functions of models that have contacts."""

INPUTS["impulses"] = Input("none", _impulses)
INPUTS["dt"] = Input("none", lambda m: ())
INPUTS["implicit"] = Input("v", lambda m: (m.nv,))

EVERY = {**WITHOUT_CONTACT, **CONTACT}
"""All functions."""
