"""Random mechanisms with random closures that are closed at a random state, and a dense solution to compare with.

A closure is added where it holds: frame a anywhere on one body, frame b wherever the closure's own freedom puts it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cache
from typing import Any

import numpy as np

import linkwise as lw
from linkwise.algorithms.closed_catalogue import EVERY
from linkwise.model.null_space import SolvedByNumbers
from tests.random_trees import random_placement, random_tree

Array = Any
Rng = np.random.Generator


class EagerModel(lw.Model):
    """A model whose functions run their texts on plain floats: nothing is compiled."""

    @classmethod
    def of(cls, model: lw.Model) -> EagerModel:
        return cls(**{f.name: getattr(model, f.name) for f in fields(model)})

    def _run(self, name: str, *required: Any, others: Any = None, **more: Any) -> Any:
        p = {**more, **(others or {})}.get("p")
        given = {n: more[n] for n in EVERY[name].optional if more.get(n) is not None}
        function = self.function(name, *given)
        arrays = [np.asarray(x, float) for x in (*required, *given.values())]
        if self._parameter_names:
            arrays.append(np.asarray(self.parameters.nominal if p is None else p, float))
        if isinstance(function, SolvedByNumbers):
            return function(*arrays)
        (k,) = {a.shape[: a.ndim - len(s)] for a, (_, s) in zip(arrays, function.inputs, strict=True)} - {()} or {()}
        if k:
            wide = [np.broadcast_to(a, (*k, *s)) for a, (_, s) in zip(arrays, function.inputs, strict=True)]
            return np.array([self._run_one(function, [a[i] for a in wide]) for i in range(k[0])])
        return self._run_one(function, arrays)

    @staticmethod
    def _run_one(function: Any, arrays: list[Array]) -> Any:
        result = function.text(*(a.reshape(-1).tolist() for a in arrays))
        if hasattr(result, "_fields"):
            return type(result)._make(np.array(x, float) for x in result)
        return np.array(result, float)


def _turned(rng: Rng, xyz: Any = (0.0, 0.0, 0.0)) -> Array:
    return lw.transform(list(xyz), rng.uniform(-3, 3, 3).tolist())


def _path(t: Any) -> list[Any]:
    return [0.3 * lw.math.sin(2.0 * t), 0.1 * t * t, 0.2 * lw.math.cos(t)]


T = 0.4
"""The time at which the time-dependent ones are closed."""


def _length(t: Any) -> Any:
    return 0.7 + 0.2 * lw.math.sin(t)


def _at(t: float) -> list[float]:
    return [float(x) for x in _path(t)]


BETWEEN: dict[str, Callable[[Rng], tuple[Any, Array]]] = {
    "weld": lambda rng: (lw.Fixed(), np.eye(4)),
    "revolute": lambda rng: (lw.Revolute((0, 1, 0)), lw.transform(rpy=(0, rng.uniform(-3, 3), 0))),
    "spherical": lambda rng: (lw.Spherical(), _turned(rng)),
    "prismatic": lambda rng: (lw.Prismatic((1, 0, 0)), lw.transform(xyz=(rng.normal(), 0, 0))),
    "universal": lambda rng: (lw.Universal((1, 0, 0), (0, 1, 0)), lw.transform(rpy=(rng.uniform(-1, 1), 0, 0))),
    "cylindrical": lambda rng: (lw.Cylindrical((0, 0, 1)), lw.transform((0, 0, rng.normal()), (0, 0, rng.normal()))),
    "planar": lambda rng: (lw.Planar(), lw.transform((rng.normal(), rng.normal(), 0), (0, 0, rng.normal()))),
    "helical": lambda rng: (lw.Helical(0.1), np.eye(4)),
    "distance": lambda rng: (lw.closures.Distance(0.8), _turned(rng, (0.0, 0.48, 0.64))),
    "on_plane": lambda rng: (lw.closures.PointOnPlane((0, 0, 1)), _turned(rng, (rng.normal(), rng.normal(), 0.0))),
    "on_surface": lambda rng: (
        lw.closures.PointOnSurface(lambda x, y, z: (x * x + 2.0 * y * y + z * z - 1.0) / 2.0),
        _turned(rng, (0.0, 0.0, 1.0)),
    ),
    "on_curve": lambda rng: (
        lw.closures.PointOnCurve(lambda x, y, z: z - x * x, lambda x, y, z: y - lw.math.sin(x)),
        _turned(rng, (0.5, np.sin(0.5), 0.25)),
    ),
    "rolling_ball": lambda rng: (lw.closures.Rolling(0.3), _turned(rng, (rng.normal(), rng.normal(), 0.3))),
    "rolling_disc": lambda rng: (
        lw.closures.Rolling(0.3, axis=(0, 1, 0)),
        lw.transform((0.2, 0.1, 0.3 * np.cos(0.2)), (0.2, 0, 0)),
    ),
    "led": lambda rng: (lw.closures.PrescribedFrame(lw.Spherical(), _path), _turned(rng, _at(T))),
    "stretched": lambda rng: (lw.closures.Distance(_length), _turned(rng, (float(_length(T)), 0, 0))),
}
"""Closures between frames, and a pose of b in a at which each holds."""

RELATIONS = ("gear", "function", "whole", "prescribed", "skate")


@dataclass(frozen=True)
class Closed:
    """A model at a state that obeys its closures."""

    model: lw.Model
    q: Array
    v: Array
    tau: Array
    t: float = T

    @property
    def state(self) -> tuple[Array, Array, Array]:
        return self.q, self.v, self.tau


def with_closure(
    model: lw.Model, q: Array, rng: Rng, name: str, kind: str, a: str | None = None, b: str | None = None
) -> lw.Model:
    """One closure more, which holds at q."""
    closure, X = BETWEEN[kind](rng)
    names = [body.name for body in model.bodies]
    if a is None or b is None:
        a, b = (str(x) for x in rng.choice(["world", *names], 2, replace=False))
    placement_a = random_placement(rng, 0.3)
    poses = {"world": np.eye(4), **dict(zip(names, model.poses(q), strict=True))}
    placement_b = np.linalg.inv(poses[b]) @ poses[a] @ placement_a @ X
    return model.with_closure(name, a, placement_a, b, placement_b, joint=closure)


def with_relation(model: lw.Model, q: Array, rng: Rng, name: str, kind: str) -> lw.Model:
    """One relation between joints more, which holds at q."""
    single = [j for j in model.joints if j.nq == 1 and j.nv == 1 and j.mimic is None]
    if kind == "skate":  # a nonholonomic one, not linear in the rates
        return model.with_coupling(name, lambda q, v, t: v[0] - lw.math.sin(q[1]) * v[-1] + 0.1 * v[1] * v[1] - 0.2 * t)
    if kind == "whole" or len(single) < 2:
        c = float(q[0] * q[-1] + np.sin(q[1]))
        return model.with_coupling(name, lambda q: q[0] * q[-1] + lw.math.sin(q[1]) - c)
    first, second = (single[k] for k in rng.choice(len(single), 2, replace=False))
    x, y = (float(q[j.q_slice.start]) for j in (first, second))
    if kind == "gear":
        return model.with_coupling(name, lw.closures.Coupling.gear(first.name, second.name, -2.5, x + 2.5 * y))
    if kind == "prescribed":
        return model.with_coupling(
            name, lw.closures.Prescribed(first.name, lambda t: x + lw.math.sin(t) - float(np.sin(T)))
        )
    k = x * y * y
    return model.with_coupling(name, lambda q: q[0] * q[1] * q[1] - k, joints=[first.name, second.name])


def at_state(model: lw.Model, q: Array, rng: Rng) -> Closed:
    """A random velocity that obeys, random forces."""
    v = rng.normal(size=model.nv)
    for _ in range(20):  # some rate equations are not linear
        before, v = v, model.constraints.project_velocity(q, v, t=T)
        if np.abs(v - before).max() < 1e-14 * np.abs(v).max():
            break
    return Closed(model, q, v, rng.normal(size=model.nv))


def closed_tree(seed: int, kinds: list[str], n: int = 7, *, compiled: bool = False, **options: Any) -> Closed:
    """What :func:`_closed_tree` makes, the same one for all who ask."""
    return _closed_tree(seed, tuple(kinds), n, compiled, **options)


@cache
def _closed_tree(seed: int, kinds: tuple[str, ...], n: int, compiled: bool, **options: Any) -> Closed:
    """A random tree with one closure of each of these kinds, and a state at which they do not contradict each other.

    Its functions run on floats unless they are to be compiled.
    """
    rng = np.random.default_rng(seed)
    model = random_tree(rng, n, **options)
    while model.nv < 8:
        model = random_tree(rng, n, **options)
    model = model if compiled else EagerModel.of(model)
    q = model.random_configuration(rng)
    for i, kind in enumerate(kinds):
        add = with_relation if kind in RELATIONS else with_closure
        model = add(model, q, rng, f"{kind}{i}", kind)
    return at_state(model, q, rng)


def dense_accelerations(case: Closed, f_ext: Array | None = None) -> tuple[Array, Array, float]:
    """v̇ and λ of the dense system by singular values, and the ratio of the least one kept to the largest.

    λ is the one of least λ*Wλ, with W the diagonal of Λ, and 1e-9 of its mean.
    """
    model, q, v = case.model, case.q, case.v
    J, bias = model.constraints.jacobian(q, t=case.t, v=v), model.constraints.bias(q, v, t=case.t)
    M, c = model.mass_matrix(q), model.bias_force(q, v, f_ext)
    free = np.linalg.solve(M, case.tau - c)
    Lambda = J @ np.linalg.solve(M, J.T)
    W = np.diag(Lambda)
    scale = 1.0 / np.sqrt(W + 1e-9 * W.mean())
    U, s, _ = np.linalg.svd(scale[:, None] * Lambda * scale)
    kept = s > 1e-12 * s[0]
    multipliers = scale * (U[:, kept] @ ((U[:, kept].T @ (scale * (-bias - J @ free))) / s[kept]))
    return free + np.linalg.solve(M, J.T @ multipliers), multipliers, float(s[kept][-1] / s[0])
