"""The steps of a horizon as compiled functions: where a step leads, what it costs, and their derivatives.

A step and its end are written once over any scalar. From them come three functions: a stage (F and H of
:mod:`linkwise.control.riccati`, for all steps of a horizon in one call), the end's value, and a step under feedback,
which is repeated along the horizon with one length of step in each lane.

Limits are rows of the cost: of g ≤ 0 with a multiplier λ and a weight ρ, the augmented Lagrangian is half the square of
max(0, λ + ρg)/√ρ, of h = 0 that of (λ + ρh)/√ρ. Residuals they are, then, like those of a cost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from linkwise.array_types import Array
from linkwise.checks import check_choice
from linkwise.control.riccati import padded
from linkwise.dataclass import dataclass
from linkwise.errors import InputError
from linkwise.functions.function import CompiledFunction, compile
from linkwise.functions.many_steps import RolloutFunction, rollout
from linkwise.functions.scalar_arrays import scalar_array
from linkwise.math import maximum, sqrt, where
from linkwise.memoized import cached_property
from linkwise.model.held_motion import one_step
from linkwise.model.passive_forces import PassiveForces, refuse_rigid_contacts
from linkwise.spatial.scalar import Flat, Matrix, Scalar, is_zero

if TYPE_CHECKING:
    from linkwise.model.model import Model

Text = Callable[..., Scalar | Flat | Array]


class Stage(NamedTuple):
    """A step's matrices for z = [δx; 1; δu], what it costs, and how far its limits are exceeded."""

    F: Matrix | Array
    """[A | gap | B | 0] (n, ·): δx⁺ = F z, the gap being from the next state given to where the step leads.

    Where positions follow from the new speeds, δq⁺ = δq + lead + dt δv⁺, the rows of v alone.
    """
    lead: Array
    """Gap of positions less that of speeds times dt (nv); without entries where F has all rows."""
    H_x: Matrix | Array
    """[xx | x | 0] (n, ·): second derivatives of the cost, then its gradient."""
    H_u: Matrix | Array
    """[ux | u | uu | 0] (m, ·)."""
    cost: Scalar
    """With the limits' share."""
    excess: Flat | Array
    """Values of the limits: g (c); what is above zero is too much."""


class HorizonEnd(NamedTuple):
    """The end of a horizon: [xx | x | 0] (n, ·) of its cost, the cost, and the values of its conditions."""

    H_x: Matrix | Array
    cost: Scalar
    excess: Flat | Array


SecondOrder = tuple[Scalar, list[Scalar], Matrix, list[Scalar]]
"""A cost, its gradient and second derivatives, and the values of limits."""


@dataclass(frozen=True)
class FreedomGroup:
    """Freedoms and controls that have nothing to do with others, neither in a step nor in any cost.

    Branches of a tree on a fixed base are such groups, and each has a recursion of its own.
    """

    freedoms: tuple[int, ...]
    controls: tuple[int, ...]


class FedBack(NamedTuple):
    """A step under feedback: the next state, what has been spent so far, and the controls."""

    q: Array
    v: Array
    cost: Scalar
    u: Flat | Array


@dataclass(frozen=True, eq=False)
class Steps:
    """The steps of a horizon, over any scalar.

    Args:
        model: the mechanism.
        dt: length of a step, s.
        method: ``"euler"``, ``"rk4"`` or ``"moreau"``.
        motors: joint forces by controls (nv, m).
        running, terminal: what a step and the end cost.
        below, end_below: what must not be above zero at each step and at the end.
        end_zero: what must be zero at the end.
        goal: how many numbers of a goal they all take.
    """

    model: Model
    dt: float
    method: str
    motors: Array
    running: Text
    terminal: Text | None
    below: Text | None
    end_below: Text | None
    end_zero: Text | None
    goal: int

    def __post_init__(self) -> None:
        check_choice("step", self.method, ("euler", "rk4", "moreau"))
        if self.method == "moreau":
            self.model._check_contacts("contact_step")
        else:
            refuse_rigid_contacts(self.model, f"a horizon by {self.method!r}", 'method="moreau"')

    @property
    def m(self) -> int:
        """Number of controls."""
        return int(self.motors.shape[1])

    @cached_property
    def _kinds(self) -> dict[str, str | int | tuple[int, ...]]:
        """Kinds of the inputs of the functions of a step; those of an end have no ``u``."""
        goal = {"goal": self.goal} if self.goal else {}
        return {"q": "q", "v": "v", "u": self.m, **goal}

    def _compiled(self, fn: Text, name: str, at_end: bool) -> CompiledFunction:
        kinds = {key: kind for key, kind in self._kinds.items() if not (at_end and key == "u")}
        return compile(fn, self.model, kinds, name)

    # What is spent.
    @cached_property
    def spent(self) -> CostTerms:
        """Cost and limits of a step."""
        cost = self._compiled(self.running, "running", False)
        limits = [] if self.below is None else [(self._compiled(self.below, "below", False), True)]
        return CostTerms(cost, limits, {"q": self.model.nv, "v": self.model.nv, "u": self.m})

    @cached_property
    def spent_at_end(self) -> CostTerms:
        """Cost and conditions of the end."""
        given = ((self.end_below, "end_below", True), (self.end_zero, "end_zero", False))
        limits = [(self._compiled(fn, name, True), bound) for fn, name, bound in given if fn is not None]
        cost = None if self.terminal is None else self._compiled(self.terminal, "terminal", True)
        return CostTerms(cost, limits, {"q": self.model.nv, "v": self.model.nv})

    # Where it leads.
    def forces(self, q: Array, v: Array, u: Array) -> Array:
        """Joint forces (nv): the motors' and the passive ones."""
        tau: Array = scalar_array(list(self.motors.astype(object) @ np.asarray(u, object)), (self.model.nv,))
        return tau + self.model.passive_force(q, v) if self._passive else tau

    @cached_property
    def _passive(self) -> bool:
        return PassiveForces(self.model).there_are

    def next(self, q: Array, v: Array, u: Array) -> tuple[Array, Array]:
        """The state after a step with constant controls."""
        model = self.model
        if self.method == "moreau":
            step = model.contact_step(q, v, self.forces(q, v, u), dt=self.dt)
            return np.asarray(step.q), np.asarray(step.v)

        def rate(q: Array, v: Array) -> Array:
            return model.forward_dynamics(q, v, self.forces(q, v, u))

        return one_step(model, rate, q, v, self.dt, fourth_order=self.method == "rk4")

    def _gap(self, model: Model, q: Array, v: Array, u: Array, q_next: Array, v_next: Array) -> Array:
        """From the next state given to where the step leads, 2 nv."""
        q_there, v_there = self.next(q, v, u)
        return np.concatenate([model.difference(q_next, q_there), v_there - v_next])

    @cached_property
    def _led(self) -> CompiledFunction:
        kinds: dict[str, str | int | tuple[int, ...]] = {"q": "q", "v": "v", "u": self.m, "q_next": "q", "v_next": "v"}
        return compile(self._gap, self.model, kinds, "gap")

    @property
    def by_speeds(self) -> bool:
        """Whether positions follow from the new speeds, along a flat tangent space."""
        return self.method == "euler" and not self.model.closures and not len(self.model._structure[0])

    def _matrix(self, q: Array, v: Array, u: Array, q_next: Array, v_next: Array) -> tuple[Matrix, Array]:
        """F, row by row, and the lead."""
        lead: Array = np.empty(0)
        if self.method == "moreau":
            by_q, by_v, by_u = self._contact_change(q, v, u)
            gap = self._gap(self.model, q, v, u, q_next, v_next)
        elif self.by_speeds:
            by_q, by_v, by_u, gap = self._speeds(q, v, u, v_next)
            lead = q + self.dt * v_next - q_next
        else:
            given = (q, v, u, q_next, v_next)
            by_q, by_v, by_u = (self._led.jacobian(name).text(*given) for name in ("q", "v", "u"))
            gap = self._led.text(*given)
        rows = zip(by_q, by_v, gap, by_u, strict=True)
        return [[*row_q, *row_v, g, *row_u] for row_q, row_v, g, row_u in rows], lead

    def _speeds(self, q: Array, v: Array, u: Array, v_next: Array) -> tuple[Array, Array, Array, Array]:
        """Derivatives and gap of the speeds after a step, by the recursion for derivatives."""
        model, dt, n = self.model, self.dt, self.model.nv
        lin = model.linearize_forward(q, v, self.forces(q, v, u))
        dq, dv, dtau = self._with_passive(lin, q, v)
        gap = v + dt * np.asarray(lin.vdot, object) - v_next
        return dt * dq, np.eye(n) + dt * dv, dt * (dtau @ self.motors.astype(object)), gap

    def _contact_change(self, q: Array, v: Array, u: Array) -> tuple[Array, Array, Array]:
        """Derivatives of the state after a step with contact, where it leads: of a gap, as far as that is closed."""
        lin = self.model.contacts.linearize_step(q, v, self.forces(q, v, u), dt=self.dt)
        dq, dv, dtau = self._with_passive(lin, q, v)
        return dq, dv, dtau @ self.motors.astype(object)

    def _with_passive(self, lin: Any, q: Array, v: Array) -> tuple[Array, Array, Array]:
        """Derivatives by q, v and joint forces, of which passive ones follow from q and v."""
        dq, dv, dtau = (np.asarray(each, object) for each in (lin.dq, lin.dv, lin.dtau))
        if self._passive:
            kinds: dict[str, str | int | tuple[int, ...]] = {"q": "q", "v": "v"}
            passive = compile(lambda model, q, v: model.passive_force(q, v), self.model, kinds, "passive")
            dq = dq + dtau @ passive.jacobian("q").text(q, v)
            dv = dv + dtau @ passive.jacobian("v").text(q, v)
        return dq, dv, dtau

    # Compiled.
    @cached_property
    def stage(self) -> CompiledFunction:
        """A :class:`Stage` from q, v, u, q_next, v_next (and goal, multipliers, weight)."""

        def text(*flat: Flat) -> Stage:
            whole = self._whole(*flat)
            rows = ([_row(list(row)) for row in matrix] for matrix in (whole.F, whole.H_x, whole.H_u))
            F, H_x, H_u = rows
            return Stage(F, whole.lead, H_x, H_u, whole.cost, whole.excess)

        return CompiledFunction("stage", text, self._stage_inputs)

    @property
    def _stage_inputs(self) -> list[tuple[str, tuple[int, ...]]]:
        nq, nv = self.model.nq, self.model.nv
        inputs = [("q", (nq,)), ("v", (nv,)), ("u", (self.m,)), ("q_next", (nq,)), ("v_next", (nv,))]
        return inputs + self._further(self.spent.limit_count)

    def _whole(self, q: Flat, v: Flat, u: Flat, q_next: Flat, v_next: Flat, *rest: Flat) -> Stage:
        """A stage without zeros behind its rows."""
        given, multipliers, weight = self._rest(rest, self.spent.limit_count)
        F, lead = self._matrix(*map(_vector, (q, v, u, q_next, v_next)))
        cost, gradient, hessian, excess = self.spent.second_order((q, v, u, *given), multipliers, weight)
        n = 2 * self.model.nv
        H_x = [[*row[:n], g] for row, g in zip(hessian[:n], gradient[:n], strict=True)]
        H_u = [[*row[:n], g, *row[n:]] for row, g in zip(hessian[n:], gradient[n:], strict=True)]
        return Stage(F, lead, H_x, H_u, cost, excess)

    @cached_property
    def by_groups(self) -> tuple[CompiledFunction, list[FreedomGroup]]:
        """A stage in groups, and these: F, lead, H_x and H_u of each, then cost and excess."""
        found: list[FreedomGroup] = []

        def text(*flat: Flat) -> Mapping[str, Scalar | Flat | Array]:
            whole = self._whole(*flat)
            found[:] = self._groups(whole)
            n, nv = 2 * self.model.nv, self.model.nv
            results: dict[str, Scalar | Flat | Array] = {}
            for k, group in enumerate(found):
                x = [*group.freedoms, *(nv + i for i in group.freedoms)]
                columns = [*x, n, *(n + 1 + i for i in group.controls)]
                rows = group.freedoms if self.by_speeds else x
                results[f"F{k}"] = [_row([whole.F[i][j] for j in columns]) for i in rows]
                results[f"lead{k}"] = [whole.lead[i] for i in group.freedoms] if self.by_speeds else np.empty(0)
                results[f"H_x{k}"] = [_row([whole.H_x[i][j] for j in (*x, n)]) for i in x]
                results[f"H_u{k}"] = [_row([whole.H_u[i][j] for j in columns]) for i in group.controls]
            return results | {"cost": whole.cost, "excess": whole.excess}

        function = CompiledFunction("stage_in_groups", text, self._stage_inputs)
        _ = function.program  # traced: the groups are known from here on
        return function, found

    def _groups(self, whole: Stage) -> list[FreedomGroup]:
        """Groups of a step, by what is zero in its structure and in that of the end's cost."""
        nv, n = self.model.nv, 2 * self.model.nv
        root = list(range(nv + self.m))

        def of(node: int) -> int:
            while root[node] != node:
                node = root[node]
            return node

        def joined(node: int, row: Flat) -> None:
            for column, x in enumerate(row):
                if column != n and not is_zero(x):
                    root[of(node)] = of(column % nv if column < n else nv + column - n - 1)

        for rows, first in ((whole.F, 0), (whole.H_x, 0), (self._end_pattern, 0), (whole.H_u, nv)):
            for i, row in enumerate(rows):
                joined(nv + i if first else i % nv, row)
        members: dict[int, list[int]] = {}
        for node in range(nv + self.m):
            members.setdefault(of(node), []).append(node)
        found = [
            FreedomGroup(tuple(i for i in each if i < nv), tuple(i - nv for i in each if i >= nv))
            for each in members.values()
        ]
        complete = [each for each in found if each.freedoms and each.controls]
        if len(complete) == len(found):
            return found
        return [FreedomGroup(tuple(range(nv)), tuple(range(self.m)))]  # what nothing moves goes with all others

    @cached_property
    def _end_pattern(self) -> Matrix:
        """Rows of the end's second derivatives, zeros where they are so by structure."""
        size = 2 * self.model.nv
        found = np.zeros((size, size))

        def text(*flat: Flat) -> Flat:
            _, _, hessian, _ = self._spent_at_end(*flat)
            found[:] = [[not is_zero(x) for x in row] for row in hessian]
            return [x for row in hessian for x in row]

        _ = CompiledFunction("end_pattern", text, self._end_inputs).program
        return found.tolist()

    @property
    def _end_inputs(self) -> list[tuple[str, tuple[int, ...]]]:
        return [("q", (self.model.nq,)), ("v", (self.model.nv,)), *self._further(self.spent_at_end.limit_count)]

    def _spent_at_end(self, q: Flat, v: Flat, *rest: Flat) -> SecondOrder:
        given, multipliers, weight = self._rest(rest, self.spent_at_end.limit_count)
        return self.spent_at_end.second_order((q, v, *given), multipliers, weight)

    @cached_property
    def end(self) -> CompiledFunction:
        """A :class:`HorizonEnd` from q, v (and goal, multipliers, weight)."""

        def text(*flat: Flat) -> HorizonEnd:
            cost, gradient, hessian, excess = self._spent_at_end(*flat)
            return HorizonEnd([_row([*row, g]) for row, g in zip(hessian, gradient, strict=True)], cost, excess)

        return CompiledFunction("end", text, self._end_inputs)

    def fed_back(self, steps: int) -> RolloutFunction:
        """All steps under feedback, repeated: :class:`FedBack`, recorded."""
        model, n, groups = self.model, 2 * self.model.nv, self.by_groups[1]

        def text(
            q: Flat,
            v: Flat,
            cost: Flat,
            share: Flat,
            q_old: Flat,
            v_old: Flat,
            u_old: Flat,
            gap: Flat,
            *others: Flat,
        ) -> FedBack:
            gains, rest = others[: len(groups)], others[len(groups) :]
            given, multipliers, weight = self._rest(rest, self.spent.limit_count)
            away = [*model.difference(_vector(q_old), _vector(q)), *(_vector(v) - _vector(v_old))]
            u = list(u_old)
            for group, own in zip(groups, gains, strict=True):
                place = [*group.freedoms, *(n // 2 + i for i in group.freedoms)]
                for k, i in enumerate(group.controls):
                    *row, alone = own[k * (len(place) + 1) : (k + 1) * (len(place) + 1)]
                    u[i] = u[i] + share[0] * alone
                    for factor, j in zip(row, place, strict=True):
                        u[i] = u[i] + factor * away[j]
            now = self.spent.value((q, v, u, *given), multipliers, weight)
            q_next, v_next = self.next(_vector(q), _vector(v), _vector(u))
            left = _vector([(share[0] - 1.0) * x for x in gap])  # of the gap, which the step leaves open in part
            return FedBack(model.integrate(q_next, left[: n // 2]), v_next + left[n // 2 :], cost[0] + now, u)

        inputs = [("q", (model.nq,)), ("v", (model.nv,)), ("cost", ()), ("share", ())]
        inputs += [("q_old", (model.nq,)), ("v_old", (model.nv,)), ("u_old", (self.m,)), ("gap", (n,))]
        for k, group in enumerate(groups):
            inputs.append((f"gains{k}", (len(group.controls), 2 * len(group.freedoms) + 1)))
        step = CompiledFunction("fed_back", text, inputs + self._further(self.spent.limit_count))
        sequences = [name for name, _ in step.inputs if name not in ("q", "v", "cost", "share", "weight")]
        return rollout(step, steps, sequences=sequences, record=True)

    def _further(self, limits: int) -> list[tuple[str, tuple[int, ...]]]:
        """Inputs behind those of the state: where there is a goal, and where there are limits."""
        goal = [("goal", (self.goal,))] if self.goal else []
        return goal + ([("multipliers", (limits,)), ("weight", ())] if limits else [])

    def _rest(self, rest: Sequence[Flat], limits: int) -> tuple[Sequence[Flat], Flat, Scalar]:
        """The goal as further arguments, the multipliers and the weight."""
        given = rest[:1] if self.goal else ()
        return (given, rest[-2], rest[-1][0]) if limits else (given, (), 1.0)


class CostTerms:
    """Cost of a step, or of the end: its own, and limits as an augmented Lagrangian.

    Args:
        cost: a number, whose second derivatives are exact, or residuals, of which it is half the square and whose
            second derivatives are Gauss and Newton's; None for nothing.
        limits: functions, each with whether it may be below zero.
        sizes: names of the inputs to differentiate by, with the dimensions of their tangent spaces.
    """

    def __init__(
        self,
        cost: CompiledFunction | None,
        limits: Sequence[tuple[CompiledFunction, bool]],
        sizes: Mapping[str, int],
    ) -> None:
        self.cost, self.sizes = cost, dict(sizes)
        for function in filter(None, (cost, *(function for function, _ in limits))):
            if function.result_type is not None or len(function.program.outputs[0].shape) > 1:
                raise InputError(
                    f"{function.name} does not return a number or a vector",
                    got=", ".join(f"{array.name} {array.shape}" for array in function.program.outputs),
                    allowed="a cost, or a vector of residuals whose halved square is the cost",
                )
        self.limits = [each for each in limits if each[0].program.outputs[0].size]

    @property
    def limit_count(self) -> int:
        """Count of the numbers that are limited."""
        return sum(function.program.outputs[0].size for function, _ in self.limits)

    def _excess(self, given: Sequence[Flat]) -> list[Scalar]:
        return [x for function, _ in self.limits for x in np.ravel(function.text(*given))]

    @property
    def one_sided(self) -> list[bool]:
        """For each limited number, whether it may be below zero."""
        return [bound for function, bound in self.limits for _ in range(function.program.outputs[0].size)]

    def value(self, given: Sequence[Flat], multipliers: Flat, weight: Scalar) -> Scalar:
        """The cost with the limits' share."""
        total: Scalar = 0.0
        if self.cost is not None:
            own = self.cost.text(*given)
            total = own if np.ndim(own) == 0 else _half_square(own)
        return total + _half_square(self._pressed(self._excess(given), multipliers, weight))

    def _pressed(self, excess: Flat, multipliers: Flat, weight: Scalar) -> list[Scalar]:
        """Residuals of the limits."""
        found = []
        for g, multiplier, bound in zip(excess, multipliers, self.one_sided, strict=True):
            pressed = multiplier + weight * g
            found.append((maximum(0.0, pressed) if bound else pressed) / sqrt(weight))
        return found

    def second_order(self, given: Sequence[Flat], multipliers: Flat, weight: Scalar) -> SecondOrder:
        """Cost, gradient, second derivatives by [q; v; u] in the tangent space, and the values of the limits."""
        names, width = list(self.sizes), sum(self.sizes.values())
        gradient: list[Scalar] = [0.0] * width
        hessian: Matrix = [[0.0] * width for _ in range(width)]
        residuals: list[tuple[Scalar, Flat]] = []
        total: Scalar = 0.0
        if self.cost is not None:
            own = self.cost.text(*given)
            if np.ndim(own) == 0:
                total = own
                gradient = [x for name in names for x in self.cost.gradient(name).text(*given)]
                rows = [
                    np.concatenate([np.asarray(self.cost.hessian(a, b).text(*given), object) for b in names], axis=-1)
                    for a in names
                ]
                both = np.concatenate(rows)
                hessian = [[_mean(both[i, j], both[j, i]) for j in range(width)] for i in range(width)]
            else:
                residuals.extend(zip(own, _jacobian(self.cost, names, given), strict=True))
        excess = self._excess(given)
        slopes = [row for function, _ in self.limits for row in _jacobian(function, names, given)]
        root = sqrt(weight)
        pressed = self._pressed(excess, multipliers, weight)
        for r, slope, bound in zip(pressed, slopes, self.one_sided, strict=True):
            active = where(r > 0.0, root, 0.0) if bound else root
            residuals.append((r, [0.0 if is_zero(x) else active * x for x in slope]))
        for r, row in residuals:
            total = total + 0.5 * r * r
            there = [k for k, x in enumerate(row) if not is_zero(x)]
            for i in there:
                gradient[i] = gradient[i] + row[i] * r
                for j in there:
                    if j <= i:
                        hessian[i][j] = hessian[j][i] = hessian[i][j] + row[i] * row[j]
        return total, gradient, hessian, excess


def _jacobian(function: CompiledFunction, names: Sequence[str], given: Sequence[Flat]) -> Matrix:
    """Rows of ∂(function)/∂[q; v; u]."""
    size = function.program.outputs[0].size
    parts = [np.asarray(function.jacobian(name).text(*given), object).reshape(size, -1) for name in names]
    return [list(row) for row in np.concatenate(parts, axis=-1)]


def _half_square(residuals: Iterable[Scalar]) -> Scalar:
    total: Scalar = 0.0
    for r in residuals:
        total = total + 0.5 * r * r
    return total


def _mean(a: Scalar, b: Scalar) -> Scalar:
    return a if a is b else 0.5 * (a + b)


def _row(values: list[Scalar]) -> list[Scalar]:
    """A row of a matrix for the recursion, whole registers."""
    return values + [0.0] * (padded(len(values)) - len(values))


def _vector(values: Flat | Array) -> Array:
    vector: Array = scalar_array(list(values), (len(values),))
    return vector
