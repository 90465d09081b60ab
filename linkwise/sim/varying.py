"""Constants of a model that elements change during a run: which they are, their values, and forces of lost mass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from linkwise.errors import InputError
from linkwise.functions.frozen import FrozenFunction, freeze
from linkwise.model.model import Model
from linkwise.sim.elements import Element
from linkwise.spatial.scalar import Flat, NamedNumbers, Scalar


class InForce(list[Scalar]):
    """Parameters p of a run, with those of the model as they are in one state, ``own``."""

    def __init__(self, p: Flat, own: list[Scalar]) -> None:
        super().__init__(p)
        self.own = own


class Varying:
    """The parameters of a model that elements change: by name, and which element gives which.

    ``given`` is the model as the user knows it, ``model`` the one that moves, with these parameters besides its own.

    Args:
        model: the mechanism.
        elements: all that act.
        sizes: numbers in each element's x, values of its tables included.
        n_parameters: numbers in p.
    """

    def __init__(self, model: Model, elements: Sequence[Element], sizes: Sequence[int], n_parameters: int) -> None:
        self.given = model
        self.elements: list[int] = []
        names: dict[str, Element] = {}
        closures = {closure.name for closure in model.closures}
        for element in elements:
            model = element.fitted(model)
        for k, (element, size) in enumerate(zip(elements, sizes, strict=True)):
            inputs = {"t": None, "q": model.nq, "v": model.nv, "x": size, "p": n_parameters}
            if type(element).parameters is Element.parameters:
                continue
            formulas: Mapping[str, FrozenFunction] | None = getattr(element, "formulas", None)
            if formulas is None:
                formulas = {"parameters": freeze(element.parameters, inputs)}
            found = formulas["parameters"].structure if "parameters" in formulas else None
            if not found:
                continue
            self.elements.append(k)
            for name in found:
                if name.rpartition(".")[0] in closures and not element.changes_closures:
                    raise InputError(
                        "elements change constants of bodies and joints, not of closures",
                        got=f"{name!r} by {element!r}",
                        do="a closure that depends on time knows its own speed: see linkwise.closures",
                    )
                if name in names:
                    raise InputError(
                        f"two elements change {name!r}", got=f"{names[name]!r} and {element!r}", do="let one of them"
                    )
                names[name] = element
        declared = model.parameters.names
        self.model = model
        if names:
            self.model = model.with_parameters([*declared, *(name for name in names if name not in declared)])
        self.declared = len(model.parameters.nominal)

    def nominal(self, p: Flat) -> list[Scalar]:
        """Parameters of the model where no state is known: those given, and the nominal ones of those that vary."""
        return [*p[: self.declared], *self.model.parameters.nominal.tolist()[self.declared :]]

    def values(self, p: Flat, given: Sequence[tuple[Element, NamedNumbers | None]]) -> list[Scalar]:
        """Parameters of the model, with what elements say of them."""
        own = self.nominal(p)
        places = {parameter.name: parameter.slice for parameter in self.model.parameters}
        for element, found in given:
            for name, value in (found or {}).items():
                numbers = list(np.asarray(value, dtype=object).reshape(-1))
                size = places[name].stop - places[name].start
                if len(numbers) != size:
                    raise InputError(
                        f"{element!r} gives {name!r} the wrong length", got=str(len(numbers)), allowed=str(size)
                    )
                own[places[name]] = [float(x) if isinstance(x, (int, np.number)) else x for x in numbers]
        return own


def flow_wrench(omega: Flat, flow: Scalar, outlet: Flat, h_rate: Flat, J_rate: ArrayLike) -> list[Scalar]:
    """Wrench [moment, force] (6) on a body, at its origin and in its axes, of mass that flows to an outlet, N m and N.

    For a body whose mass, mass centre and inertia change by ``Element.parameters``. These alone let mass vanish where
    it is, with the momentum that it has there. In truth it goes to the outlet first, and leaves from there:

        F = -2ω × (ḣ + ṁ r),    N = -ṁ r × (ω × r) - J̇ω,

    ṁ being what flows out, r the outlet, h and J the first and second moments of the mass about the origin. Together
    they are the balance of momentum of body and fluid, for a steady flow without swirl; the thrust is not among them.

    Args:
        omega: ω of the body (3) in its axes, rad/s.
        flow: ṁ, what flows out, kg/s, positive.
        outlet: r (3), m.
        h_rate: ḣ (3), kg m/s.
        J_rate: J̇ (3, 3), kg m²/s.

    Example:
        >>> flow_wrench([0, 0, 0.1], 0.25, [2, 0, 0], [-0.5, 0, 0], [[0, 0, 0], [0, -0.5, 0], [0, 0, -0.5]])
        [0.0, 0.0, -0.05, 0.0, 0.0, 0.0]
    """
    w, r = np.array(list(omega), object), np.array(list(outlet), object)
    moving = np.array(list(h_rate), object) + r * flow
    J = np.array(J_rate, object)
    moment = -np.cross(r, np.cross(w, r)) * flow - J @ w
    force = np.cross(w, moving) * -2.0
    return [x + 0.0 for x in (*moment, *force)]
