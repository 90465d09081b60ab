"""Sweeps over the contacts of a pile, compiled: each in turn obeys its laws, all others as they are (Gauss–Seidel).

A contact gets the impulse that makes it stick, if the cone holds it; else first the normal's, then the tangents',
projected onto the disk of μ times it. Where nothing changes any more all laws hold exactly. A sweep upwards is followed
by one downwards. The table of contacts is data, so one compiled program serves every pile.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from linkwise.array_types import Array
from linkwise.contact.elimination import eliminated
from linkwise.sim.piles.rows import Rows
from linkwise.sim.work import program
from linkwise.spatial.scalar import Scalar, maximum, sqrt, where
from linkwise.targets.llvm.program_kernel import ProgramKernel
from linkwise.trace.block import ArraySpec, Block
from linkwise.trace.program import Call, Copy, For, Program, Stretch, input_buffer, output_buffer

PASSES = 25
"""Pairs of sweeps, up and down, in one call."""

_SIZES = {"va": 6, "vb": 6, "row": 57, "impulse": 3}
"""Numbers of a contact: velocities [ω, u] of its bodies, its row (see :func:`_numbers`), its impulse."""


def swept(rows: Rows, velocity: Array, impulse: Array) -> tuple[Array, Array]:
    """Velocities [ω, u] of all bodies (n, 6) and impulses (m, 3) after some passes from these."""
    order = np.argsort(rows.height, kind="stable")
    known = np.concatenate([velocity, np.zeros((1, 6))])
    numbers = _numbers(rows)
    kernel = ProgramKernel.build(_program(rows.body[order], order, len(known), len(impulse)), single=True)
    out = [np.empty((1, known.size)), np.empty((1, impulse.size))]
    kernel.evaluate([known.reshape(1, -1), numbers.reshape(1, -1), impulse.reshape(1, -1)], out, 1)
    return out[0].reshape(-1, 6)[:-1], out[1].reshape(-1, 3)


def _numbers(rows: Rows) -> Array:
    """For each contact (m, 57): rows of the first body, of the second, then the Delassus matrix, bias, and μ.

    Rows are given as moments, since both bodies have the same directions; what an impulse does to a body's spin, too.
    """
    gained = np.einsum("msij,mskj->mski", rows.inverse_inertia[rows.body], rows.arms)
    masses = rows.inverse_mass[rows.body]
    parts = [rows.frame.reshape(-1, 9), rows.arms.reshape(-1, 18), gained.reshape(-1, 18), masses]
    return np.ascontiguousarray(
        np.hstack([*parts, rows.own[:, _UPPER[0], _UPPER[1]], rows.bias, rows.friction[:, None]])
    )


_UPPER = ([0, 0, 0, 1, 1, 2], [0, 1, 2, 1, 2, 2])


def _program(body: Array, order: Array, bodies: int, contacts: int) -> Program:
    width = _SIZES["row"]
    table = np.stack([6 * body[:, 0], 6 * body[:, 1], width * order, 3 * order], axis=1).astype(np.int64)
    sizes = {"velocity": 6 * bodies, "row": width * contacts, "impulse": 3 * contacts}
    specs = {name: ArraySpec(name, (size,)) for name, size in sizes.items()}
    a, b, impulse = (
        Stretch(f"out:{name}", column) for name, column in (("velocity", 0), ("velocity", 1), ("impulse", 3))
    )
    turn = (Call(_turn(), (a, b, Stretch("in:row", 2), impulse), (a, b, impulse)),)
    both = (For("contacts", turn), For("contacts", turn, reverse=True))
    return Program(
        "sweeps",
        (*map(input_buffer, specs.values()), output_buffer(specs["velocity"]), output_buffer(specs["impulse"])),
        (*(Copy(f"in:{name}", f"out:{name}") for name in ("velocity", "impulse")), For(PASSES, both)),
        rows=table,
        ranges=(("contacts", 0, len(table)),),
    )


@cache
def _turn() -> Block:
    def text(va: list[Scalar], vb: list[Scalar], row: list[Scalar], old: list[Scalar]) -> dict[str, Any]:
        frame, a, b, more_a, more_b = (_three(row[9 * k : 9 * k + 9]) for k in range(5))
        xx, xy, xz, yy, yz, zz = row[47:53]
        W = [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]
        w = [
            bias + _dot(d, va[3:]) - _dot(d, vb[3:]) + _dot(x, va) - _dot(y, vb)
            for bias, d, x, y in zip(row[53:56], frame, a, b, strict=True)
        ]
        new = _impulse(W, w, old, row[-1])
        more = [x - y for x, y in zip(new, old, strict=True)]
        made = []
        for v, sign, gained, mass in ((va, 1.0, more_a, row[45]), (vb, -1.0, more_b, row[46])):
            change = [*_combined(gained, more), *(mass * x for x in _combined(frame, more))]
            made.append([x + sign * y for x, y in zip(v, change, strict=True)])
        return {"a": made[0], "b": made[1], "new": new}

    made = program("turn", text, _SIZES)
    assert isinstance(made, Block)
    return made


def _impulse(W: list[list[Scalar]], w: Sequence[Scalar], old: Sequence[Scalar], mu: Scalar) -> list[Scalar]:
    """The impulse that obeys the laws, for a contact that would move with w after the old one."""
    stuck = [x - y for x, y in zip(old, eliminated(W, w), strict=True)]
    normal = maximum(old[0] - w[0] / W[0][0], 0.0)
    more = normal - old[0]
    # No less than what the tangents' block can do, so that steps on the disk come to rest.
    yy, yz, zz = W[1][1], W[1][2], W[2][2]
    slope = 0.5 * (yy + zz) + sqrt(0.25 * (yy - zz) * (yy - zz) + yz * yz)
    slip = [old[k] - (w[k] + W[k][0] * more) / slope for k in (1, 2)]
    radius, square = mu * normal, slip[0] * slip[0] + slip[1] * slip[1]
    out = square > radius * radius
    scale = where(out, radius / sqrt(where(out, square, 1.0)), 1.0)
    slid = [normal, *(scale * x for x in slip)]
    reach = mu * stuck[0]
    sticks = (stuck[0] >= 0.0) & (stuck[1] * stuck[1] + stuck[2] * stuck[2] <= reach * reach)
    return [where(sticks, x, y) for x, y in zip(stuck, slid, strict=True)]


def _three(numbers: Sequence[Scalar]) -> list[list[Scalar]]:
    return [list(numbers[3 * k : 3 * k + 3]) for k in range(3)]


def _dot(a: Sequence[Scalar], b: Sequence[Scalar]) -> Scalar:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def _combined(rows: list[list[Scalar]], factors: Sequence[Scalar]) -> list[Scalar]:
    return [sum((rows[k][i] * factors[k] for k in range(3)), 0.0) for i in range(3)]
