"""Constraints where they are: on which bodies and joints of a mechanism, and which links feel them.

A constraint that is put into a mechanism has names, which become indices; what cannot be is refused with its name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from linkwise.dataclass import dataclass
from linkwise.errors import InputError, ModelError, UnknownNameError
from linkwise.joints import Joint
from linkwise.joints.directions import RelativePose
from linkwise.mechanism.bodies_and_joints import Pose
from linkwise.mechanism.body_checks import checked_pose, per_freedom
from linkwise.mechanism.closures.constraint import Closure, Relation, arguments_of, checked_function
from linkwise.mechanism.closures.coupling import JointFunction, RateFunction
from linkwise.mechanism.closures.from_joint import JointClosure, closure_of
from linkwise.mechanism.description import JointLimits
from linkwise.mechanism.entry import checked_limits, checked_springs
from linkwise.mechanism.joined_bodies import no_piece
from linkwise.spatial.dual import Dual, new_level
from linkwise.spatial.matrices import Mat3
from linkwise.spatial.scalar import Flat, Scalar
from linkwise.spatial.vectors import Motion, Vec

if TYPE_CHECKING:
    from linkwise.flexible.structure import NodeKey
    from linkwise.mechanism.mechanism import Mechanism
    from linkwise.mechanism.tree import Link


@dataclass(frozen=True)
class ClosureInstance:
    """A closure between two frames of a mechanism. Bodies are moving ones: a place on a welded one is a place on it."""

    name: str
    type: Closure
    body_a: int
    """Index of the moving body that carries frame a; -1 for the world."""
    placement_a: Pose
    """Frame a in that body's frame."""
    body_b: int
    """Index of the moving body that carries frame b; -1 for the world."""
    placement_b: Pose
    """Frame b in that body's frame."""
    node_a: int = 0
    """Of a flexible body, the place in its ``nodes`` that ``placement_a`` starts from."""
    node_b: int = 0
    """Likewise for frame b."""
    limits: tuple[JointLimits, ...] = ()
    """Of the freedoms that its joint leaves, if it has any; so are those below, as of a joint in the tree."""
    damping: tuple[float, ...] = ()
    friction: tuple[float, ...] = ()
    stiffness: tuple[float, ...] = ()
    rest: tuple[float, ...] = ()

    @property
    def sides(self) -> tuple[tuple[int, Pose, int], tuple[int, Pose, int]]:
        """Body, placement and node of frame a, and those of frame b."""
        return (self.body_a, self.placement_a, self.node_a), (self.body_b, self.placement_b, self.node_b)

    @property
    def joint(self) -> Joint | None:
        """The joint whose freedoms the closure leaves, with their coordinates; None where there are none."""
        kind = self.type
        return kind.joint if isinstance(kind, JointClosure) and kind.joint.nv else None

    @property
    def centre(self) -> float:
        """The place within half a turn of which an angle is told: the middle of its limits, or else its rest."""
        if self.joint is None or self.joint.nv != 1 or not self.joint.fixed_axes:
            return 0.0
        if self.limits and math.isfinite(self.limits[0].upper - self.limits[0].lower):
            return 0.5 * (self.limits[0].lower + self.limits[0].upper)
        return self.rest[0] if self.rest else 0.0

    @property
    def is_active(self) -> bool:
        """Whether a spring, a damper or friction acts along its freedoms."""
        return any((*self.stiffness, *self.damping, *self.friction))

    @property
    def equations(self) -> tuple[str, ...]:
        """The names of all its equations: between places, then between rates."""
        return (*self.type.equations, *self.type.rate_equations)


@dataclass(frozen=True)
class RelationInstance:
    """A relation between joints of a mechanism."""

    name: str
    type: Relation
    joints: tuple[int, ...] | None
    """Indices of the joints, in the relation's order; None where it is about the whole of q and v."""

    @property
    def equations(self) -> tuple[str, ...]:
        """The names of all its equations: between places, then between rates."""
        return (*self.type.equations, *self.type.rate_equations)

    def coordinates(self, links: Sequence[Link], q: Flat) -> list[Scalar]:
        """The q of the relation's residuals from the model's, given the links of its tree."""
        return list(q) if self.joints is None else [x for k in self.joints for x in links[k].hinge.coordinates(q)]

    def rates(self, links: Sequence[Link], v: Flat) -> list[Scalar]:
        """The v of the relation's residuals from the model's, given the links of its tree."""
        return list(v) if self.joints is None else [x for k in self.joints for x in links[k].hinge.rates(v)]


@dataclass(frozen=True)
class ClosureFreedoms:
    """The freedoms of one closure, and their places among those of all closures of a mechanism."""

    closure: ClosureInstance
    number: int
    """The closure's place in ``closures``."""
    joint: Joint
    q_slice: slice
    """Its part of ``model.constraints.coordinates(q)``."""
    v_slice: slice
    """Its part of ``model.constraints.velocities(q, v)`` and of the forces of ``model.constraints.efforts(q, f)``."""

    @property
    def name(self) -> str:
        """The closure's."""
        return self.closure.name


def freedoms_of_closures(closures: Sequence[ClosureInstance | RelationInstance]) -> list[ClosureFreedoms]:
    """Those of the closures that have some, in order."""
    found: list[ClosureFreedoms] = []
    q = v = 0
    for k, closure in enumerate(closures):
        joint = closure.joint if isinstance(closure, ClosureInstance) else None
        if joint is not None:
            assert isinstance(closure, ClosureInstance)
            found.append(ClosureFreedoms(closure, k, joint, slice(q, q + joint.nq), slice(v, v + joint.nv)))
            q, v = q + joint.nq, v + joint.nv
    return found


@dataclass(frozen=True)
class Reference:
    """A closed configuration at which it is decided which freedoms are independent and which equations redundant."""

    q: tuple[float, ...]
    t: float = 0.0
    independent: tuple[int, ...] = ()
    """Places in v that are to be independent; what else is free besides them is found."""


_LINK, _COLUMN = 400, 70
"""Operations of forward dynamics, of a link without closures and for each equation more; a pair of these adds one."""


def equations_on_bodies(mechanism: Mechanism) -> NDArray[np.int64]:
    """For each body, how many equations of closures it feels."""
    counts = np.zeros(len(mechanism.bodies), np.int64)
    for closure in mechanism.closures:
        if isinstance(closure, ClosureInstance):
            ends = [closure.body_a, closure.body_b]
        else:
            ends = list(range(len(mechanism.bodies)) if closure.joints is None else closure.joints)
        reached: set[int] = set()
        for body in ends:
            while body >= 0 and body not in reached:
                reached.add(body)
                body = mechanism.parents[body]  # on the way to the base
        counts[list(reached)] += len(closure.equations)
    return counts


def share_of_work(mechanism: Mechanism) -> float:
    """Of what loops compute, the part that is not zero for certain; 1 without closures."""
    counts = equations_on_bodies(mechanism)
    most = sum(len(closure.equations) for closure in mechanism.closures)

    def work(columns: NDArray[np.int64]) -> int:
        return int((_LINK + _COLUMN * columns + columns**2).sum())

    return work(counts) / max(1, work(np.full_like(counts, most)))


Number = Callable[[float], Scalar]
Values = tuple[list[Scalar], list[Scalar]]
"""Residuals of the equations between places, and of those between rates."""


def closure_between(
    mechanism: Mechanism,
    name: str,
    body_a: str,
    placement_a: ArrayLike | None,
    body_b: str,
    placement_b: ArrayLike | None,
    joint: Joint | Closure,
    node_a: NodeKey | None = None,
    node_b: NodeKey | None = None,
    **numbers: Any,
) -> ClosureInstance:
    """A closure between two frames given by the names of bodies or frames, and places on them (None: theirs).

    ``numbers`` are what is known of its freedoms, as of a joint's: limits, damping, friction, stiffness, rest.
    """
    closure = named_closure(name, joint)
    freedoms = checked_numbers(name, closure, **numbers)
    a, pose_a, node_a = _place(mechanism, name, "a", body_a, placement_a, node_a)
    b, pose_b, node_b = _place(mechanism, name, "b", body_b, placement_b, node_b)
    if a == b and node_a == node_b:
        raise ModelError(
            f"closure {name!r} is between two places of one rigid body: it can neither move nor be closed",
            got=f"body_a={body_a!r} and body_b={body_b!r}, both "
            + ("fixed to the world" if a < 0 else f"part of {mechanism.bodies[a].name!r}"),
            allowed="bodies that can move against each other (welded ones count as one)",
        )
    if freedoms and name in mechanism.joints.names:
        raise ModelError(
            f"closure {name!r} has the name of a joint, and something acts along its freedoms",
            got=", ".join(freedoms),
            do="choose another name: springs, limits and actuators find their joint by it",
        )
    _tried(f"closure {name!r}", closure, lambda new: _closure_values(closure, new))
    return ClosureInstance(name, closure, a, pose_a, b, pose_b, node_a, node_b, **freedoms)


def relation_between(mechanism: Mechanism, name: str, relation: Relation) -> RelationInstance:
    """A relation between joints given by their names."""
    if not isinstance(relation, Relation):
        raise InputError(
            f"the coupling {name!r} is not a relation between joints",
            got=repr(relation),
            allowed="Coupling, JointFunction, RateFunction, Prescribed",
            do="use add_closure for what is between two frames" if isinstance(relation, (Closure, Joint)) else None,
        )
    indices = None if relation.joints is None else tuple(_joint(mechanism, name, j) for j in relation.joints)
    joints = mechanism.joints if indices is None else [mechanism.joints[k] for k in indices]
    for joint in joints if relation.single_freedoms else ():
        if joint.nq != 1 or joint.nv != 1:
            raise ModelError(
                f"coupling {name!r} cannot take joint {joint.name!r}",
                got=f"{joint.type!r}, {joint.nv} freedoms",
                allowed="joints with one freedom",
                do="write the relation as a function with lw.closures.JointFunction",
            )
    nq, nv = (
        (mechanism.nq, mechanism.nv)
        if indices is None
        else (sum(joint.nq for joint in joints), sum(joint.nv for joint in joints))
    )
    _tried(f"coupling {name!r}", relation, lambda new: _relation_values(relation, nq, nv, new))
    return RelationInstance(name, relation, indices)


def relation_of(
    name: str,
    given: Relation | Callable[..., Scalar | Flat],
    equations: int | Sequence[str],
    joints: Sequence[str] | None,
) -> Relation:
    """A relation as it is, or that of a function, by its arguments: fn(q), fn(q, t) or fn(q, v, t)."""
    if isinstance(given, Relation) or not callable(given):  # what is neither is refused where it is fitted
        return given
    fn = given
    what, signatures = f"the function of constraint {name!r}", "fn(q), fn(q, t) or fn(q, v, t)"
    checked_function(fn, what, signatures)
    n = arguments_of(fn, what, (1, 2, 3), signatures)
    return RateFunction(fn, equations, joints) if n == 3 else JointFunction(fn, equations, joints)


def named_closure(name: str, joint: Joint | Closure) -> Closure:
    """The closure of a joint, with the closure's name in the message if there is none."""
    try:
        return closure_of(joint)
    except InputError as error:
        raise InputError(f"closure {name!r}: {error.what}", **error.parts) from None


def checked_numbers(
    name: str,
    closure: Closure,
    limits: JointLimits | Sequence[JointLimits] | None = None,
    damping: float | Sequence[float] = 0.0,
    friction: float | Sequence[float] = 0.0,
    stiffness: float | Sequence[float] = 0.0,
    rest: float | Sequence[float] = 0.0,
) -> dict[str, Any]:
    """Limits, damping, friction, stiffness and rest of a closure's freedoms, each for each; {} where there are none."""
    given = {"damping": damping, "friction": friction, "stiffness": stiffness, "rest": rest}
    if limits is None and all(np.size(x) == 0 or not np.any(x) for x in given.values()):
        return {}
    joint = closure.joint if isinstance(closure, JointClosure) else None
    if joint is None or not joint.nv:
        raise InputError(
            f"closure {name!r} has no freedoms of its own for a spring, a damper or limits",
            got=closure.kind,
            allowed="a closure by what a joint leaves free, e.g. joint=lw.Revolute(…)",
        )
    springs, relaxed = checked_springs(stiffness, rest, joint, name)
    return {
        "limits": checked_limits(limits, joint, name),
        "damping": per_freedom(damping, joint.nv, f"the damping of closure {name!r}"),
        "friction": per_freedom(friction, joint.nv, f"the friction of closure {name!r}"),
        "stiffness": springs,
        "rest": relaxed,
    }


def checked_placement(name: str, side: str, placement: ArrayLike | None) -> Pose:
    """A 4×4 pose from what the user gave for one side of a closure; None is the body's own frame."""
    return checked_pose(np.eye(4) if placement is None else placement, f"placement_{side} of closure {name!r}")


def _place(
    mechanism: Mechanism, name: str, side: str, body: str, placement: ArrayLike | None, node: NodeKey | None
) -> tuple[int, Pose, int]:
    """The moving body and the pose on it, or on a node of it."""
    try:
        frame = mechanism.frame(body, node)
    except UnknownNameError:
        known = ["world", *(b.name for b in mechanism.bodies), *(f.name for f in mechanism.frames)]
        if body in known:  # then it is the node that is unknown
            raise
        raise UnknownNameError(f"body or frame (body_{side} of closure {name!r})", body, known) from None
    flexible = mechanism.bodies[frame.body].flexible if frame.body >= 0 else None
    if flexible is not None and flexible.held and not frame.node:
        raise no_piece(f"closure {name!r}", mechanism.bodies[frame.body])
    whole = np.array(frame.placement) @ np.array(checked_placement(name, side, placement))
    return frame.body, checked_pose(whole, f"placement_{side} of closure {name!r}"), frame.node


def _joint(mechanism: Mechanism, name: str, joint: str) -> int:
    for instance in mechanism.joints:
        if instance.name == joint:
            return int(instance.index)
    raise UnknownNameError(f"moving joint (coupling {name!r})", joint, [j.name for j in mechanism.joints])


def _tried(
    what: str,
    kind: Closure | Relation,
    values: Callable[[Callable[[float], Scalar]], tuple[list[Scalar], list[Scalar]]],
) -> None:
    """Run the residuals once on dual numbers: what cannot be differentiated, or does not fit, is found here."""
    level = new_level()
    # A number outside the domain of a user's function (a logarithm, a root) says nothing against the function.
    with suppress(ValueError, ZeroDivisionError, OverflowError):
        try:
            places, rates = values(lambda x: Dual(x, 1.0, level))
        except InputError as error:
            raise ModelError(f"{what}: {error.what}", **error.parts) from error
        for found, names in ((places, kind.equations), (rates, kind.rate_equations)):
            if len(found) != len(names):
                raise ModelError(f"{what} returned the wrong number of values", got=len(found), allowed=len(names))


def _closure_values(closure: Closure, new: Number) -> Values:
    # A turn by 0.4 rad about y and a shift in general position.
    c, s = 0.921060994002885, 0.389418342308651
    X = RelativePose(
        Mat3([[new(x) for x in row] for row in ((c, 0.0, s), (0.0, 1.0, 0.0), (-s, 0.0, c))]),
        Vec(new(0.3), new(0.2), new(0.1)),
    )
    V = Motion.of([new(0.1 * i) for i in range(6)])
    return closure.residual(X, new(0.0)), closure.rate_residual(X, V, new(0.0))


def _relation_values(relation: Relation, nq: int, nv: int, new: Number) -> Values:
    q, v = [new(0.1 * (i + 1)) for i in range(nq)], [new(0.1 * (i + 1)) for i in range(nv)]
    return relation.residual(q, new(0.0)), relation.rate_residual(q, v, new(0.0))
