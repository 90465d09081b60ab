"""Simulation with contacts: Moreau's midpoint rule, the same work at every step.

One step is :func:`linkwise.contact.step.accounted_step` with all that acts: joint forces and forces on bodies are taken
in the middle of the step at the velocity of its start; what damps, and the gains of
:class:`~linkwise.sim.actuators.PD`, act implicitly, so that stiff joints are stable. The impulses of a step, the gaps,
and what the laws were missed by stand behind the state: the next step begins with them, and records hold them.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from linkwise.array_types import Array
from linkwise.contact.scene import excluding, meetings_of, pair_places, points_of, rows_of, thinnest
from linkwise.errors import InputError
from linkwise.functions.scalar_arrays import scalar_array as objects
from linkwise.memoized import Memory, once
from linkwise.model.model import Model
from linkwise.sim.chart import Instant
from linkwise.sim.joint_rules import JointRules
from linkwise.sim.motion import CAUSES, ContactNumbers, EquationsOfMotion
from linkwise.sim.work import StepStatements, Work
from linkwise.spatial.scalar import Flat, Scalar, maximum, minimum, minus, plus, repeated_while, where
from linkwise.trace.calls import traced as program


def touching(model: Model) -> Model:
    """The model with contacts: its own, or those of its file where that has something fixed to be touched."""
    if model._contact_scene is not None or not model._base_collisions:
        return model
    return once(Memory.of(model).table("models in steps"), "file", model.with_contacts)


def check_overlap(model: Model, q: Array, p: Array, most: float, shape: tuple[int, ...]) -> tuple[Array, Array]:
    """Gaps (n, points) at a start q (n, nq), p (n, np), and numbers of these points.

    Raises InputError where rigid surfaces overlap by more than so many metres.
    """
    own = sum(parameter.slice.stop - parameter.slice.start for parameter in model.parameters)
    points: Any = model._run("contact_points", np.asarray(q, float), p=np.asarray(p[:, :own], float) if own else None)
    pairs = pair_places(points.number)
    rigid = np.array([meeting.material.is_rigid for meeting in meetings_of(model)])[pairs]
    depth = np.where(rigid, -np.nan_to_num(np.asarray(points.gap), nan=0.0), 0.0)
    if not depth.max(initial=0.0) > most:
        return np.asarray(points.gap), np.asarray(points.number)
    state, point = (int(k) for k in np.unravel_index(int(depth.argmax()), depth.shape))
    who = f" of state {np.unravel_index(state, shape) if len(shape) > 1 else state}" if shape else ""
    deepest = np.argsort(-depth[state], kind="stable")[: np.count_nonzero(depth[state] > most)]
    deep = [meetings_of(model)[k] for k in pairs[state, deepest]]
    raise InputError(
        f"{model.contacts.pairs[pairs[state, point]]!r}: surfaces overlap at the start{who}",
        got=f"{depth[state, point]:.3g} m",
        allowed=f"at most {most:g} m, which steps part at ContactRules.recovery",
        do=f"move the bodies apart (model.distances(q) has all distances); or {excluding(deep)}; or "
        "rules=lw.ContactRules(overlap=…) of with_contacts",
    )


def stepping(model: Model, rules: JointRules) -> Model:
    """The model with rows along its joints where the rules ask for them: rigid limits, dry friction."""
    scene = model._contact_scene
    if scene is None:
        raise InputError(
            'method="moreau" is for models whose bodies touch',
            got=f"{model.name!r} without contacts",
            do='model.with_contacts(lw.Ground(), …), or another method, "dop853" say',
        )
    if rules.friction:
        _refuse_friction(model)
    own = scene.rules
    limits, friction = own.joint_limits or rules.limits == "rigid", own.joint_friction or rules.friction
    chosen = replace(scene, rules=replace(own, joint_limits=limits, joint_friction=friction))

    def made() -> Model:
        return model if chosen == scene else replace(model, _contact_scene=chosen)

    return once(Memory.of(model).table("models in steps"), (limits, friction), made)


def _refuse_friction(model: Model) -> None:
    """Raise InputError where dry friction acts along what has no rows of its own: closures and tendons."""
    rough = [f"closure {each.name!r}" for each in model._closure_freedoms if any(each.closure.friction)]
    rough += [f"spring {spring.name!r}" for spring in model.springs if spring.friction]
    if rough:
        raise InputError(
            "steps with contact know dry friction of the joints of the tree alone",
            got=f"friction of {', '.join(rough)}",
            do="cut the loop at another joint, give damping instead, or leave all friction out: "
            "rules=lw.JointRules(friction=False)",
        )


def contact_numbers(model: Model, rules: JointRules) -> ContactNumbers:
    """Numbers that contacts leave from step to step."""
    own = stepping(model, rules)
    return ContactNumbers(rows_of(own), points_of(own))


def moreau(work: Work) -> StepStatements:
    """One step of Moreau's midpoint rule."""
    m = work.motion
    model = stepping(m.model, m.rules)
    assert model._contact_scene is not None
    most, room = model._contact_scene.rules.substeps, thinnest(model)

    def text(y: Flat, t: Flat, h: Flat, p: Flat) -> dict[str, Any]:
        if most == 1 or not math.isfinite(room):
            return {"y_new": _stepped(m, model, y, t, h, p)}

        def part(state: list[Scalar]) -> list[Scalar]:
            *now, time, left = state
            q, v, _ = m.parts(now)
            fastest: Any = model._run("surface_speed", objects(q), objects(v), p=m.model_parameters(p))
            own = minimum(left, maximum(0.25 * room / maximum(fastest, 1e-30), h[0] / most))
            return [*_stepped(m, model, now, [time], [own], p), time + own, left - own]

        rounding = 1e-9 * h[0]
        return {"y_new": repeated_while(lambda state: state[-1] > rounding, part, [*y, t[0], h[0]])[:-2]}

    sizes = {"y": m.ny, "t": 1, "h": 1, "p": m.np}
    return StepStatements((), work.call(program("step", text, sizes)))


def _stepped(m: EquationsOfMotion, model: Model, y: Flat, t: Flat, h: Flat, p: Flat) -> list[Scalar]:
    """The state y after a step of h, from the instant t on."""
    numbers = m.contacts
    assert numbers is not None
    q, v, x = m.parts(y)
    start = m.nx - m.switches - m.touching
    before = numbers.parts(x[start : start + m.touching])
    middle, time = m.carried(q, [0.5 * h[0] * a for a in v]), t[0] + 0.5 * h[0]
    if m.varying.elements:
        rates = m.element_rates(m.in_force(m.at(t[0], y, p)), accounted=False)
        own = [a + 0.5 * h[0] * b for a, b in zip(x[m.works : m.flowing], rates, strict=True)]
        p = m.in_force(Instant(time, middle, v, [*x[: m.works], *own, *x[m.flowing :]], p)).p
    at = Instant(time, middle, v, x, p)
    tau, active = m.all_forces(at)
    given = m.closure_inputs(t[0], x, p)
    implicit = _implicit(m, at, active, h[0])
    done: Any = model._run(
        "step_account" if m.works else "contact_step",
        objects(q),
        objects(v),
        objects(tau),
        objects(before["contact_impulses"]),
        objects(h).reshape(()),
        f_ext=m.body_forces(at),
        implicit=objects(implicit.all),
        **given,
    )
    flowing = m.element_rates(at, accounted=False)
    x_new = [a + h[0] * b for a, b in zip(x[m.works : m.flowing], flowing, strict=True)]
    if m.works:
        done_work = _works(m, done, implicit, at, h[0])
        x_new = [*(a + b for a, b in zip(x[: m.works], done_work, strict=True)), *x_new]
    after = [*done.impulses, *done.gaps, *done.residuals, done.overflow, h[0]]
    return [*done.q, *done.v, *x_new, *x[m.flowing : start], *after, *x[start + m.touching :]]


class Implicit(NamedTuple):
    """The h·(dampers) + h²/4·(springs) of all freedoms (nv), N m s²: of joints, of actuators, of ends of ranges."""

    joints: list[Scalar]
    actuators: list[Scalar]
    limits: list[Scalar]

    @property
    def all(self) -> list[Scalar]:
        """Their sum."""
        return plus(plus(self.joints, self.actuators), self.limits)


def _works(m: EquationsOfMotion, done: Any, implicit: Implicit, at: Instant, h: Scalar) -> list[Scalar]:
    """The works of all causes in a step, J: an impulse does its mean velocity's worth on a mechanism.

    So kinetic energy in the middle of the step is explained to rounding. What acts implicitly is less by its share of
    the change of velocity. Where surfaces meet within a step it goes farther than its mean velocity, and what that
    costs against gravity is work of contact.
    """
    forces = m.forces_by_cause(at)
    for cause, share in zip(("damping", "control", "limits"), implicit, strict=True):
        less = (s * dv / h for s, dv in zip(share, done.change, strict=True))
        forces[cause] = minus(forces[cause], less)
    total = dict(zip(CAUSES, (h * power for power in m.powers(at.q, done.mean, at.p, forces)), strict=True))
    for cause, work in zip(("contact", "limits", "friction"), done.work, strict=True):
        total[cause] = total[cause] + work
    own, none = m.model_parameters(at.p), objects([0.0] * m.nv)
    held = m.model._run("inverse_dynamics", objects(at.q), none, none, p=own)
    for g, dx in zip(held, done.shift, strict=True):
        total["contact"] = total["contact"] + g * dx
    return [total[cause] for cause in CAUSES]


def _implicit(m: EquationsOfMotion, at: Instant, active: Flat, h: Scalar) -> Implicit:
    """Gains of actuators act only where these are not at their limits, springs of ranges beyond their ends."""
    total: list[Scalar] = [0.0] * m.nv
    limits = [float(limit) for limit in m.model.limits.effort]
    for element in m.elements:
        gains = element.implicit_gains()
        if gains is not None:
            for i, (kp, kd) in enumerate(zip(*gains, strict=True)):
                more = h * float(kd) + 0.25 * h * h * float(kp)
                free = abs(active[i]) < limits[i] if m.rules.effort and limits[i] < float("inf") else True
                total[i] = total[i] + where(free, more, 0.0)
    ends: list[Scalar] = [0.0] * m.nv
    for limit in m.limits if m.rules.limits == "spring" else ():
        for i, share in limit.implicit_share(at.q, at.v, m.rules.limit_loss, h).items():
            ends[i] = ends[i] + share
    return Implicit([h * d for d in m.damping()], total, ends)
