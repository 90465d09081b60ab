"""Comparison of two models: whether they describe the same mechanism.

Names do not matter, and neither do the frames in which the numbers are written: axes, mass centres and inertias are
compared in the world, with all joints at zero, closures by what they allow, then equipment, and the equations of motion
at random states.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from linkwise.array_types import FloatArray
from linkwise.dataclass import dataclass, field
from linkwise.files.compare_closures import compare_closures
from linkwise.files.compare_equipment import compare_equipment
from linkwise.files.correspondence import Correspondence, shown
from linkwise.mechanism.bodies_and_joints import JointInstance
from linkwise.model.model import Model

Note = Callable[[str], None]
_NO_LIMIT = 1e30  # what formats write that ask for a number


@dataclass
class Comparison:
    """Comparison of two models: their differences.

    Args:
        differences: what differs, in words; empty where they are the same mechanism.
        renamed: joints that have other names in the second model.
        largest: the largest relative difference of the equations of motion over all states; None where they could not
            be compared.
    """

    differences: list[str] = field(default_factory=list)
    renamed: dict[str, str] = field(default_factory=dict)
    largest: float | None = None

    @property
    def same(self) -> bool:
        """Whether nothing differs but names."""
        return not self.differences


def compare(a: Model, b: Model, *, states: int = 20, tolerance: float = 1e-6, seed: int = 0) -> Comparison:
    """Compare two models.

    >>> from linkwise.samples import planar_arm
    >>> compare(planar_arm(2), planar_arm(2).with_body("link2", mass=3.0)).differences[0]
    "the mass of 'link2' is 0.2 kg and 3 kg"

    Args:
        a: one model.
        b: the other.
        states: random states at which the equations of motion are compared.
        tolerance: relative differences below this do not count.
        seed: of the random states.
    """
    found = Comparison()
    note = found.differences.append
    pairs = _matched(a, b)
    if pairs is None:
        note(f"the trees are different: {_outline(a)} and {_outline(b)}")
        return found
    found.renamed = {x.name: y.name for x, y in pairs if x.name != y.name}
    if not np.allclose(a.gravity, b.gravity, rtol=tolerance, atol=tolerance):
        note(f"gravity is {a.gravity} and {b.gravity}")
    bodies = Correspondence(a, b, pairs)
    _compare_bodies(bodies, pairs, tolerance, note)
    for x, y in pairs:
        _compare_joints(x, y, tolerance, note)
    if all(type(x.type) is type(y.type) for x, y in pairs):
        compare_closures(bodies, tolerance, seed, note)
        compare_equipment(bodies, tolerance, note)
    if a.nv and (a.nq, a.nv) == (b.nq, b.nv) and all(x.nv == y.nv for x, y in pairs) and not a._is_flexible:
        found.largest = _equations(a, b, pairs, states, seed)
        if not found.largest <= tolerance and not found.differences:
            note(f"the equations of motion differ by {found.largest:.2g} of their size")
    return found


def _outline(model: Model) -> str:
    return (
        f"{len(model.bodies)} bodies, nv = {model.nv} ({', '.join(type(j.type).__name__ for j in model.joints[:8])}…)"
    )


def _matched(a: Model, b: Model) -> list[tuple[JointInstance, JointInstance]] | None:
    """Joints of a with those of b that they correspond to: by their names, or by the shape of the trees."""
    if len(a.joints) != len(b.joints):
        return None
    theirs = {joint.name: joint for joint in b.joints}
    if all(joint.name in theirs for joint in a.joints):
        pairs = [(joint, theirs[joint.name]) for joint in a.joints]
        carried = {x.index: y.index for x, y in pairs} | {-1: -1}
        if all(carried[a.parents[x.index]] == b.parents[y.index] for x, y in pairs):
            return pairs
    signs_a, signs_b = _signatures(a), _signatures(b)
    children_a, children_b = _children(a), _children(b)
    pairs = []
    stack = [(-1, -1)]
    while stack:
        at_a, at_b = stack.pop()
        left = list(children_b[at_b])
        if len(left) != len(children_a[at_a]):
            return None
        for k in children_a[at_a]:
            fit = next((n for n in left if signs_a[k] == signs_b[n]), None)
            if fit is None:
                return None
            left.remove(fit)
            pairs.append((a.joints[k], b.joints[fit]))
            stack.append((k, fit))
    return sorted(pairs, key=lambda pair: int(pair[0].index))


def _children(model: Model) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {k: [] for k in range(-1, len(model.bodies))}
    for k, parent in enumerate(model.parents):
        found[parent].append(k)
    return found


def _signatures(model: Model) -> dict[int, int]:
    """For each body the types of joints from there outwards."""
    children = _children(model)
    found: dict[int, int] = {}
    for k in reversed(range(len(model.bodies))):
        found[k] = hash((type(model.joints[k].type).__name__, tuple(sorted(found[n] for n in children[k]))))
    return found


def _compare_bodies(
    both: Correspondence,
    pairs: Sequence[tuple[JointInstance, JointInstance]],
    tolerance: float,
    note: Note,
) -> None:
    a, b, size = both.a, both.b, both.size
    where_a, where_b = both.poses
    for x, y in pairs:
        name = a.bodies[x.index].name
        (m, c, J), (n, d, K) = (
            _inertia(model, k, X[k]) for model, k, X in ((a, x.index, where_a), (b, y.index, where_b))
        )
        if abs(m - n) > tolerance * max(m, n):
            note(f"the mass of {name!r} is {m:.6g} kg and {n:.6g} kg")
        elif m and np.abs(c - d).max() > tolerance * size:
            note(f"the mass centre of {name!r} is at {shown(c)} and {shown(d)} (in the world, joints at zero)")
        elif np.abs(J - K).max() > tolerance * max(np.abs(J).max(), np.abs(K).max()):
            note(f"the inertia of {name!r} about its mass centre differs by {np.abs(J - K).max():.3g} kg m²")
        if type(x.type) is not type(y.type):
            note(f"joint {x.name!r} is {type(x.type).__name__} and {type(y.type).__name__}")
            continue
        _compare_axes(a, b, x, y, where_a[x.index], where_b[y.index], size, tolerance, note)


def _compare_axes(
    a: Model,
    b: Model,
    x: JointInstance,
    y: JointInstance,
    A: FloatArray,
    B: FloatArray,
    size: float,
    tolerance: float,
    note: Note,
) -> None:
    frames = [X @ np.array(m.bodies[j.index].joint_frame) for m, j, X in ((a, x, A), (b, y, B))]
    for name in ("axis", "axis1", "axis2"):
        axes = [getattr(joint.type, name, None) for joint in (x, y)]
        if axes[0] is None or axes[1] is None:
            continue
        u, w = (X[:3, :3] @ np.array(axis) for X, axis in zip(frames, axes, strict=True))
        if np.abs(u - w).max() > max(tolerance, 1e-9):
            note(f"the {name} of joint {x.name!r} points along {shown(u)} and {shown(w)} in the world")
            return
    apart = frames[1][:3, 3] - frames[0][:3, 3]
    axis = getattr(x.type, "axis", None)
    if axis is not None:
        u = frames[0][:3, :3] @ np.array(axis)
        apart = np.zeros(3) if x.type.symmetry == "direction" else apart - (apart @ u) * u
    if np.abs(apart).max() > tolerance * size:
        note(f"joint {x.name!r} is in another place, {np.linalg.norm(apart):.3g} m away")
    pitches = [getattr(joint.type, "pitch", 0.0) for joint in (x, y)]
    if abs(pitches[0] - pitches[1]) > tolerance * max(map(abs, pitches)):
        note(f"the pitch of joint {x.name!r} is {pitches[0]:.6g} and {pitches[1]:.6g} m/rad")


def _compare_joints(x: JointInstance, y: JointInstance, tolerance: float, note: Note) -> None:
    for what in ("armature", "damping", "friction", "stiffness"):
        values = [np.array(getattr(joint, what) or (0.0,) * joint.nv) for joint in (x, y)]
        if values[0].shape != values[1].shape or not np.allclose(values[0], values[1], rtol=tolerance, atol=0.0):
            note(f"the {what} of joint {x.name!r} is {shown(values[0])} and {shown(values[1])}")
    if (x.mimic is None) != (y.mimic is None):
        note(f"joint {(x if x.mimic else y).name!r} follows another in one of them")
    elif x.mimic is not None and y.mimic is not None:
        laws = [(joint.multiplier, joint.offset) for joint in (x.mimic, y.mimic)]
        if not np.allclose(laws[0], laws[1], rtol=tolerance, atol=tolerance):
            note(f"joint {x.name!r} follows by {laws[0]} and {laws[1]} (multiplier, offset)")
    none = (np.inf,) * x.nv
    for what, otherwise in (("lower", -np.inf), ("upper", np.inf), ("velocity", np.inf), ("effort", np.inf)):
        limits = [
            np.array([getattr(each, what) for each in joint.limits] or np.multiply(np.sign(otherwise), none))
            for joint in (x, y)
        ]
        limits = [np.where(np.abs(each) >= _NO_LIMIT, otherwise, each) for each in limits]
        if limits[0].shape == limits[1].shape and not np.allclose(limits[0], limits[1], rtol=tolerance, atol=tolerance):
            note(f"the {what} limit of joint {x.name!r} is {shown(limits[0])} and {shown(limits[1])}")


def _inertia(model: Model, k: int, X: FloatArray) -> tuple[float, FloatArray, FloatArray]:
    """Mass, mass centre and inertia about it, of a body in the world."""
    body, R = model.bodies[k], X[:3, :3]
    return body.mass, R @ np.nan_to_num(body.com) + X[:3, 3], R @ body.inertia @ R.T


def _equations(
    a: Model, b: Model, pairs: Sequence[tuple[JointInstance, JointInstance]], states: int, seed: int
) -> float:
    """The largest difference of M and of the bias forces, relative to their sizes."""
    rng = np.random.default_rng(seed)
    q = np.array([a.random_configuration(rng) for _ in range(states)])
    v = rng.normal(size=(states, a.nv))
    q_b, v_b = np.zeros_like(q), np.zeros_like(v)
    rows = np.zeros(a.nv, int)
    for x, y in pairs:
        if x.mimic is None and y.mimic is None:
            q_b[:, y.q_slice], v_b[:, y.v_slice] = q[:, x.q_slice], v[:, x.v_slice]
            rows[x.v_slice] = np.arange(a.nv)[y.v_slice]
    M, N = a.mass_matrix(q), b.mass_matrix(q_b)[:, rows][:, :, rows]
    f, g = a.bias_force(q, v), b.bias_force(q_b, v_b)[:, rows]
    sizes = [np.abs(each).max() or 1.0 for each in (M, f)]
    return float(max(np.abs(M - N).max() / sizes[0], np.abs(f - g).max() / sizes[1]))
