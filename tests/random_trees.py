"""Random mechanisms and states, for property tests: every joint type, branching, mimics, welds, rotor inertias.

Half of the numbers are drawn from what people write (coordinate axes, quarter turns, zeros), since that is where
code that leaves out structural zeros could go wrong; the other half is generic.

    model = random_tree(rng, 6)                                    # all types
    model = random_tree(rng, 6, types=("revolute", "prismatic"))   # some
    q, v, vdot = random_state(model, rng, batch=(4,))
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import linkwise as lw

Rng = np.random.Generator

SINGLE = ("revolute", "prismatic", "helical")
"""Types with one freedom: those that may follow another joint."""
BUILT_IN = (*SINGLE, "cylindrical", "universal", "planar", "spherical", "free")
"""Types with their own file, less the weld."""
CUSTOM = ("rolling", "arm")
"""User-defined joints, of one and of two freedoms."""
ALL = (*BUILT_IN, *CUSTOM, "fixed")


def random_tree(
    rng: Rng | int,
    n: int,
    types: Sequence[str] = ALL,
    *,
    branching: float = 0.4,
    mimic: float = 0.0,
    floating: bool = False,
    armature: float = 0.5,
    structured: float = 0.5,
    almost: float = 0.1,
    joint_frames: float = 0.0,
    gravity: Sequence[float] | None = None,
    name: str = "random",
) -> lw.Model:
    """A mechanism of ``n`` bodies (welded ones counted) with joints of the given types.

    Args:
        rng: generator or seed; the same seed gives the same mechanism.
        n: number of bodies added.
        types: joint types to draw from, any of ``ALL``. The first body never is welded to the world.
        branching: chance that a body hangs on any earlier one (or the world) instead of on the last.
        mimic: chance that a joint with one freedom follows an earlier one.
        floating: make the first body free, without rotors, and hang all others on it: nothing else touches the world.
        armature: chance that a joint has rotor inertia.
        structured: chance of each constant being a special one: a coordinate axis, a quarter turn, no shift.
        almost: chance of a placement being off by a turn between 1e-16 and 1e-2 rad: axes that are nearly parallel.
        joint_frames: chance that a joint's frame is not its body's.
        gravity: three numbers; random if not given.
        name: of the model.
    """
    rng = np.random.default_rng(rng)
    g = rng.normal(size=3) * 6 if gravity is None else gravity
    builder = lw.ModelBuilder(name, gravity=[float(x) for x in g])
    names: list[str] = []
    leaders: list[str] = []
    for k in range(n):
        kind = str(rng.choice([t for t in types if k or t != "fixed"] or ["revolute"]))
        free_root = floating and k == 0
        kind = "free" if free_root else kind
        parent = "world" if not names else names[-1]
        if names and rng.random() < branching:
            parent = str(rng.choice(names if kind == "fixed" or floating else ["world", *names]))
        joint = random_joint(rng, kind, structured)
        follows = None
        if leaders and kind in (*SINGLE, "rolling") and rng.random() < mimic:
            follows = lw.Mimic(str(rng.choice(leaders)), float(rng.uniform(-2, 2)), float(rng.uniform(-1, 1)))
        builder.add_body(
            f"body{k}",
            parent,
            joint,
            random_placement(rng, structured) @ (small_turn(rng) if rng.random() < almost else np.eye(4)),
            **random_inertia(rng, structured),
            joint_name=f"joint{k}",
            armature=rng.uniform(0.01, 0.5, size=joint.nv) if rng.random() < armature and not free_root else 0.0,
            mimic=follows,
            joint_frame=random_placement(rng, structured) if joint_frames and rng.random() < joint_frames else None,
        )
        names.append(f"body{k}")
        if joint.nv == 1 and joint.nq == 1 and follows is None:
            leaders.append(f"joint{k}")
    builder.add_frame("tool", names[-1], random_placement(rng, 0.0))
    return builder.build()


def random_joint(rng: Rng, kind: str, structured: float = 0.5) -> lw.Joint:
    """A joint of the type ``kind`` with random constants."""
    axis = random_axis(rng, structured)
    if kind == "helical":
        return lw.Helical(float(rng.uniform(-0.5, 0.5)), axis)
    if kind == "universal":
        if rng.random() < structured:
            first, second = rng.permutation(3)[:2]
            return lw.Universal(np.eye(3)[first].tolist(), (-np.eye(3)[second]).tolist())
        return lw.Universal(axis, np.cross(axis, random_axis(rng, 0.0)) + 0.3 * np.array(axis))
    if kind == "rolling":
        return lw.CustomJoint(rolling, n=1, name="rolling")
    if kind == "arm":
        return lw.CustomJoint(arm, n=2, name="arm")
    with_axis = {"revolute": lw.Revolute, "prismatic": lw.Prismatic, "cylindrical": lw.Cylindrical, "planar": lw.Planar}
    if kind in with_axis:
        return with_axis[kind](axis)
    return {"spherical": lw.Spherical, "free": lw.Free, "fixed": lw.Fixed}[kind]()


def rolling(q: Sequence[Any]) -> list[list[Any]]:
    """A wheel of radius 0.3 that rolls along x: turn and shift in one coordinate, not a screw."""
    c, s = lw.math.cos(q[0]), lw.math.sin(q[0])
    return [[c, 0.0, s, 0.3 * q[0]], [0.0, 1.0, 0.0, 0.0], [-s, 0.0, c, 0.3], [0.0, 0.0, 0.0, 1.0]]


def arm(q: Sequence[Any]) -> list[list[Any]]:
    """Turn about z by q0, go out 0.2 + q1² along x, turn about x by q1: S depends on q in all its parts."""
    (c0, s0), (c1, s1) = ((lw.math.cos(x), lw.math.sin(x)) for x in q)
    out = 0.2 + q[1] * q[1]
    return [
        [c0, -s0 * c1, s0 * s1, c0 * out],
        [s0, c0 * c1, -c0 * s1, s0 * out],
        [0.0, s1, c1, 0.0],
        [0.0, 0.0, 0.0, 1.0],
    ]


def random_axis(rng: Rng, structured: float = 0.5) -> list[float]:
    """A direction, of length one."""
    if rng.random() < structured:
        return [float(x) for x in np.eye(3)[rng.integers(3)] * rng.choice([-1.0, 1.0])]
    axis = rng.normal(size=3)
    return [float(x) for x in axis / np.linalg.norm(axis)]


def random_placement(rng: Rng, structured: float = 0.5) -> np.ndarray:
    """A 4×4 pose."""
    xyz, rpy = rng.uniform(-0.5, 0.5, size=3), rng.uniform(-math.pi, math.pi, size=3)
    xyz = np.where(rng.random(3) < structured, 0.0, xyz)
    if rng.random() < structured:
        rpy = rng.integers(-2, 3, size=3) * (math.pi / 2)
    return lw.transform(xyz.tolist(), rpy.tolist())


def small_turn(rng: Rng) -> np.ndarray:
    """A turn by 1e-16 to 1e-2 rad."""
    return lw.transform(rpy=(rng.normal(size=3) * 10.0 ** rng.uniform(-16, -2)).tolist())


def random_inertia(rng: Rng, structured: float = 0.5) -> dict[str, Any]:
    """Mass, mass centre and inertia of a body that could exist: some points of mass."""
    points = rng.normal(size=(5, 3)) * rng.uniform(0.05, 0.3, size=3)
    masses = rng.uniform(0.1, 1.0, size=5)
    mass = float(masses.sum())
    offset = points - masses @ points / mass
    inertia = sum(m * (r @ r * np.eye(3) - np.outer(r, r)) for m, r in zip(masses, offset, strict=True))
    if rng.random() < structured:
        inertia = np.diag(np.diag(inertia))
    com = np.where(rng.random(3) < structured, 0.0, rng.uniform(-0.3, 0.3, size=3))
    return {"mass": mass, "com": com.tolist(), "inertia": inertia}


def random_q(model: lw.Model, rng: Rng, batch: tuple[int, ...] = ()) -> np.ndarray:
    """Configurations (*batch, nq)."""
    rows = [model.random_configuration(rng) for _ in range(math.prod(batch))]
    return np.array(rows, float).reshape(*batch, model.nq)


def random_state(model: lw.Model, rng: Rng, batch: tuple[int, ...] = ()) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """q (*batch, nq), v and v̇ (*batch, nv)."""
    shape = (*batch, model.nv)
    return random_q(model, rng, batch), rng.normal(size=shape), rng.normal(size=shape)
