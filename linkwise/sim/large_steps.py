"""Explicit steps of large mechanisms: the same tableaux, with NumPy for sums and rolled sweeps for the motion.

The loop around them runs on the host. Nothing that is compiled here grows with the number of stages.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.codegen.routine import Host, Statement
from linkwise.sim.large_motion import LargeMotion
from linkwise.sim.limits import is_linear
from linkwise.sim.tableaux import Row, Tableau
from linkwise.sim.tolerance import SPAN
from linkwise.sim.work import Step, Work

Array = NDArray[Any]


def large_runge_kutta(work: Work, tableau: Tableau, large: LargeMotion) -> Step:
    """One step of an explicit method."""
    m = work.motion
    names = [f"k{i}" for i in range(tableau.stages + len(tableau.extra_nodes))]
    sizes = {"y": m.ny, "y_new": m.ny, "y_at": m.ny, "t": 1, "t_new": 1, "h": 1, "p": m.np, "theta": 1, "err": 1}
    sizes |= {"span": len(SPAN), "k_next": m.nz, **dict.fromkeys(names, m.nz)}

    def host(function: Any, inputs: tuple[str, ...], output: str) -> Host:
        for name in (*inputs, output):
            work.buffer(name, sizes[name])
        return Host(lambda *arrays: (function(*arrays),), inputs, (output,))

    def at_origin(y: Array, t: Array, p: Array) -> Array:
        return large.rates(y, large.origin(y), t, p)

    def stage(i: int, node: float, row: Row) -> Host:
        weights = list(row.values())

        def text(y: Array, t: Array, h: Array, p: Array, *k: Array) -> Array:
            return large.rates(y, large.origin(y) + h * _sum(weights, k), t + h * node, p)

        return host(text, ("y", "t", "h", "p", *(names[j] for j in row)), names[i])

    def finish(y: Array, h: Array, *k: Array) -> Array:
        return large.from_chart(y, large.origin(y) + h * _sum(list(tableau.weights.values()), k))

    begin = host(at_origin, ("y", "t", "p"), "k0")
    advance: list[Statement] = [stage(i, tableau.nodes[i], tableau.rows[i]) for i in range(1, tableau.stages)]
    advance.append(host(finish, ("y", "h", *(names[j] for j in tableau.weights)), "y_new"))
    if not tableau.adaptive:
        return Step((begin,), tuple(advance))

    scales = _Scales(large)

    def judge(y: Array, y_new: Array, h: Array, span: Array, *k: Array) -> Array:
        scale = scales(y, y_new, span)
        squares = []
        for row in tableau.error:
            error = _sum(list(row.values()), [k[j] for j in row]) / scale
            squares.append(np.einsum("ni,ni->n", error, error)[:, None])
        if len(squares) == 1:
            return np.asarray(h * np.sqrt(squares[0] / m.nz))
        blend = (squares[0] + 0.01 * squares[1]) * m.nz
        return np.asarray(h * squares[0] / np.sqrt(np.where(blend > 0.0, blend, 1.0)))

    judging = host(judge, ("y", "y_new", "h", "span", *names[: tableau.stages]), "err")
    if tableau.first_same_as_last:
        last = names[tableau.stages - 1]
        carry = host(
            lambda y, k: np.concatenate([y[:, m.nq : m.nq + m.nv], k[:, m.nv :]], axis=1), ("y_new", last), "k_next"
        )
    else:
        carry = host(at_origin, ("y_new", "t_new", "p"), "k_next")
    dense: tuple[Statement, ...] | None = None
    look: tuple[Statement, ...] = ()
    if tableau.dense is not None:
        table = tableau.dense

        def by_powers(y: Array, h: Array, theta: Array, *k: Array) -> Array:
            z = large.origin(y)
            for coefficients, rate in zip(table.values(), k, strict=True):
                weight = np.zeros_like(theta)
                for coefficient in reversed(coefficients):
                    weight = (weight + coefficient) * theta
                z = z + h * weight * rate
            return large.from_chart(y, z)

        dense, look = (), (host(by_powers, ("y", "h", "theta", *(names[j] for j in table)), "y_at"),)
    elif tableau.nested:
        first = tableau.stages
        extra = zip(tableau.extra_nodes, tableau.extra_rows, strict=True)
        dense = tuple(stage(first + n, node, row) for n, (node, row) in enumerate(extra))

        def nested(y: Array, h: Array, theta: Array, *k: Array) -> Array:
            delta = h * _sum(list(tableau.weights.values()), [k[j] for j in tableau.weights])
            f_0, f_1 = h * k[0], h * k[first - 1]
            bends = [delta, f_0 - delta, 2.0 * delta - (f_1 + f_0)]
            bends += [h * _sum(list(row.values()), [k[j] for j in row]) for row in tableau.nested]
            total = np.zeros_like(delta)
            for j in reversed(range(len(bends))):
                total = (total + bends[j]) * (theta if j % 2 == 0 else 1.0 - theta)
            return large.from_chart(y, large.origin(y) + total)

        look = (host(nested, ("y", "h", "theta", *names), "y_at"),)
    return Step((begin,), tuple(advance), (judging,), (carry,), dense, look, tableau.error_order)


def large_semi_implicit_euler(work: Work, large: LargeMotion) -> Step:
    """v first, then q with the new v."""
    m = work.motion
    for name, size in (("y", m.ny), ("y_new", m.ny), ("t", 1), ("h", 1), ("p", m.np)):
        work.buffer(name, size)

    def step(y: Array, t: Array, h: Array, p: Array) -> tuple[Array]:
        vdot, _, xdot, _ = large.acceleration(t, y, p)
        later = y[:, m.nq :] + h * np.concatenate([vdot, xdot], axis=1)
        q = m.model.integrate(y[:, : m.nq], h * later[:, : m.nv])
        return (np.concatenate([q, later], axis=1),)

    return Step((), (Host(step, ("y", "t", "h", "p"), ("y_new",)),))


def _sum(weights: list[float], k: Any) -> Array:
    """Σ w k."""
    total = weights[0] * k[0]
    for weight, rate in zip(weights[1:], k[1:], strict=True):
        total += weight * rate
    return np.asarray(total)


class _Scales:
    """Tolerances (count, nz), as :func:`linkwise.sim.tolerance.scales`."""

    def __init__(self, large: LargeMotion) -> None:
        m = large.motion
        self.nq = m.nq
        linear = [joint for joint in m._own_joints if is_linear(joint.type)]
        self.q = [joint.q_slice.start + k for joint in linear for k in range(joint.nv)]
        self.v = [joint.v_slice.start + k for joint in linear for k in range(joint.nv)]
        self.nv = m.nv

    def __call__(self, y: Array, y_new: Array, span: Array) -> Array:
        size = np.maximum(np.abs(y), np.abs(y_new))
        turns = np.ones((len(y), self.nv))
        turns[:, self.v] = size[:, self.q]
        return np.asarray(span[:, 2:3] + span[:, 1:2] * np.concatenate([turns, size[:, self.nq :]], axis=1))
