"""Passive forces of a model: springs, dampers, dry friction, fields and compliant contacts, by their cause.

One text over any scalar, which simulations integrate and which everything that linearises, balances or explains a
motion uses as well. Elasticity and damping inside flexible bodies are part of the equations of motion themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from copy import copy
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from linkwise.algorithms.linearized_forward import LinearizedForward
from linkwise.array_types import Array, MaybeArray
from linkwise.errors import InputError
from linkwise.functions.function import CompiledFunction
from linkwise.functions.scalar_arrays import scalar_array
from linkwise.mechanism.actuation import JointTransmission, Spring
from linkwise.mechanism.bodies_and_joints import JointInstance
from linkwise.mechanism.closures.instances import ClosureInstance
from linkwise.mechanism.fields import GravityCompensation
from linkwise.mechanism.parameters import Values
from linkwise.memoized import Memory, cached_property, once
from linkwise.model.compiled_methods import Methods
from linkwise.model.transmissions import (
    MovingFrames,
    add_pulled,
    add_wrench,
    closure_forces,
    joint_forces,
    length,
    pushed_by_closures,
    speed,
    wrenches,
)
from linkwise.spatial.scalar import Flat, Scalar, is_zero, plus, tanh, where
from linkwise.trace.block import Block
from linkwise.trace.program import Call

if TYPE_CHECKING:
    from linkwise.contact.scene import Meeting
    from linkwise.model.model import Model
    from linkwise.sim.joint_rules import JointRules

CAUSES = ("springs", "damping", "friction", "compensation", "fluid", "contact")

FRICTION_SPEED = 1e-2
"""Rad/s or m/s at which smoothed dry friction reaches three quarters of its full value, where no rules say another."""


def _rigid_meeting(model: Model) -> Meeting | None:
    """The first pair of rigid surfaces that may touch; contacts are imported only for models that have some."""
    if model._contact_scene is None:
        return None
    from linkwise.contact.scene import rigid_meeting

    return rigid_meeting(model)


def refuse_rigid_contacts(model: Model, who: str, do: str) -> None:
    """Refuse a model with rigid surfaces that meet, where contacts can only be forces."""
    rigid = _rigid_meeting(model)
    if rigid is not None:
        raise InputError(
            f"{who} takes contacts as forces, and rigid surfaces have none",
            got=f"{rigid.name!r}, which is rigid",
            allowed="materials with a stiffness: lw.Material(stiffness=1e5, damping=0.01) for all that touches",
            do=do,
        )


TOUCHING = 1e-6
"""m: rigid surfaces that are nearer than this touch, for derivatives of a motion."""


def refuse_touching(model: Model, who: str, q: Array, p: MaybeArray) -> None:
    """Refuse configurations where rigid surfaces touch: bodies that are held there move in another way."""
    if _rigid_meeting(model) is None:
        return
    from linkwise.contact.scene import meetings_of

    gaps = model.distances(q, p=p).reshape(-1, len(model.contacts.pairs))
    rigid = [meeting.material.is_rigid for meeting in meetings_of(model)]
    nearest = np.where(rigid, gaps.min(axis=0, initial=np.inf), np.inf)
    if nearest.min() < TOUCHING:
        pair = int(nearest.argmin())
        raise InputError(
            f"{who} is of motions without contact, and rigid surfaces touch here",
            got=f"{model.contacts.pairs[pair]!r}, {nearest[pair]:.3g} m apart",
            allowed=f"gaps above {TOUCHING:g} m, or materials that give way, lw.Material(stiffness=1e5)",
            do="model.contacts.linearize_step(q, v, tau, dt=…) has the derivatives of a step with contacts",
        )


class PassiveForces:
    """Springs, dampers, dry friction, fields and compliant contacts of a model, over any scalar.

    Contacts act where all of them are compliant: rigid ones exert what holds surfaces apart, which no state tells.

    Args:
        model: the mechanism.
        rules: of a simulation, which say what acts; all of it if not given.
        in_steps: whether steps find contacts and dry friction by themselves.
    """

    def __init__(self, model: Model, rules: JointRules | None = None, *, in_steps: bool = False) -> None:
        self.model, self.contact = model, not in_steps
        self.springs, self.damping = rules is None or rules.springs, rules is None or rules.damping
        self.friction = rules is None or (rules.friction and not in_steps)
        self.friction_speed = FRICTION_SPEED if rules is None else rules.friction_speed
        self.fields = model.fields if rules is None or rules.fields else ()

    @property
    def choices(self) -> tuple[Hashable, ...]:
        """Key of a set of passive forces among others of the same model."""
        return self.springs, self.damping, self.friction, self.friction_speed, self.fields, self.contact

    @cached_property
    def touches(self) -> bool:
        """Whether contacts act."""
        return self.contact and self.model._contact_scene is not None and _rigid_meeting(self.model) is None

    @cached_property
    def there_are(self) -> bool:
        """Whether anything acts at all."""
        return any(map(self._acts, self._springs)) or bool(self.fields) or self.touches

    def _acts(self, spring: Spring) -> bool:
        return bool(
            (self.springs and spring.stiffness)
            or (self.damping and spring.damping)
            or (self.friction and spring.friction)
        )

    @cached_property
    def _springs(self) -> list[Spring]:
        """Springs, dampers and friction, each along its transmission: of joints, of equipment, of closing joints."""
        own = [(joint.name, joint.nv, joint) for joint in self.model.joints]
        closing = [(each.name, each.joint.nv, each.closure) for each in self.model._closure_freedoms]
        of_joints, of_closures = (
            [spring for each in those for spring in _of_freedoms(*each)] for those in (own, closing)
        )
        return [*of_joints, *self.model.springs, *of_closures]

    def at_joints(self, q: Flat, v: Flat, p: Flat | None = None, active: Flat | None = None) -> dict[str, list[Scalar]]:
        """Joint forces (nv) of what acts along joints, by their cause; those that close loops included.

        A joint that follows another moves m times as fast as that one and acts on it m times as hard. ``active`` has a
        number for each closure, 1 in force and 0 released; all are in force if not given.
        """
        found: dict[str, list[Scalar]] = {cause: [0.0] * self.model.nv for cause in CAUSES}
        places = MovingFrames(self.model, q, v, p, active)
        along: dict[str, dict[str, list[Scalar]]] = {}
        for spring in self._springs:
            if isinstance(spring.transmission, JointTransmission):
                for cause, pull in self._pulls(spring, places):
                    joint_forces(self.model, spring.transmission, pull, found[cause])
                    closure_forces(self.model, spring.transmission, pull, along.setdefault(cause, {}))
        for cause, forces in along.items():
            if forces:
                found[cause] = plus(found[cause], pushed_by_closures(places, forces))
        if self.touches:
            found["contact"] = list(self.model._run("contact_force", scalar_array(q), scalar_array(v), p=p))
        return found

    def on_bodies(self, q: Flat, v: Flat, p: Flat | None = None) -> dict[str, dict[str, list[Scalar]]]:
        """For each cause and the name of a body, [moment, force] (6) at its origin and in its axes."""
        found: dict[str, dict[str, list[Scalar]]] = {}
        places = MovingFrames(self.model, q, v, p)
        for spring in self.model.springs:
            if self._acts(spring) and not isinstance(spring.transmission, JointTransmission):
                units = wrenches(places, spring.transmission)
                for cause, pull in self._pulls(spring, places):
                    add_pulled(found.setdefault(cause, {}), units, pull)
        gravity = Values(self.model, p).gravity(self.model.gravity)
        for field in self.fields:
            R = places.pose(field.frame)[:3, :3]
            if isinstance(field, GravityCompensation):
                lift = R.T @ np.array([g * -field.mass for g in gravity], object)
                add_wrench(self.model, field.frame, np.zeros(3), lift, found.setdefault("compensation", {}))
            else:
                twist = places.twist(field.frame)
                omega, flow = R.T @ twist[:3], R.T @ (twist[3:] - np.array(field.wind))
                wrench = np.array(field.force(list(omega), list(flow)), object)
                add_wrench(self.model, field.frame, wrench[:3], wrench[3:], found.setdefault("fluid", {}))
        return found

    def total(self, q: Flat, v: Flat, p: Flat | None = None) -> list[Scalar]:
        """Joint forces (nv) that all of it amounts to: τ of the equations of motion."""
        total = self.summed(self.at_joints(q, v, p))
        on_bodies = [pair for own in self.on_bodies(q, v, p).values() for pair in own.items()]
        pushed = as_joint_forces(self.model, q, on_bodies, p)
        return total if pushed is None else plus(total, pushed)

    @staticmethod
    def summed(forces: dict[str, list[Scalar]]) -> list[Scalar]:
        """The sum of forces (nv) by cause; of a model without contacts, nothing is added for these."""
        first, *others = (own for cause, own in forces.items() if cause != "contact" or not all(map(is_zero, own)))
        for own in others:
            first = plus(first, own)
        return first

    def energy(self, q: Flat, p: Flat | None = None, active: Flat | None = None) -> Scalar:
        """½ Σ k d² of all springs and of all compliant contacts, and what lifting by compensation has given, in J.

        Springs along closures that are released (``active`` 0) hold none.
        """
        total: Scalar = 0.0
        places = MovingFrames(self.model, q, (), p, active)
        for spring in self._springs if self.springs else ():
            if spring.stiffness:
                d = self._stretch(spring, places)
                total = total + d * d * (0.5 * spring.stiffness) * places.in_force(spring.transmission)
        gravity = Values(self.model, p).gravity(self.model.gravity)
        for field in self.fields:
            if isinstance(field, GravityCompensation):
                for g, x in zip(gravity, places.pose(field.frame)[:3, 3], strict=True):
                    total = total + g * x * field.mass
        if self.model._contact_scene is not None:
            total = total + self.model._run("contact_energy", scalar_array(q), p=p)
        return total

    def _pulls(self, spring: Spring, places: MovingFrames) -> Iterator[tuple[str, Scalar]]:
        """The forces of a spring along its transmission, by cause."""
        on, smooth = places.in_force(spring.transmission), 1.0 / self.friction_speed
        if self.springs and spring.stiffness:
            yield "springs", self._stretch(spring, places) * (-spring.stiffness) * on
        if self.damping and spring.damping:
            yield "damping", speed(places, spring.transmission) * (-spring.damping) * on
        if self.friction and spring.friction:
            yield "friction", tanh(speed(places, spring.transmission) * smooth) * (-spring.friction) * on

    def _stretch(self, spring: Spring, places: MovingFrames) -> Scalar:
        """Length beyond its slack."""
        l = length(places, spring.transmission)
        low, high = spring.rest
        if low == high:
            return l - low
        over = where(l > high, l - high, 0.0) if np.isfinite(high) else 0.0
        return where(l < low, l - low, over) if np.isfinite(low) else over


def _of_freedoms(name: str, nv: int, of: JointInstance | ClosureInstance) -> Iterator[Spring]:
    """Springs along single freedoms of a joint, of the tree or one that closes a loop."""
    columns = (own if len(own) == nv else [0.0] * nv for own in (of.stiffness, of.damping, of.rest, of.friction))
    for k, (stiffness, damping, rest, friction) in enumerate(zip(*columns, strict=True)):
        if stiffness or damping or friction:
            along = JointTransmission({name: [1.0 if i == k else 0.0 for i in range(nv)]})
            yield Spring(name, along, stiffness, damping, (rest, rest), friction)


def as_joint_forces(
    model: Model, q: Flat, on_bodies: Sequence[tuple[str, Flat]], p: Flat | None
) -> list[Scalar] | None:
    """J*f (nv) of forces on bodies, by name: [moment, force] at their origins and in their axes. None for none."""
    if not on_bodies:
        return None
    f_ext = np.zeros((len(model.bodies), 6), object) + 0.0
    for name, wrench in on_bodies:
        f_ext[model.bodies[name].index] += np.asarray(wrench, dtype=object)
    return list(model._run("external_force", scalar_array(q), f_ext, p=p))


class ActingForces(NamedTuple):
    """Joint forces (nv) that act besides τ, and rates (nx) of the states x of what exerts them."""

    force: Flat
    rate: Flat


class Acting:
    """All that acts on a model besides gravity and τ, as a compiled function of a state, with derivatives.

    Args:
        model: the mechanism.
        text: ``text(q, v, x, t, p)`` over any scalar, to an :class:`ActingForces`.
        x: states of what acts (nx), about which it is linearised.
        n_parameters: numbers in p, those of the model first.
        by_clock: whether something follows a table over time.
        varied: where what acts changes constants of the model: the model with these as parameters, and a text as above
            that gives all parameters of it.
    """

    def __init__(
        self,
        model: Model,
        text: Callable[..., ActingForces],
        x: Array,
        n_parameters: int,
        *,
        by_clock: bool = False,
        varied: tuple[Model, Callable[..., Flat]] | None = None,
    ) -> None:
        self.by_clock = by_clock
        self.model, self.x, self.nx = model, x, len(x)
        self.t: ArrayLike = 0.0
        self.p: MaybeArray = None
        sizes = {"q": (model.nq,), "v": (model.nv,), "x": (self.nx,), "t": (), "p": (n_parameters,)}
        self.inputs = [(name, shape) for name, shape in sizes.items() if shape != (0,)]

        def run(*flat: Flat) -> ActingForces | Flat:
            given = dict(zip((name for name, _ in self.inputs), flat, strict=True))
            found = text(given["q"], given["v"], given.get("x", ()), given["t"][0], given.get("p", ()))
            return found if self.nx else found.force

        self.function = CompiledFunction("acting_forces", run, self.inputs, charts={"q": model._chart})
        self.varied = varied

        def varying(*flat: Flat) -> Flat:
            given = dict(zip((name for name, _ in self.inputs), flat, strict=True))
            assert varied is not None
            return varied[1](given["q"], given["v"], given.get("x", ()), given["t"][0], given.get("p", ()))

        self._varying = CompiledFunction("parameters_in_force", varying, self.inputs, charts={"q": model._chart})

    def given(self, t: MaybeArray, p: MaybeArray) -> Acting:
        """The same at a time, zero if not given, and with run-time parameters, nominal if not given."""
        made = copy(self)
        made.t, made.p = np.asarray(0.0 if t is None else t, float), p
        return made

    @property
    def reads_time(self) -> bool:
        """Whether forces or rates change with the time."""
        place = [name for name, _ in self.inputs].index("t")
        program = self.function.program
        if self.by_clock:
            return True
        if isinstance(program, Block):
            return any(node[0] == "input" and node[1] == place for node in program.nodes)
        name = program.inputs[place].name
        return any(name in call.inputs for call in program.walk() if isinstance(call, Call))

    def _arguments(self, q: ArrayLike, v: ArrayLike) -> list[ArrayLike]:
        p = self.model.parameters.nominal if self.p is None else self.p
        given = {"q": q, "v": v, "x": self.x, "t": self.t, "p": p}
        return [given[name] for name, _ in self.inputs]

    def force(self, q: ArrayLike, v: ArrayLike, threads: int | None = None) -> Array:
        """Joint forces (..., nv)."""
        found = self.function.general(*self._arguments(q, v), threads=threads)
        return np.asarray(found.force if self.nx else found)

    def by(self, name: str, q: ArrayLike, v: ArrayLike) -> tuple[Array, Array]:
        """Changes of the joint forces (..., nv, k) and of the rates (..., nx, k) with an input, of k numbers."""
        found = self.function.jacobian(name).general(*self._arguments(q, v))
        if self.nx:
            return np.asarray(found.force), np.asarray(found.rate)
        return np.asarray(found), np.zeros((*np.shape(found)[:-2], 0, np.shape(found)[-1]))

    def added(self, lin: LinearizedForward, q: ArrayLike, v: ArrayLike) -> LinearizedForward:
        """The derivatives of v̇(q, v, τ + acting), from those at this sum of joint forces."""
        dq, dv = (by + lin.dtau @ self.by(name, q, v)[0] for name, by in (("q", lin.dq), ("v", lin.dv)))
        return LinearizedForward(lin.vdot, dq, dv, lin.dtau)

    def by_parameters(self, q: ArrayLike, v: ArrayLike) -> Array:
        """Changes of the joint forces (..., nv, np) with the model's run-time parameters."""
        return self.by("p", q, v)[0][..., : len(self.model.parameters.nominal)]

    def parameters(self, q: ArrayLike, v: ArrayLike) -> Array:
        """Parameters (..., np) of the model with what varies."""
        return np.asarray(self._varying.general(*self._arguments(q, v)))

    def parameters_by(self, name: str, q: ArrayLike, v: ArrayLike) -> Array:
        """Changes (..., np, k) of these with an input, of k numbers; none with one that is not there."""
        if name not in dict(self.inputs):
            return np.zeros((1, 0))
        return np.asarray(self._varying.jacobian(name).general(*self._arguments(q, v)))

    def refuse_memory(self, what: str) -> None:
        """Raise InputError where what acts has states of its own or goes by the clock: not every function follows."""
        if self.varied is not None:
            raise InputError(
                f"{what} is there for models whose constants stay",
                got="an element that changes some during the run",
                do="leave dt out (state_space follows them), or take differences of simulations",
            )
        if self.nx or self.reads_time:
            raise InputError(
                f"{what} is there for controls that depend on q and v alone",
                got=f"a control with {self.nx} states of its own" if self.nx else "a control that depends on time",
                do="leave dt out (state_space follows both), or take differences of simulations",
            )


class Passive(Methods):
    """Forces that act on a model by themselves, as methods."""

    def passive_force(
        self,
        q: ArrayLike,
        v: ArrayLike,
        *,
        rules: JointRules | None = None,
        p: ArrayLike | None = None,
        out: Array | None = None,
        threads: int | None = None,
    ) -> Array:
        """Joint forces (..., nv) of springs, dampers, dry friction, fields and compliant contacts.

        They are what ``simulate`` adds to the actuators':

        -k (q - rest) - d v - f tanh(v / friction_speed) at the joints, and what springs and dampers across joints and
        along tendons, compensation of gravity and a fluid amount to. Dry friction is smooth: it holds nothing at rest.
        Joint limits, which exert nothing inside their range, are left out.

        Args:
            q: configuration (..., nq).
            v: velocity (..., nv).
            rules: which of them act, and the speed of friction, as for ``simulate``.
            p: run-time parameters (..., np).
            out: array to fill.
            threads: threads to split a batch over.

        Example:
            >>> import linkwise as lw
            >>> b = lw.ModelBuilder("door")
            >>> b.add_body("leaf", joint=lw.Revolute(axis=(0, 0, 1)), mass=1.0, stiffness=50.0, damping=3.0)
            >>> b.build().passive_force([0.1], [1.0]).tolist()
            [-8.0]
        """
        model = self._whole
        texts = PassiveForces(model, rules)

        def made() -> CompiledFunction:
            names = ("q", "v", "p") if model._parameter_names else ("q", "v")
            sizes = {"q": (model.nq,), "v": (model.nv,), "p": (len(model.parameters.nominal),)}

            def run(q: Flat, v: Flat, p: Flat | None = None) -> list[Scalar] | Array:
                found = texts.total(q, v, None if p is None else scalar_array(p))
                return found if found else np.empty((0,), object)

            inputs = [(name, sizes[name]) for name in names]
            return CompiledFunction("passive_force", run, inputs, charts={"q": model._chart})

        self._check_parameters("passive_force", p)
        function = once(Memory.of(model).table("passive forces"), texts.choices, made)
        given = [q, v]
        if model._parameter_names:
            given.append(model._nominal_beside([q, v]) if p is None else p)
        found: Array = function(*given, out=out, threads=threads)
        return found

    def _acting(self, control: object, rules: JointRules | None, t: MaybeArray, p: MaybeArray) -> Acting | None:
        """All that acts besides τ in a simulation with this control and these rules but joint limits; None: nothing."""
        model = self._whole
        if control is not None:
            from linkwise.sim.acting import acting

            return acting(model, control, rules, t, p)
        texts = PassiveForces(model, rules)
        if not texts.there_are:
            return None

        def text(q: Flat, v: Flat, x: Flat, t: Scalar, p: Flat) -> ActingForces:
            return ActingForces(texts.total(q, v, scalar_array(p) if len(p) else None), ())

        def kept() -> Acting:
            return Acting(model, text, np.zeros(0), len(model.parameters.nominal))

        return once(Memory.of(model).table("acting forces"), texts.choices, kept).given(t, p)

    def _own(self, control: object, p: MaybeArray) -> MaybeArray:
        """Of run-time parameters that a control reads as well, those of the model, which come first."""
        size = len(self.parameters.nominal)
        return p if control is None or p is None else np.asarray(p)[..., :size] if size else None
