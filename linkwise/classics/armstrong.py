"""Armstrong 1979: forward dynamics of links on ball joints, in vectors of three. O(n).

Jain 1991 eq. 47-49. Moments N(k) at the joints are given; the angular acceleration and the force through a joint are
affine in the acceleration v̇ of the joint's centre:

    ω'(k) = Ω_ω(k) v̇(k) + β_ω(k),    F(k) = Ω_F(k) v̇(k) + β_F(k).

Eliminating ω' link by link from the tips gives Λ, L, Ω_ω, Ω_F, β_ω, β_F (eq. 48), which are the parts of the
partitioned articulated inertia: P₁₁ = Λ⁻¹, P₁₂ = -L, P₂₂ = ΣΩ_F + m (eq. 49).

DIFFERS FROM PAPER: eq. 48 prints β_F(k) = L*β_ω(k) and, in the next line, β_F(k-1) - L*Λ[…]; the second is right,
β_F(k) = β_F(k-1) - L*β_ω(k), as eq. 49 says too (a test shows it). The paper leaves out velocities; they enter as the
forces ω~Jω, mω~ω~p and Ω_F ω~ω~l. Trees of spherical joints, without rotors.
"""

from __future__ import annotations

from linkwise.algorithms.factors import factorize
from linkwise.algorithms.sweeps import Field, inward, outward
from linkwise.classics.requirements import joint_types, no_armature
from linkwise.dataclass import dataclass
from linkwise.joints import Spherical
from linkwise.mechanism.tree import Link, Tree
from linkwise.spatial.matrices import Mat3, Sym3
from linkwise.spatial.moving import RigidMotion
from linkwise.spatial.scalar import Flat, Scalar
from linkwise.spatial.vectors import Vec


@dataclass(frozen=True, slots=True)
class Coefficients:
    """Of eq. 47 for one link, in its axes; with Λ⁻¹ and L for eq. 49."""

    Omega_omega: Mat3
    beta_omega: Vec
    Omega_F: Sym3
    beta_F: Vec
    Lambda_inverse: Sym3
    L: Mat3


@dataclass(frozen=True)
class _Outboard:
    """Sums over the children, in the axes of the parent: l~Ω_Fl~, l~Ω_F, Ω_F, moment and force."""

    lOl: Sym3
    lO: Mat3
    O: Sym3
    N: Vec
    F: Vec

    def __add__(self, other: _Outboard) -> _Outboard:
        return _Outboard(
            self.lOl.plus(other.lOl), self.lO + other.lO, self.O.plus(other.O), self.N + other.N, self.F + other.F
        )


def coefficients(tree: Tree, q: Flat, v: Flat, tau: Flat) -> Field[Coefficients]:
    """The inward recursion of eq. 48."""
    omega = outward(tree, lambda link, w: link.phi(q).rotate_back(w) + Vec.of(_spin(link, q, v)), Vec.zero())

    def step(link: Link, out: _Outboard) -> tuple[_Outboard, Coefficients]:
        J, h, m, w = link.inertia.J, link.inertia.h, link.inertia.m, omega[link]
        Lambda_inverse = J.minus(out.lOl)
        factor = factorize([list(row) for row in Lambda_inverse.m])

        def Lambda(x: Vec) -> Vec:
            return Vec.of(factor.solve(list(x)))

        L = Mat3.zero() - out.lO - Mat3.cross(h)
        N = Vec.of(_moment(link, tau))
        beta_omega = Lambda(N - w.cross(J @ w) - out.N)
        Omega_omega = Mat3([list(Lambda(L.column(j))) for j in range(3)]).T
        LT_Omega = L.T.times(Omega_omega)
        Omega_F = out.O.plus(Sym3.of(m, m, m, 0.0, 0.0, 0.0)).minus(Sym3.build_symmetric(lambda i, j: LT_Omega.m[i][j]))
        beta_F = out.F + w.cross(w.cross(h)) - L.transpose_times(beta_omega)
        own = Coefficients(Omega_omega, beta_omega, Omega_F, beta_F, Lambda_inverse, L)
        return _seen_from_parent(link, q, N, own, Vec.zero() if link.parent < 0 else omega.values[link.parent]), own

    nothing = _Outboard(Sym3.zero(), Mat3.zero(), Sym3.zero(), Vec.zero(), Vec.zero())
    return inward(tree, step, nothing)


def forward_dynamics(tree: Tree, q: Flat, v: Flat, tau: Flat) -> list[Scalar]:
    """v̇: back substitution from the base, where v̇ of the first centre is known."""
    joint_types(tree, "Armstrong", (Spherical,))
    no_armature(tree, "Armstrong")
    parts = coefficients(tree, q, v, tau)

    def accelerate(link: Link, parent: tuple[RigidMotion, list[Scalar]]) -> tuple[RigidMotion, list[Scalar]]:
        R, l = link.phi(q).matrix()
        inboard = parent[0]
        v_dot = R.transpose_times(inboard.a + inboard.E @ l)
        omega_dot = parts[link].Omega_omega @ v_dot + parts[link].beta_omega
        spin = Vec.of(_spin(link, q, v))
        omega = R.transpose_times(inboard.omega) + spin
        turn = omega_dot - R.transpose_times(inboard.omega_dot) - omega.cross(spin)
        return RigidMotion(omega, omega_dot, v_dot), _coordinates(link, q, turn)

    base = RigidMotion(Vec.zero(), Vec.zero(), -tree.gravity)
    return tree.generalized(Field([vdot for _, vdot in outward(tree, accelerate, (base, [])).values]))


def _seen_from_parent(link: Link, q: Flat, N: Vec, own: Coefficients, w: Vec) -> _Outboard:
    """Terms that a link with Ω_F and β_F adds to its parent's equations; l from the parent's centre to this one."""
    phi = link.phi(q)
    R, l = phi.matrix()
    RO = R.times(own.Omega_F)
    full = RO.times(R.T).m
    O = Sym3.build_symmetric(lambda i, j: full[i][j])
    F = O @ w.cross(w.cross(l)) + R @ own.beta_F
    lO = Mat3.cross(l).times(O)
    lOl = lO.times(Mat3.cross(l)).m
    return _Outboard(Sym3.build_symmetric(lambda i, j: lOl[i][j]), lO, O, R @ N + l.cross(F), F)


def _spin(link: Link, q: Flat, v: Flat) -> list[Scalar]:
    """The joint's angular velocity in the link's axes."""
    total = Vec.zero()
    for s, x in zip(link.S(q), link.rates(v), strict=True):
        total = total + s.ang * x
    return list(total)


def _moment(link: Link, tau: Flat) -> list[Scalar]:
    """The moment with the components ``tau`` along the joint's axes; these are orthonormal for a ball joint."""
    return list(link.tail.rotate_back(Vec.of(link.rates(tau))))


def _coordinates(link: Link, q: Flat, turn: Vec) -> list[Scalar]:
    return [s.ang.dot(turn) for s in link.S(q)]
