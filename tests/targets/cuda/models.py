"""A mechanism with every kind of joint, and programs of single operations."""

from __future__ import annotations

import numpy as np

import linkwise as lw
from linkwise.trace.block import ArraySpec, Block


def every_joint() -> lw.Model:
    """Free base, then a chain and a branch: quaternions, angles, lengths."""
    rng = np.random.default_rng(7)
    builder = lw.ModelBuilder("every joint")
    joints = [
        lw.Free(), lw.Revolute(axis=(0, 0, 1)), lw.Prismatic(axis=(1, 0, 0)), lw.Spherical(), lw.Universal(),
        lw.Cylindrical(axis=(0, 1, 0)), lw.Planar(), lw.Helical(axis=(0, 0, 1), pitch=0.1), lw.Revolute(axis=(1, 2, 3)),
    ]  # fmt: skip
    for k, joint in enumerate(joints):
        parent = "world" if k == 0 else f"body{(k - 1) // 2 if k > 5 else k - 1}"
        spread = rng.normal(size=(3, 3))
        builder.add_body(
            f"body{k}", parent=parent, joint=joint,
            placement=lw.transform(xyz=rng.normal(size=3), rpy=rng.normal(size=3)),
            mass=rng.uniform(0.5, 2), com=0.1 * rng.normal(size=3), inertia=0.1 * np.eye(3) + 0.01 * spread @ spread.T,
        )  # fmt: skip
    return builder.build()


def branches() -> lw.Model:
    """A tree of three kinds of joints, several links of each, run as loops."""
    rng = np.random.default_rng(8)
    builder = lw.ModelBuilder("branches")
    joints = (lw.Revolute(axis=(1, 2, 3)), lw.Prismatic(axis=(1, 0, 0)), lw.Spherical())
    for k, parent in enumerate((-1, 0, 1, 2, 1, 4, 5, 0, 7, 8, 9)):
        builder.add_body(
            f"body{k}", parent="world" if parent < 0 else f"body{parent}", joint=joints[k % 3],
            placement=lw.transform(xyz=rng.normal(size=3), rpy=rng.normal(size=3)),
            mass=rng.uniform(0.5, 2), com=0.1 * rng.normal(size=3), inertia=np.diag((0.1, 0.12, 0.05)),
        )  # fmt: skip
    return builder.build().with_sweeps("rolled")


def flexible_arm() -> lw.Model:
    """Two links that bend both ways, one on the other's tip, with a load."""
    beam = lw.FlexibleBody.beam(1.0, 4e4, (30.0, 20.0), 10.0, 0.5, elements=4, modes=(1, 1), axial_modes=0)
    builder = lw.ModelBuilder("flexible arm")
    builder.add_body("one", joint=lw.Revolute(axis=(0, 0, 1)), flexible=beam)
    place = lw.transform(xyz=(0.1, 0.0, 0.05), rpy=(0.1, 0.2, 0.3))
    builder.add_body("two", parent="one", at="tip", joint=lw.Revolute(axis=(0, 1, 0)), placement=place, flexible=beam)
    builder.add_body("load", parent="two", at="tip", mass=0.5, com=(0.1, 0.0, 0.0), inertia=0.01 * np.eye(3))
    return builder.build()


def random_state(model: lw.Model, count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    q = np.array([model.random_configuration(rng) for _ in range(count)]).reshape(count, model.nq)
    return q, rng.normal(size=(count, model.nv)), rng.normal(size=(count, model.nv))


def unary(op: str) -> Block:
    return Block(op, (("input", 0, 0), (op, 0)), (ArraySpec("x", (1,)),), (ArraySpec("y", (1,)),), ((1,),))


def binary(op: str) -> Block:
    nodes = (("input", 0, 0), ("input", 1, 0), (op, 0, 1))
    return Block(op, nodes, (ArraySpec("a", (1,)), ArraySpec("b", (1,))), (ArraySpec("y", (1,)),), ((2,),))


def sum_of_squares(size: int, outputs: int) -> Block:
    """Arrays of any size: output k is x_k² + sin(x_0), round and round."""
    nodes: list[tuple] = [("input", 0, k) for k in range(size)] + [("sin", 0)]
    results = []
    for k in range(outputs):
        nodes += [("mul", k % size, k % size), ("add", len(nodes), size)]
        results.append(len(nodes) - 1)
    return Block("squares", tuple(nodes), (ArraySpec("x", (size,)),), (ArraySpec("y", (outputs,)),), (tuple(results),))


def ulps(got: np.ndarray, exact: list, dtype: type) -> np.ndarray:
    """Errors in units of the last place of the exact values, which have more digits than the dtype."""
    values = np.array([float(x) for x in exact])
    unit = np.spacing(np.abs(values).astype(dtype)).astype(float)
    return np.array([abs(float(x - type(x)(float(g)))) for x, g in zip(exact, got, strict=True)]) / unit
