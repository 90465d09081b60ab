"""Luh, Walker and Paul's recursion (1980) in its own quantities, named in Saha 1999 table 1. O(n).

Velocities and accelerations of the links' origins and mass centres outwards, forces and moments about mass centres
inwards, each link in its own axes:

    ω = R*ω_p + z q̇,  ω' = R*ω'_p + z q̈ + R*ω_p × z q̇,  a = R*(a_p + ω'_p × l + ω_p × (ω_p × l)) (+ what a slider adds),
    a_c = a + ω' × r + ω × (ω × r),  F = m a_c,  N = Iω' + ω × Iω,
    f = F + ΣRf,  n = N + r × F + Σ(Rn + l × Rf),  T = z·n for a hinge, z·f for a slider.

Trees of hinges and sliders, bodies with mass.
"""

from __future__ import annotations

from linkwise.algorithms.sweeps import inward, outward
from linkwise.classics.newton_euler import with_rotors
from linkwise.classics.requirements import joint_types, own_mass
from linkwise.dataclass import dataclass
from linkwise.joints import Prismatic, Revolute
from linkwise.mechanism.tree import Link, Tree
from linkwise.spatial.scalar import Flat, Scalar
from linkwise.spatial.transforms import Shift
from linkwise.spatial.vectors import Force, Vec


@dataclass(frozen=True, slots=True)
class Moving:
    """ω, ω' and the acceleration of the origin, in the link's axes."""

    omega: Vec
    omega_dot: Vec
    a: Vec


def inverse_dynamics(tree: Tree, q: Flat, v: Flat, vdot: Flat) -> list[Scalar]:
    """T (Saha 1999 table 1, its second row)."""
    joint_types(tree, "luh walker paul", [Revolute, Prismatic])
    own_mass(tree, "luh walker paul")

    def move(link: Link, parent: Moving) -> Moving:
        R, l = link.phi(q).matrix()
        (z,), (rate,), (acceleration,) = link.S(q), link.rates(v), link.rates(vdot)
        before = R.transpose_times(parent.omega)
        there = parent.a + parent.omega_dot.cross(l) + parent.omega.cross(parent.omega.cross(l))
        omega = before + z.ang * rate
        omega_dot = R.transpose_times(parent.omega_dot) + z.ang * acceleration + before.cross(z.ang * rate)
        slide = omega.cross(z.lin * rate)
        return Moving(omega, omega_dot, R.transpose_times(there) + z.lin * acceleration + slide + slide)

    moving = outward(tree, move, Moving(Vec.zero(), Vec.zero(), -tree.gravity))

    def balance(link: Link, outboard: Force) -> tuple[Force, list[Scalar]]:
        m, r = link.inertia.m, link.inertia.h * (1.0 / link.inertia.m)
        inertia = Shift(-r).rigid_in(link.inertia).J
        here = moving[link]
        F = (here.a + here.omega_dot.cross(r) + here.omega.cross(here.omega.cross(r))) * m
        N = inertia @ here.omega_dot + here.omega.cross(inertia @ here.omega)
        total = outboard + Force(N + r.cross(F), F)
        R, l = link.phi(q).matrix()
        f = R @ total.lin
        return Force(R @ total.ang + l.cross(f), f), [s.dot(total) for s in link.S(q)]

    return with_rotors(tree, inward(tree, balance, Force.zero()).values, vdot)
