"""Whether a joint type's methods agree with each other: for authors of new ones.

The transform is taken at its word; all else is compared with it, by differences, at random coordinates.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from linkwise.array_types import FloatArray
from linkwise.errors import InputError, ModelError
from linkwise.joints import Joint
from linkwise.spatial.inertia import RigidInertia
from linkwise.spatial.matrices import Sym3
from linkwise.spatial.runge_kutta import RK4
from linkwise.spatial.transforms import Shift, Transform, Turn
from linkwise.spatial.vectors import Vec

_STATES = 4
_STEP = 1e-3  # of a difference, whose error is of order _STEP⁴
_TOLERANCE = 1e-7  # relative to one, or to the numbers compared where they are larger


def check_joint(joint: Joint, seed: int = 0) -> None:
    """Check a joint of your own: raise a ModelError that lists, with numbers, all that does not fit together.

    It compares the sizes of everything; the rotation of ``transform`` with a proper one; ``subspace`` with how
    ``transform`` moves along ``rate``; ``subspace_rate`` with how ``subspace`` does; ``integrate`` with ``rate``,
    followed for a while; ``difference`` with ``integrate``; the parts of ``split`` with the whole, and what the joint
    feels of the part it gives away; ``random`` with the limits it is given; and what the class declares (``symmetry``,
    ``fixed_axes``, ``quasi_velocities``) with what it does.

    Args:
        joint: an instance, with typical constants.
        seed: of the random coordinates at which it is checked.
    """
    if not isinstance(joint, Joint):
        raise InputError("check_joint takes a joint", got=repr(joint), allowed="an instance, e.g. lw.Revolute()")
    found = list(_Check(joint, np.random.default_rng(seed)).findings())
    if found:
        raise ModelError(
            f"the joint {joint!r} is inconsistent",
            got="\n".join(dict.fromkeys(found)),
            do="see docs/extending/joint.md for what each method returns",
        )


class _Check:
    def __init__(self, joint: Joint, rng: np.random.Generator) -> None:
        self.joint, self.rng = joint, rng

    def findings(self) -> Iterator[str]:
        """Findings, one line each; sizes first, since nothing else can be said where they are wrong."""
        sizes = list(self._sizes())
        yield from sizes
        if sizes:
            return
        yield from self._drawn()
        for _ in range(_STATES):
            q = self._random()
            here = [*self._moves(q), *self._integrates(q), *self._splits(q), *self._declared(q)]
            if here:
                yield f"at q = {_shown(np.array(q))}:"
                yield from here
                return  # one place tells it all

    def _sizes(self) -> Iterator[str]:
        joint, nq, nv = self.joint, self.joint.nq, self.joint.nv
        q, v = list(joint.neutral()), [0.1] * nv
        infinite = [-math.inf] * nq, [math.inf] * nq
        if len(q) != nq:
            yield f"neutral has {len(q)} numbers, nq is {nq}"
            return
        for what, got, expected in (
            ("random", joint.random(np.random.default_rng(0), *infinite), nq),
            ("subspace", joint.subspace(q), nv),
            ("rate", joint.rate(q, v), nq),
            ("integrate", joint.integrate(q, v), nq),
            ("difference", joint.difference(q, q), nv),
        ):
            if len(got) != expected:
                yield f"{what} gives {len(got)}, not {'nq' if expected == nq else 'nv'} = {expected}"

    def _drawn(self) -> Iterator[str]:
        """Random coordinates keep to limits, where the joint has a coordinate for each freedom."""
        if self.joint.nq != self.joint.nv:
            return
        n = self.joint.nq
        for lower, upper in ((2.0, math.inf), (-math.inf, -2.0), (4.0, 4.0), (-0.1, 0.3)):
            q = np.array(self.joint.random(self.rng, [lower] * n, [upper] * n))
            if not ((q >= lower).all() and (q <= upper).all()):
                yield f"random leaves the limits {lower} to {upper}: {q.tolist()}"

    def _moves(self, q: list[float]) -> Iterator[str]:
        """The transform is a proper rotation and a shift, and moves with S v."""
        joint = self.joint
        R, _ = _pose(joint.transform(q))
        error = float(np.abs(R @ R.T - np.eye(3)).max())
        if error > 1e-12 or np.linalg.det(R) < 0:
            yield f"transform is not a rotation: |R Rᵀ - 1| = {error:.1e}, det R = {np.linalg.det(R):.3g}"
            return
        for j in range(joint.nv):
            v = [1.0 if i == j else 0.0 for i in range(joint.nv)]
            moved = self._along(q, v, lambda x: np.vstack([_pose(joint.transform(x))[0], _pose(joint.transform(x))[1]]))
            turning = R.T @ moved[:3]
            twist = np.r_[turning[2, 1], turning[0, 2], turning[1, 0], R.T @ moved[3]]
            yield from _differ(f"column {j} of subspace", list(joint.subspace(q)[j]), "how transform moves", twist)
        v = self.rng.normal(size=joint.nv).tolist()
        slope = self._along(q, v, lambda x: self._map(x) @ np.array(v)) if joint.nv else np.zeros(6)
        yield from _differ("subspace_rate", list(joint.subspace_rate(q, v)), "how subspace moves", slope)

    def _integrates(self, q: list[float]) -> Iterator[str]:
        """Findings where ``integrate`` does not follow the rate, or ``difference`` does not lead back."""
        joint = self.joint
        dv = (0.4 * self.rng.normal(size=joint.nv)).tolist()
        reached = joint.integrate(q, dv)
        followed = np.array(q, float)
        for _ in range(64):
            followed = RK4.step(lambda x: np.array(joint.rate(x.tolist(), dv), float), followed, 1 / 64)
        place = _flat(joint.transform(reached))
        yield from _differ(
            "transform after integrate", place, "following rate", _flat(joint.transform(followed.tolist()))
        )
        yield from _differ("difference to where integrate leads", joint.difference(q, reached), "dv", dv)
        other = self._random()
        back = _flat(joint.transform(joint.integrate(q, joint.difference(q, other))))
        yield from _differ("transform after integrating a difference", back, "its end", _flat(joint.transform(other)))

    def _splits(self, q: list[float]) -> Iterator[str]:
        """The parts make up the whole; the one that is given to the parent rests there, and takes no joint force."""
        points = self.rng.normal(size=(4, 3))
        moments = sum(p @ p * np.eye(3) - np.outer(p, p) for p in points)
        J = Sym3.of(*(float(moments[i][j]) for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))))
        M = RigidInertia(4.0, Vec.of(points.sum(axis=0).tolist()), J)
        kept, shed = self.joint.split(M)
        yield from _differ("the sum of the parts of split", _numbers(kept + shed), "the inertia", _numbers(M))
        for column in self.joint.subspace(q):
            yield from _differ(
                "the momentum of what split sheds, as the joint moves", list(shed @ column), "zero", [0.0] * 6
            )
        here = self.joint.transform(q).congruence(shed)
        start = self.joint.transform(self.joint.neutral()).congruence(shed)
        yield from _differ("what split sheds, in the parent at q", _numbers(here), "at neutral", _numbers(start))

    def _declared(self, q: list[float]) -> Iterator[str]:
        joint, neutral = self.joint, list(self.joint.neutral())
        if joint.fixed_axes:
            yield from _differ("subspace, with fixed_axes = True", self._map(q), "at neutral", self._map(neutral))
        if not joint.quasi_velocities:
            v = self.rng.normal(size=joint.nv).tolist()
            if joint.nq != joint.nv:
                yield f"quasi_velocities is False, but nq = {joint.nq} and nv = {joint.nv}"
            else:
                yield from _differ("rate, with quasi_velocities = False", joint.rate(q, v), "v", v)
                moved = np.add(q, v)
                yield from _differ("integrate, with quasi_velocities = False", joint.integrate(q, v), "q + v", moved)
        elif not all(sorted(column) == [0.0] * 5 + [1.0] for column in self._map(q).T.tolist()):
            columns = self._map(q).T.tolist()
            yield f"subspace, with quasi_velocities = True, has columns that are not coordinate directions: {columns}"
        shift = {"axis": (0.0, 0.0, 0.7), "direction": (0.3, -0.4, 0.7), "none": (0.0, 0.0, 0.0)}[joint.symmetry]
        if joint.symmetry != "none":
            frame = Transform(Shift(Vec(*shift)), Turn.by(2, 0.9))
            one, other = frame.then(joint.transform(q)), joint.transform(q).then(frame)
            yield from _differ(
                f"transform, with symmetry {joint.symmetry!r}", _flat(one), "moved with it", _flat(other)
            )

    def _random(self) -> list[float]:
        n = self.joint.nq
        return list(self.joint.random(self.rng, [-math.inf] * n, [math.inf] * n))

    def _map(self, q: Sequence[float]) -> FloatArray:
        """S, 6 × nv."""
        columns = [list(column) for column in self.joint.subspace(list(q))]
        return np.array(columns, float).reshape(-1, 6).T

    def _along(self, q: list[float], v: list[float], function: Callable[[list[float]], FloatArray]) -> FloatArray:
        """The derivative along q̇ = rate(q, v), by differences of fourth order."""
        rate = np.array(self.joint.rate(q, v), float)

        def slope(h: float) -> FloatArray:
            ahead, behind = ((np.array(q) + s * h * rate).tolist() for s in (1.0, -1.0))
            return (function(ahead) - function(behind)) / (2 * h)

        return (4.0 * slope(_STEP) - slope(2 * _STEP)) / 3.0


def _pose(transform: Transform) -> tuple[FloatArray, FloatArray]:
    R, l = transform.matrix()
    return np.array(R.m, float), np.array(list(l), float)


def _flat(transform: Transform) -> FloatArray:
    return np.concatenate([x.reshape(-1) for x in _pose(transform)])


def _numbers(M: RigidInertia) -> list[float]:
    return [M.m, *M.h, *M.J.six()]


def _differ(what: str, ours: object, other: str, expected: object) -> Iterator[str]:
    a, b = np.array(ours, float).reshape(-1), np.array(expected, float).reshape(-1)
    error = np.abs(a - b) - _TOLERANCE * np.maximum(1.0, np.abs(b))
    if not (error <= 0.0).all():
        yield f"{what} is {_shown(a)}; {other}: {_shown(b)}"


def _shown(numbers: FloatArray) -> str:
    return "(" + ", ".join(f"{x:.6g}" for x in numbers) + ")"
