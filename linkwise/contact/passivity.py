"""Steps that create no energy.

A step of second order errs in energy by its third power, and where bodies that turn strike something, by its first:
bias forces belong to a mean velocity that nobody knows before the blow. Where the energy at the end would exceed that
at the start and the work of all forces, velocities at the end are made slower, all by one factor. What stood still at a
contact stands still then, what did not approach does not, and friction has taken a little more than its law says.
"""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.algorithms.energy import kinetic_energy, potential_energy
from linkwise.algorithms.inverse_dynamics import Forces
from linkwise.algorithms.kinematics import velocities
from linkwise.mechanism.tree import Tree
from linkwise.spatial.scalar import Scalar, maximum, minimum, sqrt, where

Flat = Sequence[Scalar]

SLACK = 5e-8
"""m, by which surfaces may overlap without being parted where no energy is created: what rests could not be lifted."""

_TINY = 1e-300


def slackened(gap: Scalar) -> Scalar:
    """A gap without a small overlap."""
    return where(gap < 0.0, minimum(gap + SLACK, 0.0), gap)


def passive_end(
    tree: Tree, start: tuple[Flat, Flat], end: tuple[Flat, Flat], work: Scalar
) -> tuple[list[Scalar], list[Scalar]]:
    """Configuration and velocity at the end of a step, such that energy grew by no more than some work.

    What would be lifted by more than it has energy for, where surfaces that overlap part, stays where it is.

    Args:
        tree: of links.
        start: configuration and velocity.
        end: likewise, as the step has them.
        work: J, of all forces but gravity and contact.
    """
    before = kinetic_energy(tree, *start) + potential_energy(tree, start[0]) + work
    left, moving = before - potential_energy(tree, end[0]), kinetic_energy(tree, *end)
    part = where(moving > left, sqrt(maximum(left, 0.0) / maximum(moving, _TINY)), 1.0)
    return [where(left < 0.0, a, b) for a, b in zip(start[0], end[0], strict=True)], [part * x for x in end[1]]


def work_in_step(
    tree: Tree,
    q: Flat,
    h: Scalar,
    tau: Flat,
    f_ext: Forces,
    implicit: Flat | None,
    ways: tuple[Flat, Flat, Flat],
) -> Scalar:
    """Work of joint forces and forces on links in a step, J.

    Args:
        tree: of links.
        q: configuration in the middle.
        h: s.
        tau: joint forces in the middle, at the velocity of the start.
        f_ext: forces on links.
        implicit: by how much they fall with the change of velocity, times h.
        ways: mean velocity, its change, and the way beyond h times the mean, in the axes of the middle.
    """
    mean, change, shift = ways
    total: Scalar = 0.0
    for k, (force, speed, more) in enumerate(zip(tau, mean, shift, strict=True)):
        impulse = h * force if implicit is None else h * force - implicit[k] * change[k]
        total = total + impulse * speed + force * more
    if f_ext is not None:
        twists = velocities(tree, q, [h * a + b for a, b in zip(mean, shift, strict=True)])
        for link in tree:
            total = total + twists[link].dot(f_ext[link])
    return total
