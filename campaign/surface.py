"""What there is to call, read from the catalogue and the signatures of Model's methods, so that nothing is left out.

A method with an argument that is unknown here is listed by :func:`unknown`, and a test asks that there be none.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from functools import cache
from typing import Any

import linkwise as lw
from linkwise.algorithms.catalogue import CATALOGUE, INPUTS
from linkwise.model.closures import Constraints
from linkwise.model.dynamics import Centroidal, Operational
from linkwise.model.making import FUNCTIONS
from linkwise.model.statics import Statics

LEFT_OUT = {
    "assemble": "of closed systems, with a result of its own: tested with the closures",
    "constraints.check": "raises or returns nothing: tested with the closures",
    "inverse_kinematics": "takes goals, not a state: tested with the kinematics",
    "statics.force": "takes loads by name: tested with the statics",
    "statics.support_margin": "takes points: tested with the statics",
    "statics.manipulability": "made of a Jacobian: tested with the statics",
    "freedoms": "returns a report: tested with the closures",
    "constraints.mass_matrix": "takes one configuration: tested with the closures",
    "statics.equilibrium": "of closed systems, with a result of its own: tested with the closures",
    "sensitivity": "its forces have an axis of time: tested with the linearised dynamics",
    "with_configuration": "returns a model: tested with the equipment of models",
    "mirrored_state": "signs of coordinates, in NumPy: tested with the editing of models",
    "contact_step": "of models whose bodies touch: tested with contact",
    "distances": "of models whose bodies touch: tested with contact",
    "collides": "of models whose bodies touch: tested with contact",
    "field_wrenches": "part of simulations, not public: tested with fields of acceleration",
    "field_on_modes": "part of simulations, not public: tested with fields of acceleration",
    "linear_field": "part of simulations, not public: tested with fields of acceleration",
    "field_energy": "part of simulations, not public: tested with fields of acceleration",
    "operators": "returns expressions, not arrays: tested with the operators",
}
"""Methods of a state that the random calls leave out, and why."""

STATIC = {
    "body": "place",
    "dt": "seconds",
    "reference": "a word; left alone",
    "order": "order",
    "actuated": "joints; left alone",
    "node": "of flexible bodies; left alone",
    "control": "what acts besides; left alone",
    "rules": "which passive forces act; left alone",
}
"""Arguments that are not arrays of a state."""
OPTIONS = ("p", "out", "threads")


@dataclass(frozen=True)
class Method:
    """One method of a model, by what it takes."""

    name: str
    arrays: tuple[str, ...]
    optional: tuple[str, ...]
    static: tuple[str, ...]
    options: tuple[str, ...]

    @property
    def is_in_catalogue(self) -> bool:
        """Whether it is one text, traced and compiled."""
        return self.name in CATALOGUE


def _is_array(name: str) -> bool:
    return name in INPUTS and name != "p"


def _goes_with_motors(name: str, signature: inspect.Signature) -> bool:
    """Whether an argument counts beside ``actuated`` only, which is left alone here."""
    return name == "t" and "actuated" in signature.parameters


@cache
def methods() -> dict[str, Method]:
    """Every method that takes a state."""
    found = {}
    for name, signature in _of_states().items():
        if name in LEFT_OUT or name in unknown():
            continue
        given = signature.parameters.values()
        arrays = [p for p in given if _is_array(p.name)]
        found[name] = Method(
            name,
            tuple(p.name for p in arrays if p.default is p.empty),
            tuple(p.name for p in arrays if p.default is not p.empty and not _goes_with_motors(p.name, signature)),
            tuple(p.name for p in given if p.name in STATIC),
            tuple(p.name for p in given if p.name in OPTIONS),
        )
    return found


@cache
def unknown() -> dict[str, list[str]]:
    """Methods that take a state and something that we do not know how to draw."""
    strange = {
        name: [p for p in signature.parameters if not _is_array(p) and p not in STATIC and p not in OPTIONS]
        for name, signature in _of_states().items()
        if name not in LEFT_OUT
    }
    return {name: parameters for name, parameters in strange.items() if parameters}


@cache
def _of_states() -> dict[str, inspect.Signature]:
    """Public methods with a configuration among their arguments, each once; and all of the catalogue."""
    found: dict[str, inspect.Signature] = {}
    seen: set[Any] = set()
    own = {name: getattr(lw.Model, name, None) for name in (*CATALOGUE, *sorted(vars(lw.Model)), *dir(lw.Model))}
    grouped = {
        FUNCTIONS.get(f"{kind.attribute}.{name}", f"{kind.attribute}.{name}"): function
        for kind in (Centroidal, Constraints, Operational, Statics)
        for name, function in inspect.getmembers(kind, inspect.isfunction)
    }
    for name, function in (own | grouped).items():
        if name.rpartition(".")[2].startswith("_") or not inspect.isfunction(function) or function in seen:
            continue
        parameters = dict(inspect.signature(function).parameters)
        parameters.pop("self", None)
        if name in CATALOGUE or {"q", "q0"} & set(parameters):
            seen.add(function)
            found[name] = inspect.Signature(list(parameters.values()))
    return found
