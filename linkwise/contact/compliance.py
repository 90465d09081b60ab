"""Compliant contacts as smooth forces, for methods that integrate forces: springs and dampers, regularised friction.

At a depth δ that grows at the rate δ̇ a point pushes with

    n = k(δ + τδ̇)    or, by Hunt and Crossley,    n = kδ(1 + dδ̇),    never less than 0,

and rubs with μn w/√(w² + w₀²) against the slip w, Coulomb's law made smooth: at the stiction speed w₀ friction is 71 %
of its full value, and what it holds creeps. Moments against spinning and rolling are regularised likewise.
"""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.algorithms.inverse_dynamics import external_force
from linkwise.algorithms.kinematics import placed, velocities
from linkwise.algorithms.sweeps import only_at
from linkwise.contact.cones import Row
from linkwise.contact.results import ContactForces
from linkwise.contact.touching import PlacedPoint, Pulled, Touch, placed_points, pulled
from linkwise.mechanism.tree import Tree
from linkwise.spatial.scalar import Scalar, maximum, sqrt, where
from linkwise.spatial.vectors import Force

Flat = Sequence[Scalar]


def contact_force(tree: Tree, touches: Sequence[Touch], q: Flat, v: Flat, friction_speed: float) -> list[Scalar]:
    """Joint forces (nv) of all compliant points."""
    pulls, found = forces_on_rows(tree, touches, q, v, friction_speed)
    return felt_at_joints(tree, q, pulls, found.forces)


def forces_on_rows(
    tree: Tree, touches: Sequence[Touch], q: Flat, v: Flat, friction_speed: float
) -> tuple[Pulled, ContactForces]:
    """The rows of all compliant points, and the forces along them."""
    compliant = [touch for touch in touches if not touch.material.is_rigid]
    frames = placed(tree, q)
    points, overflow = placed_points(compliant, frames, q)
    pulls = pulled(tree, compliant, points, frames, q)
    V = pulls.velocities(velocities(tree, q, v))
    rows = iter(pulls.rows)
    forces: list[Scalar] = []
    for point in points:
        own = [next(rows) for _ in range(point.touch.rows)]
        forces += _forces(point, own, V, friction_speed)
    return pulls, ContactForces(forces, overflow)


def felt_at_joints(tree: Tree, q: Flat, pulls: Pulled, forces: Flat) -> list[Scalar]:
    """J*f (nv), joint forces that forces along the rows of contacts amount to; or impulses of impulses."""
    along: list[Scalar] = [0.0] * len(pulls.forces)
    for row, force in zip(pulls.rows, forces, strict=True):
        for k, c in zip(row.pulls, row.factors, strict=True):
            along[k] = along[k] + c * force
    on_links: dict[int, Force] = {}
    for force, on in zip(along, pulls.forces, strict=True):
        for link, unit in on:
            own_force = unit * force
            on_links[link.index] = on_links[link.index] + own_force if link.index in on_links else own_force
    felt = [(tree.links[index], force) for index, force in on_links.items()]
    return external_force(tree, q, only_at(tree, felt, Force.zero()))


def _forces(point: PlacedPoint, rows: Sequence[Row], V: Flat, friction_speed: float) -> list[Scalar]:
    """Along each row of a point."""
    m = point.touch.material
    w = [row.of(V) - drift for row, drift in zip(rows, point.drifts(), strict=True)]
    depth = maximum(-point.gap, 0.0)
    push = depth * (1.0 - m.damping * w[0]) if m.law == "hunt_crossley" else _linear(point.gap, m.damping, w[0])
    normal = m.stiffness * maximum(push, 0.0)
    found = [normal]
    mu = max(m.coefficients)
    most = (mu if m.is_isotropic else 1.0) * point.touch.friction
    kinds = ((most, friction_speed * (1.0 if m.is_isotropic else mu), 2 if mu > 0.0 else 0),)
    lengths = ((m.torsion, friction_speed, 1), (m.rolling, friction_speed, 2))
    for radius, speed, count in (*kinds, *(kind for kind in lengths if kind[0] > 0.0)):
        slip = w[len(found) : len(found) + count]
        square: Scalar = speed * speed
        for x in slip:
            square = square + x * x
        against = -radius * normal / sqrt(square)
        found += [against * x for x in slip]
    return found


def _linear(gap: Scalar, damping: float, rate: Scalar) -> Scalar:
    """δ + τδ̇ where surfaces overlap, 0 where they do not."""
    return where(gap < 0.0, -gap - damping * rate, 0.0)


def contact_energy(tree: Tree, touches: Sequence[Touch], q: Flat) -> Scalar:
    """Energy stored in compliant points, ½kδ² each, in J."""
    compliant = [touch for touch in touches if not touch.material.is_rigid]
    points, _ = placed_points(compliant, placed(tree, q), q)
    total: Scalar = 0.0
    for point in points:
        depth = maximum(-point.gap, 0.0)
        total = total + 0.5 * point.touch.material.stiffness * depth * depth
    return total
