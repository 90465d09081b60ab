"""Comparison of the closures and couplings of two models, by what they allow and not by how they are written.

Two closures between the same bodies are the same where each holds at all relative poses (and relative motions) that the
other allows: whichever side is called a, along whichever axis a hinge's frames have slid, in whatever order closures
were added. The poses are found by Newton's method from random ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice

import numpy as np

from linkwise.array_types import Array
from linkwise.dataclass import dataclass, field
from linkwise.files.correspondence import Correspondence, shown, two_values
from linkwise.joints.directions import RelativePose
from linkwise.mechanism.closures.instances import ClosureInstance, RelationInstance
from linkwise.mechanism.description import JointLimits
from linkwise.model.model import Model
from linkwise.spatial.vectors import Motion

_SAMPLES = 4
_TIMES = (0.0, 0.37)
_STEP = 1e-6


@dataclass(frozen=True)
class _Condition:
    """Condition of one closure or coupling, as a function of something that it shares with those like it."""

    instance: ClosureInstance | RelationInstance
    key: tuple[str | int, ...]
    """The bodies or joints that it is about, in the numbers of the first model."""
    between: str
    """The same in words."""
    start: Callable[[np.random.Generator], Array]
    """A random place to begin from."""
    size: int
    """Number of ways to move on from a place."""
    moved: Callable[[Array, Array], Array]
    """A place, moved a little."""
    places: Callable[[Array, float], Array]
    """The residuals there."""
    rates: Callable[[Array, Array, float], Array]
    """Those between rates, for a velocity there."""
    frames: dict[int, Array] = field(default_factory=dict)
    """Of a closure, where its frame on each body is, in that body's frame of the first model."""

    @property
    def name(self) -> str:
        return str(self.instance.name)

    @property
    def kind(self) -> str:
        return str(self.instance.type.kind)

    def residual(self, place: Array, velocity: Array, t: float) -> Array:
        """Of places, of their rates, and of equations between rates."""
        ahead, behind = (self.places(self.moved(place, s * velocity), t) for s in (_STEP, -_STEP))
        return np.concatenate([self.places(place, t), (ahead - behind) / (2 * _STEP), self.rates(place, velocity, t)])


def compare_closures(bodies: Correspondence, tolerance: float, seed: int, note: Callable[[str], None]) -> None:
    """Note in a line each how closures and couplings of two models differ."""
    first, second = ([_condition(bodies, m, c) for c in m.closures] for m in (bodies.a, bodies.b))
    limit = max(tolerance * min(1.0, bodies.size), 1e-9)
    left = []
    for c in first:
        same = next((d for d in second if c.key == d.key and _same(c, d, limit, seed)), None)
        if same is None:
            left.append(c)
        else:
            second.remove(same)
            _compare_numbers(c, same, tolerance, note)
    for c in left:
        d = _counterpart(c, second)
        if d is None:
            note(f"{_what(c)} {c.name!r} ({c.kind} {c.between}) is in the first only")
        else:
            second.remove(d)
            note(_difference(bodies, c, d, tolerance))
    for d in second:
        note(f"{_what(d)} {d.name!r} ({d.kind} {d.between}) is in the second only")


def _compare_numbers(c: _Condition, d: _Condition, tolerance: float, note: Callable[[str], None]) -> None:
    """Note what differs of the springs, dampers, friction and limits along two closures that hold the same."""
    x, y = c.instance, d.instance
    if not isinstance(x, ClosureInstance) or not isinstance(y, ClosureInstance) or x.joint is None:
        return
    ranges: tuple[str, ...] = ("rest", "limits") if x.joint == y.joint else ()  # else coordinates may run the other way
    for name in ("damping", "friction", "stiffness", *ranges):
        a, b = (_along(each, name) for each in (x, y))
        if not np.allclose(a, b, rtol=tolerance, atol=0.0):
            note(two_values(f"the {name} along closure {c.name!r}", name, shown(a), shown(b)))


def _along(closure: ClosureInstance, name: str) -> Array:
    """Numbers for each freedom of a closure; those that stand for none where it has none."""
    joint, given = closure.joint, getattr(closure, name)
    assert joint is not None
    if name == "limits":
        return np.array([(each.lower, each.upper) for each in given or [JointLimits()] * joint.nv], float)
    return np.array(given or (0.0,) * joint.nv, float)


def _counterpart(c: _Condition, others: Sequence[_Condition]) -> _Condition | None:
    """The one that was probably meant to be the same."""
    alike = [d for d in others if type(d.instance) is type(c.instance) and (d.key == c.key or d.name == c.name)]
    return max(alike, key=lambda d: (d.key == c.key, d.name == c.name, d.kind == c.kind), default=None)


def _what(c: _Condition) -> str:
    return "closure" if isinstance(c.instance, ClosureInstance) else "coupling"


def _difference(bodies: Correspondence, c: _Condition, d: _Condition, tolerance: float) -> str:
    """The first difference that is found, in words."""
    who = f"{_what(c)} {c.name!r}"
    if c.key != d.key:
        return f"{who} is {c.between} and {d.between}"
    if c.kind != d.kind:
        return f"{who} is {c.kind} and {d.kind}, {c.between}"
    for name in c.instance.type.numbers:
        x, y = (each.instance.type.nominal(name) for each in (c, d))
        if x is None or y is None:
            continue
        ours, theirs = (
            each.instance.joints if isinstance(each.instance, RelationInstance) else None for each in (c, d)
        )
        if ours is not None and tuple(bodies.joint(k, bodies.b) for k in theirs or ()) != tuple(ours):
            break  # numbers of joints in another order: not to be read side by side
        if len(x) != len(y) or not np.allclose(x, y, rtol=tolerance, atol=0.0):
            return two_values(f"the {name} of {who}", name, shown(x), shown(y))
    for k, X in c.frames.items():
        apart, turned = np.linalg.inv(X) @ d.frames[k], bodies.name(k)
        if np.linalg.norm(apart[:3, 3]) > tolerance * bodies.size:
            return f"{who} is in another place on {turned!r}, {np.linalg.norm(apart[:3, 3]):.3g} m away"
        angle = np.arccos(np.clip((np.trace(apart[:3, :3]) - 1.0) / 2.0, -1.0, 1.0))
        if angle > max(tolerance, 1e-7):
            return f"{who} is turned by {angle:.3g} rad on {turned!r}"
    return f"{who} does not hold where that of the other model does"


def _same(c: _Condition, d: _Condition, limit: float, seed: int) -> bool:
    """Whether each holds where the other does, at some random places and velocities."""
    states = [list(_allowed(each, seed)) for each in (c, d)]
    if not all(states):  # none was found: then as they are written
        alike = all(np.allclose(X, d.frames[k], atol=limit) for k, X in c.frames.items())
        return alike and bool(c.instance.type == d.instance.type)
    return all(
        np.abs(other.residual(*state)).max(initial=0.0) <= limit
        for other, own in ((d, states[0]), (c, states[1]))
        for state in own
    ) and _rank(c, *states[0][0]) == _rank(d, *states[1][0])


def _rank(c: _Condition, place: Array, velocity: Array, t: float) -> int:
    """Number of ways to move that it forbids."""
    J = _slopes(lambda w, at: c.residual(place, at + w, t), velocity, c.size)
    return int(np.linalg.matrix_rank(J, tol=1e-6))


def _allowed(c: _Condition, seed: int) -> Iterator[tuple[Array, Array, float]]:
    """Places, velocities and times that obey."""
    rng = np.random.default_rng(seed)
    for t in _TIMES if c.instance.type.time_dependent else _TIMES[:1]:
        tried = (_closed(c, c.start(rng), t) for _ in range(10 * _SAMPLES))
        for place in islice((x for x in tried if x is not None), _SAMPLES):
            yield place, _obeying(c, place, rng.normal(size=c.size), t), t


def _closed(c: _Condition, place: Array, t: float) -> Array | None:
    """A place near this one where it holds, or None."""
    for _ in range(60):
        e = c.places(place, t)
        if np.abs(e).max(initial=0.0) < 1e-12:
            return place
        J = _slopes(lambda w, at: c.places(c.moved(at, w), t), place, c.size)
        step = np.linalg.lstsq(J, -e, rcond=1e-9)[0]
        place = c.moved(place, step / max(1.0, float(np.linalg.norm(step))))
    return None


def _obeying(c: _Condition, place: Array, velocity: Array, t: float) -> Array:
    """The nearest velocity that obeys."""
    for _ in range(20):
        e = c.residual(place, velocity, t)
        J = _slopes(lambda w, at: c.residual(place, at + w, t), velocity, c.size)
        velocity = velocity - np.linalg.lstsq(J, e, rcond=1e-6)[0]
        if np.abs(e).max(initial=0.0) < 1e-10:
            break
    return velocity


def _slopes(function: Callable[[Array, Array], Array], at: Array, size: int) -> Array:
    """The Jacobian of function(w, at) at w = 0, by differences."""
    units = np.eye(size) * _STEP
    return np.stack([(function(u, at) - function(-u, at)) / (2 * _STEP) for u in units], axis=-1)


def _condition(bodies: Correspondence, model: Model, instance: ClosureInstance | RelationInstance) -> _Condition:
    if isinstance(instance, ClosureInstance):
        return _of_closure(bodies, model, instance)
    return _of_relation(bodies, model, instance)


def _of_closure(bodies: Correspondence, model: Model, instance: ClosureInstance) -> _Condition:
    """As a function of the pose of one body in the other, in the frames that the first model gives them."""
    a, P_a = bodies.place(model, instance.body_a, instance.placement_a, instance.node_a)
    b, P_b = bodies.place(model, instance.body_b, instance.placement_b, instance.node_b)
    turned = a > b
    closure = instance.type

    def pose(T: Array) -> RelativePose:
        X = np.linalg.inv(P_a) @ (np.linalg.inv(T) if turned else T) @ P_b
        return RelativePose.from_matrix(X.tolist())

    def start(rng: np.random.Generator) -> Array:
        X = _small(np.concatenate([rng.uniform(-0.7, 0.7, 3), rng.normal(size=3) * bodies.size]))
        T = P_a @ X @ np.linalg.inv(P_b)
        return np.linalg.inv(T) if turned else T

    def rates(T: Array, xi: Array, t: float) -> Array:
        own = -_adjoint(T) @ xi if turned else xi  # of the body of frame b, relative to the other, in its own frame
        V = Motion.of((_adjoint(np.linalg.inv(P_b)) @ own).tolist())
        return np.array(closure.rate_residual(pose(T), V, t), float)

    names = sorted((a, b))
    return _Condition(
        instance,
        ("bodies", *names),
        f"between {bodies.name(names[0])!r} and {bodies.name(names[1])!r}",
        start,
        6,
        lambda T, w: T @ _small(w),
        lambda T, t: np.array(closure.residual(pose(T), t), float),
        rates,
        {a: P_a, b: P_b},
    )


def _of_relation(bodies: Correspondence, model: Model, instance: RelationInstance) -> _Condition:
    """As a function of the coordinates of its joints, in the order of the first model."""
    own = [j.index for j in model.joints if j.mimic is None] if instance.joints is None else list(instance.joints)
    key = sorted(bodies.joint(k, model) for k in own)
    types = [bodies.a.joints[k].type for k in key]
    nq, nv = ([0, *np.cumsum([getattr(kind, n) for kind in types])] for n in ("nq", "nv"))
    order = [key.index(bodies.joint(k, model)) for k in own]
    if instance.joints is None:  # in the order of its own q
        order = [order[i] for i in np.argsort([model.joints[k].q_slice.start for k in own])]

    def parts(x: Array, starts: Sequence[int]) -> list[float]:
        return [float(number) for i in order for number in x[starts[i] : starts[i + 1]]]

    def moved(x: Array, w: Array) -> Array:
        steps = [
            np.array(kind.rate(x[nq[i] : nq[i + 1]].tolist(), w[nv[i] : nv[i + 1]].tolist()), float)
            for i, kind in enumerate(types)
        ]
        return np.concatenate([x + step for x, step in zip(np.split(x, nq[1:-1]), steps, strict=True)])

    def start(rng: np.random.Generator) -> Array:
        whole = bodies.a.random_configuration(rng)
        return np.concatenate([whole[bodies.a.joints[k].q_slice] for k in key])

    return _Condition(
        instance,
        ("joints", *key),
        f"of {', '.join(repr(bodies.a.joints[k].name) for k in key)}",
        start,
        int(nv[-1]),
        moved,
        lambda x, t: np.array(instance.type.residual(parts(x, nq), t), float),
        lambda x, w, t: np.array(instance.type.rate_residual(parts(x, nq), parts(w, nv), t), float),
    )


def _small(w: Array) -> Array:
    """The pose that a turn and a shift amount to."""
    from scipy.spatial.transform import Rotation

    X = np.eye(4)
    X[:3, :3] = Rotation.from_rotvec(w[:3]).as_matrix()
    X[:3, 3] = w[3:]
    return X


def _adjoint(X: Array) -> Array:
    """Twists [ω; v] of the inner frame as those of the outer one."""
    R, (x, y, z) = X[:3, :3], X[:3, 3]
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.block([[R, np.zeros((3, 3))], [cross @ R, R]])
