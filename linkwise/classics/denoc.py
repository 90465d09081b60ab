"""The decoupled natural orthogonal complement (Saha 1999): t = N_l N_d θ̇. All of Saha 1999.

Explicit matrices N_l, N_d, I, C and the vector τ (eq. 17, 24, 29, 30), the reverse Gaussian elimination I = UDU*
(appendix B), and the two recursions: inverse dynamics (RIDIM, eq. 31, 32) and forward dynamics (RFDSIM, eq. 34-37,
46-50), O(n) each. Reference points are the mass centres; N_l and N_d are in the axes of the root, the recursions in
those of the links.

DIFFERS FROM PAPER: trees ("k = i+1 … n" is "all k outboard of i"); a joint of several freedoms is as many joints in a
row, as the paper suggests, with no body between them. Explicit C for joints with axes fixed in their links.
"""

from __future__ import annotations

from linkwise.algorithms.kinematics import combination
from linkwise.algorithms.sweeps import Field, inward, outward
from linkwise.classics.newton_euler import with_rotors
from linkwise.classics.requirements import fixed_axes, no_mimics
from linkwise.classics.terms import CentredBody, at_mass_centres, base_acceleration, in_root_axes, velocity_terms
from linkwise.dataclass import dataclass
from linkwise.mechanism.tree import Link, Tree
from linkwise.spatial.inertia import ArticulatedInertia, RigidInertia
from linkwise.spatial.matrices import Mat3, identity, zeros
from linkwise.spatial.scalar import Flat, Matrix, Scalar, dot, minus
from linkwise.spatial.transforms import Shift
from linkwise.spatial.vectors import Force, Motion, Vec

# ---------------------------------------------------------------------------------------------- explicit matrices


@dataclass(frozen=True)
class Complement:
    """N_l, 6n × 6n, and N_d, 6n × nv (Saha 1999 eq. 17): N = N_l N_d."""

    N_l: Matrix
    N_d: Matrix


def complement(tree: Tree, q: Flat) -> Complement:
    """N_l with the blocks B(i, j) for j inboard of i, and N_d with the columns p_i on its diagonal."""
    no_mimics(tree, "DeNOC")
    bodies = in_root_axes(tree, q, [0.0] * tree.nv, "DeNOC")
    n = 6 * len(tree.links)
    N_l, N_d = identity(n), zeros(n, tree.nv)
    for link in tree:
        for j in tree.ancestors(link):
            c = Mat3.cross(bodies[j].C - bodies[link].C).m
            for r in range(3):
                for s in range(3):
                    N_l[6 * link.index + 3 + r][6 * j.index + s] = c[r][s] if j is not link else 0.0
                if j is not link:
                    N_l[6 * link.index + r][6 * j.index + r] = 1.0
                    N_l[6 * link.index + 3 + r][6 * j.index + 3 + r] = 1.0
        for column, p in enumerate(bodies[link].p, start=link.v_start):
            for r in range(6):
                N_d[6 * link.index + r][column] = p[r]
    return Complement(N_l, N_d)


def generalized_inertia(tree: Tree, q: Flat) -> Matrix:
    """I with i_ij = p_i* M̃_i B_ij p_j (Saha 1999 eq. 24), M̃_i = M_i + Σ B* M̃ B, composite bodies (eq. 23b). O(n²)."""
    no_mimics(tree, "DeNOC")
    bodies = in_root_axes(tree, q, [0.0] * tree.nv, "DeNOC")
    composite = _composite(tree, bodies)
    I = zeros(tree.nv, tree.nv)
    for i in tree:
        for row, p_i in enumerate(bodies[i].p, start=i.v_start):
            momentum = composite[i] @ p_i
            for j in tree.ancestors(i):
                for column, p_j in enumerate(bodies[j].p, start=j.v_start):
                    if column <= row:
                        I[row][column] = I[column][row] = bodies[i].twist_from(bodies[j], p_j).dot(momentum)
            I[row][row] = I[row][row] + i.armature[row - i.v_start]
    return I


def convective_matrix(tree: Tree, q: Flat, v: Flat) -> Matrix:
    """C with Iθ̈ + Cθ̇ = τ, entry by entry (Saha 1999 eq. 28, 29): O(n²) entries of O(depth) each.

    c_ij = p_i*(B_ji* M̃_j Ω_j + Σ B* H̃ + M̃'_j) p_j for i inboard of j, p_i*(M̃_i B_ij Ω_j + H̃_ij + M̃'_i) p_j outboard,
    M̃'_i = Ṁ_i + Σ M̃', H̃_ij = M̃_i Ḃ_ij + Σ B* H̃ over the children.
    """
    no_mimics(tree, "DeNOC")
    fixed_axes(tree, "DeNOC")
    bodies = in_root_axes(tree, q, v, "DeNOC")
    composite = _composite(tree, bodies)
    mass_rate = inward(tree, lambda link, total: (own := _mass_rate(bodies[link]) + total, own), Mat3.zero())
    lag = _lags(tree, bodies, composite)
    C = zeros(tree.nv, tree.nv)
    for j in tree:
        for column, p_j in enumerate(bodies[j].p, start=j.v_start):
            spin = bodies[j].t.ang
            turned = Motion(spin.cross(p_j.ang), spin.cross(p_j.lin))
            # i = j and inboard: the force B_ji*(M̃_jΩ_jp_j + ΣB*H̃p_j + M̃'_jp_j), seen at each i in turn
            f = composite[j] @ turned + lag[j].times(p_j.ang) + Force(mass_rate[j] @ p_j.ang, Vec.zero())
            for i in tree.ancestors(j):
                for row, p_i in enumerate(bodies[i].p, start=i.v_start):
                    C[row][column] = bodies[j].twist_from(bodies[i], p_i).dot(f)
            # outboard
            for i in tree.links[j.index + 1 :]:
                if j in list(tree.ancestors(i)):
                    drift = Motion(Vec.zero(), (bodies[j].t.lin - bodies[i].t.lin).cross(p_j.ang))
                    f = composite[i] @ (bodies[i].twist_from(bodies[j], turned) + drift)
                    f = f + lag[i].times(p_j.ang) + Force(mass_rate[i] @ p_j.ang, Vec.zero())
                    for row, p_i in enumerate(bodies[i].p, start=i.v_start):
                        C[row][column] = p_i.dot(f)
    return C


def gravity_forces(tree: Tree, q: Flat) -> list[Scalar]:
    """N_d*w̃, w̃_i = w_i + ΣB*w̃ of the weights (Saha 1999 eq. 30, 31)."""
    no_mimics(tree, "DeNOC")
    bodies = in_root_axes(tree, q, [0.0] * tree.nv, "DeNOC")

    def gather(link: Link, outboard: _ForceAbout | None) -> tuple[_ForceAbout, Force]:
        w = Force(Vec.zero(), tree.gravity * bodies[link].M.m)
        if outboard is not None:
            w = w + outboard.at(bodies[link].C)
        return _ForceAbout(w, bodies[link].C), w

    w = inward(tree, gather, None)
    return tree.generalized(Field([[p.dot(w[link]) for p in bodies[link].p] for link in tree]))


def reverse_gaussian_elimination(I: Matrix) -> tuple[Matrix, list[Scalar]]:
    """U, unit upper triangular, and the diagonal of D with I = UDU* (Saha 1999 appendix B): the last column first."""
    n = len(I)
    L = [list(row) for row in I]
    U = identity(n)
    for k in reversed(range(1, n)):
        for i in range(k):
            U[i][k] = L[i][k] / L[k][k]
        for i in range(k):
            for j in range(i + 1):
                L[i][j] = L[j][i] = L[i][j] - U[i][k] * L[k][j]
    return U, [L[k][k] for k in range(n)]


def forward_dynamics_explicit(tree: Tree, q: Flat, v: Flat, tau: Flat) -> list[Scalar]:
    """θ̈ from UDU*θ̈ = τ + gravity - Cθ̇ (Saha 1999 eq. 33) with all matrices explicit. O(n³)."""
    bias = [dot(row, v) for row in convective_matrix(tree, q, v)]
    phi = [t + g - c for t, g, c in zip(tau, gravity_forces(tree, q), bias, strict=True)]
    U, D = reverse_gaussian_elimination(generalized_inertia(tree, q))
    n = len(D)
    for i in reversed(range(n)):
        phi[i] = phi[i] - dot(U[i][i + 1 :], phi[i + 1 :])
    x = [a / d for a, d in zip(phi, D, strict=True)]
    for i in range(n):
        x[i] = x[i] - dot([U[k][i] for k in range(i)], x[:i])
    return x


@dataclass(frozen=True)
class _ForceAbout:
    """A force about a point, to be summed about another."""

    f: Force
    C: Vec
    more: tuple[_ForceAbout, ...] = ()

    def __add__(self, other: _ForceAbout) -> _ForceAbout:
        return _ForceAbout(self.f, self.C, (*self.more, other))

    def at(self, C: Vec) -> Force:
        """B* of each, summed."""
        f = Force(self.f.ang + (self.C - C).cross(self.f.lin), self.f.lin)
        for other in self.more:
            f = f + other.at(C)
        return f


@dataclass(frozen=True)
class _Lag:
    """ΣB*H̃ over the children of a body, as the force it gives for an angular velocity: moment and force parts."""

    N: Mat3
    F: Mat3

    def times(self, w: Vec) -> Force:
        return Force(self.N @ w, self.F @ w)


def _composite(tree: Tree, bodies: Field[CentredBody]) -> Field[RigidInertia]:
    """M̃ about each mass centre (Saha 1999 eq. 23b)."""

    def gather(link: Link, outboard: RigidInertia) -> tuple[RigidInertia, RigidInertia]:
        own = bodies[link].M + outboard
        if link.parent < 0:
            return own, own
        return Shift(bodies[link].C - bodies.values[link.parent].C).rigid_in(own), own

    return inward(tree, gather, RigidInertia.zero())


def _mass_rate(body: CentredBody) -> Mat3:
    """The one block of Ṁ that is not zero: ω~I."""
    return Mat3.cross(body.t.ang).times(body.M.J)


def _lags(tree: Tree, bodies: Field[CentredBody], composite: Field[RigidInertia]) -> Field[_Lag]:
    """ΣB*H̃(child, body) with H̃(i, j) = M̃_i Ḃ_ij + ΣB*H̃ (Saha 1999 eq. 28)."""
    own = [_Lag(Mat3.zero(), Mat3.zero()) for _ in tree.links]
    for link in reversed(tree.links):
        if link.parent < 0:
            continue
        here, parent = bodies[link], bodies.values[link.parent]
        drift = Mat3.cross(parent.t.lin - here.t.lin)  # Ḃ = [[0, 0], [ċ~, 0]]
        M = composite[link]
        N = Mat3.cross(M.h).times(drift) + own[link.index].N
        F = drift * M.m + own[link.index].F
        lever = Mat3.cross(here.C - parent.C)
        known = own[link.parent]
        own[link.parent] = _Lag(known.N + N + lever.times(F), known.F + F)
    return Field(own)


# ---------------------------------------------------------------------------------------------- recursions


def inverse_dynamics(tree: Tree, q: Flat, v: Flat, vdot: Flat) -> list[Scalar]:
    """RIDIM, Saha 1999 §5.1: ν̇_i = p_iθ̈_i + Ω_ip_iθ̇_i + Bν̇ + Ḃν; γ_i = M_iν̇_i + Ṁ_iν_i + ΣB*γ, τ_i = p_i*γ_i."""
    centred = at_mass_centres(tree, "DeNOC")
    terms = velocity_terms(centred, q, v)  # a = Ωpθ̇ + Ḃν and b = Ṁν

    def twist_rate(link: Link, parent: Motion) -> Motion:
        return link.phi(q).T @ parent + combination(link.S(q), link.rates(vdot)) + terms[link].a

    nu_dot = outward(centred, twist_rate, base_acceleration(centred))

    def wrench(link: Link, outboard: Force) -> tuple[Force, list[Scalar]]:
        gamma = link.inertia @ nu_dot[link] + terms[link].b + outboard
        return link.phi(q) @ gamma, [p.dot(gamma) for p in link.S(q)]

    return with_rotors(centred, inward(centred, wrench, Force.zero()).values, vdot)


@dataclass(frozen=True, slots=True)
class _EliminatedAxis:
    """One joint of one freedom: p, ψ = M̂p/m̂ and m̂ (Saha 1999 eq. 47, 48)."""

    p: Motion
    psi: Force
    m_inverse: Scalar


def forward_dynamics(tree: Tree, q: Flat, v: Flat, tau: Flat) -> list[Scalar]:
    """RFDSIM (Saha 1999 §5.2): φ = τ - Cθ̇ by RIDIM, then τ̂ = U⁻¹φ, τ̃ = D⁻¹τ̂, θ̈ = U⁻*τ̃ by eq. 34-37."""
    no_mimics(tree, "DeNOC")
    centred = at_mass_centres(tree, "DeNOC")
    phi = minus(tau, inverse_dynamics(tree, q, v, [0.0] * tree.nv))
    axes = _articulated(centred, q)

    def eliminate(link: Link, eta: Force) -> tuple[Force, list[Scalar]]:
        tau_tilde: list[Scalar] = [0.0] * link.joint.nv
        for i in reversed(range(link.joint.nv)):
            axis = axes[link][i]
            tau_hat = phi[link.v_start + i] - axis.p.dot(eta)  # eq. 34
            eta = axis.psi * tau_hat + eta  # eq. 35
            tau_tilde[i] = tau_hat * axis.m_inverse
        return link.phi(q) @ eta, tau_tilde

    tau_tilde = inward(centred, eliminate, Force.zero())

    def substitute(link: Link, parent: tuple[Motion, list[Scalar]]) -> tuple[Motion, list[Scalar]]:
        mu, theta = link.phi(q).T @ parent[0], []
        for axis, value in zip(axes[link], tau_tilde[link], strict=True):
            theta.append(value - mu.dot(axis.psi))  # eq. 36
            mu = axis.p * theta[-1] + mu  # eq. 37
        return mu, theta

    return centred.generalized(Field([x for _, x in outward(centred, substitute, (Motion.zero(), [])).values]))


def _articulated(centred: Tree, q: Flat) -> Field[list[_EliminatedAxis]]:
    """M̂_i = M_i + ΣB* M̂_kk B, M̂_kk = M̂_k - ψ̂_kψ_k* (Saha 1999 eq. 50): the articulated bodies, joint by joint."""

    def step(link: Link, outboard: ArticulatedInertia) -> tuple[ArticulatedInertia, list[_EliminatedAxis]]:
        M_hat = link.inertia.articulated() + outboard
        axes: list[_EliminatedAxis] = []
        for p, rotor in zip(reversed(link.S(q)), reversed(link.armature), strict=True):
            psi_hat = M_hat @ p
            m_inverse = 1.0 / (p.dot(psi_hat) + rotor)
            psi = psi_hat * m_inverse
            axes.insert(0, _EliminatedAxis(p, psi, m_inverse))
            M_hat = M_hat.without(psi_hat, psi, None)
        return link.phi(q).congruence(M_hat), axes

    return inward(centred, step, ArticulatedInertia.zero())
