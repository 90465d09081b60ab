"""Vereshchagin 1974: the accelerations that make Gauss's function least, by dynamic programming. O(n).

Jain 1991 §5 and Featherstone 2000 §2. Gauss's function (the modified Gibbs-Appell function) of the joint accelerations
is

    𝒢(β') = ½ Σ α*Mα + b*α - T*β'  (rotors: + ½ J β'²),    α = φ*(H*β' + a).

The least 𝒢 that the links outboard of a joint can reach is a quadratic function of the acceleration handed to them,
½α*P⁺α + z⁺*α + …; Bellman's recursion for it is the articulated-body recursion.

Constrained end effectors: where A α = u is asked of some links, 𝒢 gains ν*(A α - u). The optimum stays quadratic in α
and affine in ν: the recursion carries the constraint forces E = A* inwards with the projection τ̄, and gathers the
acceleration they cause (the matrix L) and the one that happens anyway (the vector U). At the base L ν = u - U.

DIFFERS FROM PAPER: the original has one chain of one-freedom joints and a tip; here trees, all joints, and
constraints on any number of links. Gravity is a force on every link, so that α in the constraints is the true
acceleration.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from linkwise.algorithms.factors import factorize
from linkwise.algorithms.kinematics import combination
from linkwise.algorithms.sweeps import Field, each, inward, outward
from linkwise.classics.articulated_body import articulated_inertias
from linkwise.classics.requirements import no_mimics
from linkwise.classics.terms import Terms, gravity_in_links, velocity_terms
from linkwise.dataclass import dataclass
from linkwise.mechanism.tree import Link, Tree
from linkwise.spatial.matrices import zeros
from linkwise.spatial.scalar import Flat, Matrix, Scalar, dot, minus
from linkwise.spatial.vectors import Force, Motion, Vec


@dataclass(frozen=True)
class EndEffectorConstraint:
    """A α(link) = u: rows of A at the link's origin in its axes, α the rate of [ω; v] in the inertial frame."""

    link: int
    A: Sequence[Flat]
    u: Flat


class ConstrainedMotion(NamedTuple):
    """Accelerations, and the multipliers: the forces along the rows of A that hold the constraints."""

    vdot: list[Scalar]
    nu: list[Scalar]


def forward_dynamics(tree: Tree, q: Flat, v: Flat, tau: Flat) -> list[Scalar]:
    """v̇ without constraints."""
    return constrained_forward_dynamics(tree, q, v, tau, ()).vdot


def constrained_forward_dynamics(
    tree: Tree, q: Flat, v: Flat, tau: Flat, constraints: Sequence[EndEffectorConstraint]
) -> ConstrainedMotion:
    """v̇ and ν where some links are told how to accelerate; the rows of A must be independent."""
    no_mimics(tree, "Vereshchagin")
    P, joints = articulated_inertias(tree, q)
    terms = velocity_terms(tree, q, v)
    applied = applied_forces(tree, q, terms)
    rows = [(c.link, Force.of(list(row)), u) for c in constraints for row, u in zip(c.A, c.u, strict=True)]
    m = len(rows)
    L: Matrix = zeros(m, m)
    U: list[Scalar] = [0.0] * m

    def recede(link: Link, outboard: _Cost) -> tuple[_Cost, tuple[list[Scalar], Matrix]]:
        joint, a = joints[link], terms[link].a
        own = [row if k == link.index else Force.zero() for k, row, _ in rows]
        E = [e + f for e, f in zip(outboard.E, own, strict=True)] if outboard.E else own
        z = outboard.z + P[link] @ a + applied[link]
        eps = minus(link.rates(tau), joint.H(z))
        nu = joint.apply_D_inverse(eps)
        HE = [joint.H(e) for e in E]
        DHE = [joint.apply_D_inverse(x) for x in HE]
        for i in range(m):
            U[i] = U[i] + a.dot(E[i]) + dot(HE[i], nu)
            for j in range(m):
                L[i][j] = L[i][j] + dot(HE[i], DHE[j])
        phi = link.phi(q)
        return (
            _Cost(phi @ (z + joint.apply_G(eps)), [phi @ (e - joint.apply_G(x)) for e, x in zip(E, HE, strict=True)]),
            (nu, DHE),
        )

    steps = inward(tree, recede, _Cost(Force.zero(), []))
    multipliers = factorize(L).solve(minus([u for _, _, u in rows], U)) if m else []

    def accelerate(link: Link, parent: tuple[Motion, list[Scalar]]) -> tuple[Motion, list[Scalar]]:
        joint = joints[link]
        nu, DHE = steps[link]
        alpha_plus = link.phi(q).T @ parent[0]
        vdot = minus(nu, joint.apply_G_star(alpha_plus))
        for column, x in zip(DHE, multipliers, strict=True):
            vdot = [a + b * x for a, b in zip(vdot, column, strict=True)]
        return alpha_plus + joint.H_star(vdot) + terms[link].a, vdot

    result = outward(tree, accelerate, (Motion.zero(), []))
    return ConstrainedMotion(tree.generalized(Field([vdot for _, vdot in result.values])), multipliers)


@dataclass(frozen=True)
class _Cost:
    """The linear part of the least outboard cost: z, and a column of E for each multiplier."""

    z: Force
    E: list[Force]

    def __add__(self, other: _Cost) -> _Cost:
        if not self.E or not other.E:
            return _Cost(self.z + other.z, self.E or other.E)
        return _Cost(self.z + other.z, [a + b for a, b in zip(self.E, other.E, strict=True)])


def applied_forces(tree: Tree, q: Flat, terms: Field[Terms]) -> Field[Force]:
    """b less the weight of every link."""
    gravity = gravity_in_links(tree, q)
    return each(tree, lambda link: terms[link].b - link.inertia @ Motion(Vec.zero(), gravity[link]))


def gauss_function(tree: Tree, q: Flat, v: Flat, tau: Flat, vdot: Flat) -> Scalar:
    """𝒢 of given accelerations: least where they are those of the motion."""
    terms = velocity_terms(tree, q, v)
    applied = applied_forces(tree, q, terms)

    def accelerate(link: Link, parent: Motion) -> Motion:
        return link.phi(q).T @ parent + combination(link.S(q), link.rates(vdot)) + terms[link].a

    alpha = outward(tree, accelerate, Motion.zero())
    value: Scalar = -dot(tau, vdot)
    for link in tree:
        value = value + alpha[link].dot((link.inertia @ alpha[link]) * 0.5 + applied[link])
        for J, x in zip(link.armature, link.rates(vdot), strict=True):
            value = value + 0.5 * J * x * x
    return value
