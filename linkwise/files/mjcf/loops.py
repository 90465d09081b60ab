"""Equality constraints to closures and couplings.

MuJoCo's are soft: they pull with a spring of their own. Here they hold exactly.
"""

from __future__ import annotations

import numpy as np

from linkwise.array_types import FloatArray
from linkwise.dataclass import dataclass, field
from linkwise.files.description import ClosureWritten, CouplingWritten, JointWritten, PolynomialWritten
from linkwise.files.mjcf.compiled import Compiled, turn
from linkwise.files.mjcf.tendons import tendon_terms
from linkwise.files.mjcf.tree import Names
from linkwise.mechanism.placement import pose


@dataclass(eq=False)
class Loops:
    """Closures of loops and couplings of joints, and by name those that could not be read."""

    closures: list[ClosureWritten] = field(default_factory=list)
    couplings: list[CouplingWritten] = field(default_factory=list)
    polynomials: list[PolynomialWritten] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


def read_loops(source: Compiled, names: Names, snap: float) -> Loops:
    """The equality constraints that are in force."""
    m = source.model
    loops = Loops()
    if source.is_off("equality"):
        return loops
    for i in range(m.neq):
        name = source.name("equality", i)
        kind = source.word("mjtEq", m.eq_type[i])
        if not m.eq_active0[i]:
            loops.left_out.append(f"equality {name!r}, which is not active")
        elif kind in ("connect", "weld"):
            loops.closures.append(_closure(source, names, i, name, snap))
        elif kind in ("joint", "tendon"):
            _couple(source, names, i, name, loops)
        else:
            loops.left_out.append(f"equality {name!r} ({kind})")
    return loops


def _closure(source: Compiled, names: Names, i: int, name: str, snap: float) -> ClosureWritten:
    """Frame a on the first body, frame b on the second: together at a point, or altogether."""
    m = source.model
    data = m.eq_data[i]
    weld = source.word("mjtEq", m.eq_type[i]) == "weld"
    a, b = pose(), pose()
    if source.word("mjtObj", m.eq_objtype[i]) == "site":
        ends = [_site(source, names, int(site), snap) for site in (m.eq_obj1id[i], m.eq_obj2id[i])]
        (body_a, a), (body_b, b) = ends
    else:
        body_a, body_b = names.bodies[m.eq_obj1id[i]], names.bodies[m.eq_obj2id[i]]
        if weld:
            a, b = pose(data[3:6], turn(data[6:10], snap)), pose(data[0:3])
        else:
            a, b = pose(data[0:3]), pose(data[3:6])
    holds_turn = weld and data[10] != 0.0  # a weld without torque is a point
    line, file = source.at("equality", i)
    kind = "fixed" if holds_turn else "spherical"
    return ClosureWritten(JointWritten(name, line, kind, body_a, body_b, a, joint_frame=b, file=file), implied=True)


def _site(source: Compiled, names: Names, site: int, snap: float) -> tuple[str, FloatArray]:
    m = source.model
    return names.bodies[m.site_bodyid[site]], pose(m.site_pos[site], turn(m.site_quat[site], snap))


def _couple(source: Compiled, names: Names, i: int, name: str, loops: Loops) -> None:
    """x₁ - x₁(0) = a₀ + a₁ y + … a₄ y⁴ with y = x₂ - x₂(0), of joints or of tendons over joints."""
    m = source.model
    sides = [_side(source, names, i, int(index)) for index in (m.eq_obj1id[i], m.eq_obj2id[i]) if index >= 0]
    if any(side is None for side in sides):
        loops.left_out.append(f"equality {name!r}, of a tendon through space or of a joint with several freedoms")
        return
    (left, start_left), *rest = (side for side in sides if side is not None)
    a = np.array(m.eq_data[i][:5], float)
    a[0] += start_left
    line, other = source.at("equality", i)
    if not rest:
        loops.couplings.append(CouplingWritten(name, line, left, float(a[0]), other))
        return
    right, start = rest[0]
    if not a[2:].any():
        terms = dict(left)
        for joint, c in right.items():
            terms[joint] = terms.get(joint, 0.0) - float(a[1]) * c
        terms = {joint: c for joint, c in terms.items() if c != 0.0}
        loops.couplings.append(CouplingWritten(name, line, terms, float(a[0] - a[1] * start), other))
    elif set(left) & set(right):
        loops.left_out.append(f"equality {name!r}, a polynomial with a joint on both sides")
    else:
        loops.polynomials.append(PolynomialWritten(name, line, left, right, tuple(a.tolist()), start, other))


def _side(source: Compiled, names: Names, i: int, index: int) -> tuple[dict[str, float], float] | None:
    """A sum of joint coordinates, and its value in the reference configuration."""
    m = source.model
    if source.word("mjtEq", m.eq_type[i]) == "tendon":
        terms = tendon_terms(source, names, index)
        return None if terms is None else (terms, float(m.tendon_length0[index]))
    if not source.is_single(index):
        return None
    return {names.joints[index]: 1.0}, float(m.qpos0[m.jnt_qposadr[index]])
