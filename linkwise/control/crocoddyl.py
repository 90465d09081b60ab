"""Models as actions of crocoddyl: a step and its cost, with their compiled derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from linkwise.array_types import Array
from linkwise.control.stages import Steps, Text
from linkwise.errors import InputError, require_extra
from linkwise.functions.function import CompiledFunction
from linkwise.model.model import Model, checked_model
from linkwise.model.state_space import checked_dt
from linkwise.spatial.scalar import Flat, NamedNumbers


def crocoddyl_action(
    model: Model,
    cost: Text,
    *,
    dt: float | None,
    actuated: Sequence[str] | None = None,
    method: str = "euler",
) -> Any:
    """A ``crocoddyl.ActionModelAbstract`` of a model: a step of dt and what it costs; or the end of a horizon.

    Its solvers (FDDP, BoxFDDP, …) take it like any other action. A cost is a number or a vector of residuals, as for
    :class:`linkwise.control.Shooting`.

    Args:
        model: the mechanism, whose configurations are plain numbers: no quaternions.
        cost: ``cost(model, q, v, u)``; of an end, ``cost(model, q, v)``.
        dt: length of the step, s; None for the end of a horizon, which goes nowhere.
        actuated: names of the joints with motors; all but floating bases if not given.
        method: ``"euler"`` or ``"rk4"``, as for :class:`linkwise.control.Shooting`.

    Example:
        >>> action = lw.control.crocoddyl_action(arm, lambda m, q, v, u: 0.1 * u, dt=0.01)  # doctest: +SKIP
        >>> problem = crocoddyl.ShootingProblem(x0, [action] * 100, end)  # doctest: +SKIP
    """
    crocoddyl: Any = require_extra("crocoddyl", "crocoddyl")
    checked_model(model)
    if len(model._structure[0]) or model.nq != model.nv:
        raise InputError(
            "an action of crocoddyl takes mechanisms with plain numbers as configurations",
            got=f"nq = {model.nq}, nv = {model.nv}",
            do="lw.control.Shooting takes quaternions",
        )
    motors = model.statics.actuation_matrix(actuated)
    made = _Action(model, motors, cost, dt, method)

    class Action(crocoddyl.ActionModelAbstract):  # type: ignore[misc]  # its base has no types
        """A step, or the end, as crocoddyl calls it."""

        def __init__(self) -> None:
            super().__init__(crocoddyl.StateVector(2 * model.nv), motors.shape[1])

        def calc(self, data: Any, x: Array, u: Array | None = None) -> None:
            """The state after the step, and its cost."""
            data.xnext, data.cost = made.values(x, u)

        def calcDiff(self, data: Any, x: Array, u: Array | None = None) -> None:  # its name there
            """Their derivatives."""
            found = made.derivatives(x, u)
            data.Lx, data.Lxx = found["Lx"], found["Lxx"]
            if u is not None and dt is not None:
                for name in ("Fx", "Fu", "Lu", "Luu", "Lxu"):
                    setattr(data, name, found[name])

    return Action()


class _Action:
    """A step or an end, in numbers."""

    def __init__(self, model: Model, motors: Array, cost: Text, dt: float | None, method: str) -> None:
        self.n, self.m, self.is_end = model.nv, motors.shape[1], dt is None
        running, terminal = (_nothing, cost) if dt is None else (cost, None)
        length = 1.0 if dt is None else checked_dt(dt)
        steps = Steps(model, length, method, motors, running, terminal, None, None, None, 0)
        self.steps, self.dt = steps, length
        _ = steps.spent_at_end if self.is_end else steps.spent  # costs that cannot be compiled are refused here

        def text(q: Flat, v: Flat, u: Flat) -> NamedNumbers:
            q_next, v_next = steps.next(*(np.asarray(x, object) for x in (q, v, u)))
            return {"x": [*q_next, *v_next], "cost": steps.spent.value((q, v, u), (), 1.0)}

        inputs = [("q", (self.n,)), ("v", (self.n,)), ("u", (self.m,))]
        self.step = CompiledFunction("step", text, inputs)

    def values(self, x: Array, u: Array | None) -> tuple[Array, float]:
        """The next state, and the cost."""
        q, v = x[: self.n], x[self.n :]
        if self.is_end:
            return x, float(self.steps.end(q, v).cost)
        found = self.step(q, v, np.zeros(self.m) if u is None else u)
        return found.x, float(found.cost)

    def derivatives(self, x: Array, u: Array | None) -> dict[str, Array]:
        """Matrices by crocoddyl's names."""
        n, q, v = 2 * self.n, x[: self.n], x[self.n :]
        if self.is_end:
            H = self.steps.end(q, v).H_x
            return {"Lxx": H[:, :n], "Lx": H[:, n]}
        stage = self.steps.stage(q, v, np.zeros(self.m) if u is None else u, q, v)
        found = {"Lxx": stage.H_x[:, :n], "Lx": stage.H_x[:, n]}
        last = slice(n + 1, n + 1 + self.m)
        found |= {"Lu": stage.H_u[:, n], "Luu": stage.H_u[:, last], "Lxu": stage.H_u[:, :n].T}
        F = stage.F
        if self.steps.by_speeds:  # positions follow from the new speeds
            upper = self.dt * F
            upper[:, : self.n] += np.eye(self.n)
            F = np.concatenate([upper, F])
        return found | {"Fx": F[:, :n], "Fu": F[:, last]}


def _nothing(model: Model, q: Array, v: Array, u: Array) -> Array:
    return 0.0 * u
