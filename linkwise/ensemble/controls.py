"""The control that a study file can name: hold a configuration, with gains that may differ from member to member."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from linkwise.errors import UnknownNameError
from linkwise.model.model import Model
from linkwise.sim.elements import Element, Scalar, Vector, checked_numbers, per_joint
from linkwise.sim.motion import objects


class Hold(Element):
    """τ = kp (q_d ⊖ q) - kd v, with gravity compensated if wanted.

    Args:
        model: the mechanism.
        given: ``hold`` (nq numbers; neutral if not given), ``kp`` and ``kd`` (numbers, or the name of an input that
            has one number), ``gravity``.
        places: where in p each input stands that gains can be read from.
    """

    def __init__(self, model: Model, given: Mapping[str, Any], places: Mapping[str, slice]) -> None:
        self.model, self.gravity = model, bool(given.get("gravity", True))
        target = given.get("hold", model.neutral().tolist())
        self.target = checked_numbers(target, model.nq, "hold", one_for_all=True)
        self.gains: list[Any] = []
        for name, usual in (("kp", 100.0), ("kd", 20.0)):
            gain = given.get(name, usual)
            if isinstance(gain, str):
                if gain not in places:
                    raise UnknownNameError(f"input (for {name})", gain, places)
                self.gains.append(places[gain].start)
            else:
                self.gains.append(per_joint(model, gain, name))

    def force(self, t: Scalar, q: Vector, v: Vector, x: Vector, p: Vector) -> Vector:
        """Towards the target."""
        model = self.model
        error = model.difference(objects(list(q)), objects([float(a) for a in self.target]))
        kp, kd = ([p[g]] * model.nv if isinstance(g, int) else [float(a) for a in g] for g in self.gains)
        tau = [a * e - b * w for a, e, b, w in zip(kp, error, kd, v, strict=True)]
        if not self.gravity:
            return tau
        own = len(model.nominal_parameters)
        weight = model.gravity_force(objects(list(q)), **({"p": objects(list(p)[:own])} if own else {}))
        return [a + b for a, b in zip(tau, np.asarray(weight).reshape(-1), strict=True)]
