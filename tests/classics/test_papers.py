"""What the papers say of each algorithm beyond its result, and where they are misprinted."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

import linkwise as lw
from linkwise.algorithms.kinematics import combination
from linkwise.algorithms.sweeps import Field, inward, outward
from linkwise.classics import (
    armstrong,
    articulated_body,
    bae_haug,
    conjugate_gradient,
    constraint_force,
    denoc,
    divide_and_conquer,
    global_bases,
    lilly_orin,
    noc,
    rodriguez,
    run,
    sparse_kkt,
    vereshchagin,
)
from linkwise.classics.dense import as_rows
from linkwise.classics.newton_euler import bias_free
from linkwise.classics.terms import base_acceleration, in_root_axes, velocity_terms
from linkwise.mechanism.layout import lay_out
from linkwise.mechanism.tree import Tree
from linkwise.spatial.vectors import Force, Motion
from tests.random_trees import random_state, random_tree

FIXED = ("revolute", "prismatic", "helical", "cylindrical", "planar", "spherical", "free")


class State:
    """A random mechanism in body frames with a random state, as flat lists."""

    def __init__(self, seed: int, n: int, types: tuple[str, ...] = FIXED, **options: float) -> None:
        rng = np.random.default_rng(seed)
        self.model = random_tree(rng, n, types, **options)
        self.arrays = random_state(self.model, rng)
        self.q, self.v, self.x = (a.tolist() for a in self.arrays)
        self.tree: Tree = lay_out(self.model, align=False, regroup=False)
        self.M = np.array(run("composite", self.model, self.q))

    def accelerations(self, vdot: list[float]) -> Field[Motion]:
        """α of Jain 1991: the rate of [ω; v], with the base accelerating upwards."""
        terms = velocity_terms(self.tree, self.q, self.v)
        return outward(
            self.tree,
            lambda link, a: link.phi(self.q).T @ a + combination(link.S(self.q), link.rates(vdot)) + terms[link].a,
            base_acceleration(self.tree),
        )

    def forces(self, vdot: list[float]) -> Field[Force]:
        """f through every joint."""
        alpha, terms = self.accelerations(vdot), velocity_terms(self.tree, self.q, self.v)

        def step(link, outboard):
            f = outboard + link.inertia @ alpha[link] + terms[link].b
            return link.phi(self.q) @ f, f

        return inward(self.tree, step, Force.zero())


# ------------------------------------------------------------------------------------------------------------ Jain 1991


def test_composite_bodies_make_the_diagonal_of_the_mass_matrix() -> None:
    """Γ = HRH* is the block diagonal of 𝓜 (Jain 1991 §4)."""
    s = State(1, 6)
    gamma_inverse = np.array(
        [conjugate_gradient.block_diagonal_solver(s.tree, s.q)(e) for e in np.eye(s.tree.nv).tolist()]
    )
    for link in s.tree:
        part = slice(link.v_start, link.v_start + link.joint.nv)
        np.testing.assert_allclose(gamma_inverse[part, part] @ s.M[part, part], np.eye(link.joint.nv), atol=1e-12)


def test_conjugate_gradients_as_printed_do_not_converge() -> None:
    """Jain 1991 eq. 30 prints γ = z*z / r*r. With Γ ≠ I directions then lose conjugacy; with r*z / r*z they keep it."""
    s = State(2, 6, ("revolute",))
    T = np.array(bias_free(s.tree, s.q, s.v, s.x))
    exact = np.linalg.solve(s.M, T)
    gamma = np.diag(np.diag(s.M))

    def search(printed: bool) -> tuple[np.ndarray, list[np.ndarray]]:
        x, r, p, before, directions = np.zeros_like(T), T.copy(), np.zeros_like(T), None, []
        for _ in range(len(T)):
            z = np.linalg.solve(gamma, r)
            now = (z @ z, r @ r) if printed else (r @ z, r @ z)
            p = z if before is None else z + now[0] / before * p
            directions.append(p)
            step = (z @ r) / (p @ s.M @ p)
            x, r, before = x + step * p, r - step * (s.M @ p), now[1]
        return x, directions

    mended, directions = search(printed=False)
    np.testing.assert_allclose(mended, exact, rtol=1e-8)
    C = np.array(directions) @ s.M @ np.array(directions).T
    assert np.abs(C - np.diag(np.diag(C))).max() < 1e-8 * np.abs(C).max()
    assert np.abs(search(printed=True)[0] - exact).max() > 1e-3 * np.abs(exact).max()


def test_preconditioning_saves_steps() -> None:
    """On a chain of links of very different weight Γ = HRH* needs fewer steps (Jain 1991 §4)."""
    s = State(4, 12, ("revolute",), branching=0.0)
    from linkwise.classics.newton_euler import mass_times

    def steps(precondition) -> int:
        made = []
        conjugate_gradient.conjugate_gradients(
            lambda p: made.append(1) or mass_times(s.tree, s.q, p), precondition, bias_free(s.tree, s.q, s.v, s.x)
        )
        return len(made)

    assert steps(conjugate_gradient.block_diagonal_solver(s.tree, s.q)) <= steps(list)


def test_innovations_factor_the_mass_matrix() -> None:
    """𝓜 = [I + HφK] D [I + HφK]* (Jain 1991 lemma 6.2)."""
    s = State(3, 7)
    joints = articulated_body.articulate(s.tree, s.q)
    W = np.array(articulated_body.innovations_factor(s.tree, s.q, joints))
    D = np.zeros_like(W)
    for link in s.tree:
        part = slice(link.v_start, link.v_start + link.joint.nv)
        D[part, part] = joints[link].D
    np.testing.assert_allclose(W @ D @ W.T, s.M, atol=1e-12 * np.abs(s.M).max())
    assert np.array_equal(W, np.triu(W))


def test_m_kk_of_rosenthal_is_d_not_its_inverse() -> None:
    """Jain 1991 §4 says that m_kk corresponds to D⁻¹(k); the last pivot of 𝓜 from the tip is D, as its table 1 says."""
    s = State(8, 4, ("revolute",), branching=0.0)
    joints = articulated_body.articulate(s.tree, s.q)
    assert joints[s.tree.links[-1]].D[0][0] == pytest.approx(s.M[-1, -1])


def test_gauss_function_is_least_for_the_motion() -> None:
    """Vereshchagin's starting point."""
    s = State(5, 6)
    vdot = np.array(vereshchagin.forward_dynamics(s.tree, s.q, s.v, s.x))
    rng = np.random.default_rng(0)

    def gauss(a: np.ndarray) -> float:
        return float(vereshchagin.gauss_function(s.tree, s.q, s.v, s.x, a.tolist()))

    least = gauss(vdot)
    for _ in range(5):
        d = rng.normal(size=len(vdot))
        # quadratic with 𝓜 as its Hessian, no slope at the motion
        assert gauss(vdot + d) - least == pytest.approx(0.5 * d @ s.M @ d, rel=1e-7)


@pytest.mark.parametrize("both", [False, True])
def test_constrained_end_effectors(both: bool) -> None:
    """A α = u on one or two tips: against 𝓜v̇ + C = T + J*A*ν with all matrices formed."""
    s = State(6, 8, ("revolute", "prismatic", "cylindrical"), branching=0.3)
    rng = np.random.default_rng(1)
    tips = [len(s.tree.links) - 1, len(s.tree.links) - 3][: 2 if both else 1]
    constraints = [
        vereshchagin.EndEffectorConstraint(k, rng.normal(size=(2, 6)).tolist(), rng.normal(size=2).tolist())
        for k in tips
    ]
    result = vereshchagin.constrained_forward_dynamics(s.tree, s.q, s.v, s.x, constraints)
    # J of each link's own motion, and J̇v: the true acceleration with v̇ = 0
    rows, right = [], []
    zero = [0.0] * s.tree.nv
    for c in constraints:
        A = np.array(c.A)
        J = np.array([list(_motions(s, e)[s.tree.links[c.link]]) for e in np.eye(s.tree.nv).tolist()]).T
        drift = _true_accelerations(s, zero)[c.link]
        rows.append(A @ J)
        right.append(np.array(c.u) - A @ drift)
    A, u = np.vstack(rows), np.concatenate(right)
    T = np.array(bias_free(s.tree, s.q, s.v, s.x))
    m = len(u)
    full = np.linalg.solve(np.block([[s.M, -A.T], [A, np.zeros((m, m))]]), np.concatenate([T, u]))
    np.testing.assert_allclose(result.vdot, full[: s.tree.nv], rtol=1e-7, atol=1e-8 * np.abs(full).max())
    np.testing.assert_allclose(result.nu, full[s.tree.nv :], rtol=1e-7, atol=1e-8 * np.abs(full).max())
    for c in constraints:
        np.testing.assert_allclose(np.array(c.A) @ _true_accelerations(s, result.vdot)[c.link], c.u, atol=1e-8)


def _motions(s: State, rates: list[float]) -> Field[Motion]:
    return outward(
        s.tree, lambda link, V: link.phi(s.q).T @ V + combination(link.S(s.q), link.rates(rates)), Motion.zero()
    )


def _true_accelerations(s: State, vdot: list[float]) -> list[np.ndarray]:
    terms = velocity_terms(s.tree, s.q, s.v)
    alpha = outward(
        s.tree,
        lambda link, a: link.phi(s.q).T @ a + combination(link.S(s.q), link.rates(vdot)) + terms[link].a,
        Motion.zero(),
    )
    return [np.array(list(alpha[link])) for link in s.tree]


def test_armstrong_has_the_parts_of_the_articulated_inertia() -> None:
    """Jain 1991 eq. 49: Λ⁻¹ = P₁₁, L = -P₁₂, Ω_F = P₂₂ - P₁₂*P₁₁⁻¹P₁₂, Ω_ω = -P₁₁⁻¹P₁₂."""
    s = State(7, 5, ("spherical",), armature=0.0)
    P = articulated_body.articulated_inertias(s.tree, s.q)[0]
    for link in s.tree:
        c = armstrong.coefficients(s.tree, s.q, s.v, s.x)[link]
        block = np.array(as_rows(P[link]))
        P11, P12, P22 = block[:3, :3], block[:3, 3:], block[3:, 3:]
        np.testing.assert_allclose(c.Lambda_inverse.m, P11, atol=1e-12)
        np.testing.assert_allclose(c.L.m, -P12, atol=1e-12)
        np.testing.assert_allclose(c.Omega_F.m, P22 - P12.T @ np.linalg.solve(P11, P12), atol=1e-12)
        np.testing.assert_allclose(c.Omega_omega.m, -np.linalg.solve(P11, P12), atol=1e-12)


def test_armstrong_as_printed_is_wrong() -> None:
    """Jain 1991 eq. 48 prints β_F(k) = L*β_ω(k). F = Ω_F v̇ + β_F (eq. 47) holds with β_F(k-1) - L*β_ω(k) only."""
    s = State(9, 3, ("spherical",), armature=0.0, branching=0.0)
    vdot = armstrong.forward_dynamics(s.tree, s.q, s.v, s.x)
    alpha, f = s.accelerations(vdot), s.forces(vdot)
    parts = armstrong.coefficients(s.tree, s.q, s.v, s.x)
    for link in s.tree:
        c = parts[link]
        np.testing.assert_allclose(list(c.Omega_F @ alpha[link].lin + c.beta_F), list(f[link].lin), atol=1e-9)
        np.testing.assert_allclose(
            list(c.Omega_omega @ alpha[link].lin + c.beta_omega), list(alpha[link].ang), atol=1e-9
        )
        printed = c.Omega_F @ alpha[link].lin + c.L.transpose_times(c.beta_omega)
        assert np.abs(np.array(list(printed - f[link].lin))).max() > 1e-3


def test_smoothed_states_are_the_forces_in_the_joints() -> None:
    """Rodriguez: f = z + Pλ, and Hf = T less what the rotors take."""
    s = State(10, 6, armature=0.0)
    result = rodriguez.smooth(s.tree, s.q, s.v, s.x)
    f = s.forces(result.vdot)
    for link in s.tree:
        np.testing.assert_allclose(list(result.f[link.index]), list(f[link]), atol=1e-9)
        np.testing.assert_allclose([c.dot(result.f[link.index]) for c in link.S(s.q)], link.rates(s.x), atol=1e-9)


def test_bae_haug_with_the_true_forces() -> None:
    """Jain 1991 eq. 50-52: with Q = φ⁻¹f from the true forces, Pα = Q + L; with any f of the same Hf, the same v̇."""
    s = State(11, 6, ("revolute", "prismatic", "cylindrical"), armature=0.0)
    vdot = bae_haug.forward_dynamics(s.tree, s.q, s.v, s.x)
    terms = velocity_terms(s.tree, s.q, s.v)
    f = s.forces(vdot)
    Q = bae_haug.generalized_forces(s.tree, s.q, terms, f)
    links = bae_haug.reduce(s.tree, s.q, terms, Q)
    alpha = s.accelerations(vdot)
    for link in s.tree:
        Pa = links[link].P @ alpha[link]
        np.testing.assert_allclose(list(Pa), list(Q[link] + links[link].L), atol=1e-9)


# ------------------------------------------------------------------------------------------------------------ Saha 1999


def test_decoupled_complement() -> None:
    """N = N_l N_d (Saha 1999 eq. 16, 17) are the twists that unit rates give, and I = N*MN."""
    s = State(12, 6)
    parts = denoc.complement(s.tree, s.q)
    N = np.array(parts.N_l) @ np.array(parts.N_d)
    bodies = in_root_axes(s.tree, s.q, s.v, "DeNOC")
    np.testing.assert_allclose(
        N, noc.as_matrix(noc.orthogonal_complement(s.tree, bodies), len(s.tree.links)), atol=1e-13
    )
    twists = (N @ np.array(s.v)).reshape(-1, 6)
    np.testing.assert_allclose(twists, [list(bodies[link].t) for link in s.tree], atol=1e-12)


def test_convective_matrix() -> None:
    """Iθ̈ + Cθ̇ = τ + gravity with all matrices explicit (Saha 1999 eq. 20, 24, 29, 30)."""
    s = State(13, 6)
    C = np.array(denoc.convective_matrix(s.tree, s.q, s.v))
    left = np.array(denoc.generalized_inertia(s.tree, s.q)) @ s.x + C @ s.v
    tau = run("newton_euler", s.model, s.q, s.v, s.x) + np.array(denoc.gravity_forces(s.tree, s.q))
    np.testing.assert_allclose(left, tau, atol=1e-10 * np.abs(tau).max())


def test_convective_matrix_is_n_m_n_dot() -> None:
    """C = N*(MṄ + ṀN), with Ṅ by differences: each entry, not only the product with θ̇."""
    s = State(14, 4, ("revolute", "prismatic"), branching=0.3)
    h = 1e-6

    def complement(t: float) -> np.ndarray:
        q = (np.array(s.q) + t * np.array(s.v)).tolist()
        parts = denoc.complement(s.tree, q)
        return np.array(parts.N_l) @ np.array(parts.N_d)

    N, N_dot = complement(0.0), (complement(h) - complement(-h)) / (2 * h)
    n = len(s.tree.links)
    M, M_dot = np.zeros((6 * n, 6 * n)), np.zeros((6 * n, 6 * n))
    for link in s.tree:
        body = in_root_axes(s.tree, s.q, s.v, "DeNOC")[link]
        k, w = 6 * link.index, np.array(list(body.t.ang))
        J = np.array(body.M.J.m)
        M[k : k + 3, k : k + 3] = J
        M[k + 3 : k + 6, k + 3 : k + 6] = body.M.m * np.eye(3)
        M_dot[k : k + 3, k : k + 3] = np.cross(w, J.T).T  # ω~J: the convective rate of Saha 1999 eq. 8
    np.testing.assert_allclose(
        denoc.convective_matrix(s.tree, s.q, s.v), N.T @ (M @ N_dot + M_dot @ N), atol=1e-6 * np.abs(s.M).max()
    )


def test_reverse_gaussian_elimination() -> None:
    """I = UDU* with U unit upper triangular; D and U are those of the articulated bodies (Saha 1999 appendix B)."""
    s = State(15, 6, ("revolute", "prismatic"), branching=0.0)
    U, D = denoc.reverse_gaussian_elimination(s.M.tolist())
    np.testing.assert_allclose(np.array(U) @ np.diag(D) @ np.array(U).T, s.M, atol=1e-12)
    joints = articulated_body.articulate(s.tree, s.q)
    np.testing.assert_allclose(D, [joints[link].D[0][0] for link in s.tree], rtol=1e-9)
    np.testing.assert_allclose(U, articulated_body.innovations_factor(s.tree, s.q, joints), atol=1e-9)


# ------------------------------------------------------------------------------------------------------------
# Featherstone 2000


def test_bases_of_motion_and_force() -> None:
    """T*S = 0, and together they span everything (Featherstone 2000 §3.5)."""
    s = State(16, 6)
    S, T = np.array(global_bases.motion_basis(s.tree, s.q)), np.array(global_bases.force_basis(s.tree, s.q))
    assert S.shape[1] + T.shape[1] == 6 * len(s.tree.links)
    assert np.abs(T.T @ S).max() < 1e-12
    assert np.linalg.matrix_rank(S) == S.shape[1]
    assert np.linalg.matrix_rank(T) == T.shape[1]


def test_kkt_system_solved_whole() -> None:
    """Featherstone 2000 eq. 27 by a dense solver: accelerations a = a₀ + Sq̈."""
    s = State(17, 5, armature=0.0)
    A, b = sparse_kkt.kkt_system(s.tree, s.q, s.v, s.x)
    a = np.linalg.solve(np.array(A, float), np.array(b, float))[: 6 * len(s.tree.links)]
    S = np.array(global_bases.motion_basis(s.tree, s.q))
    qddot = np.array(sparse_kkt.forward_dynamics(s.tree, s.q, s.v, s.x))
    a_0 = _solve_for_rest(s) - S @ qddot
    np.testing.assert_allclose(a, a_0 + S @ qddot, atol=1e-8 * np.abs(a).max())


def _solve_for_rest(s: State) -> np.ndarray:
    """Spatial accelerations of the true motion, base accelerating upwards."""
    from linkwise.classics.terms import spatial_terms

    qddot = run("articulated_body", s.model, s.q, s.v, s.x).tolist()
    terms = spatial_terms(s.tree, s.q, s.v)
    a = outward(
        s.tree,
        lambda link, a: link.phi(s.q).T @ a + terms[link].c + combination(link.S(s.q), link.rates(qddot)),
        base_acceleration(s.tree),
    )
    return np.concatenate([list(a[link]) for link in s.tree])


def test_perfect_elimination_order() -> None:
    """Eliminating body, joint, parent's body, … from the tips makes no entry where the matrix had none (Baraff)."""
    s = State(18, 5, ("revolute",), armature=0.0)
    A, _ = sparse_kkt.kkt_system(s.tree, s.q, s.v, s.x)
    n = len(s.tree.links)
    blocks: dict[str, list[int]] = {}
    row = 6 * n
    for link in s.tree:
        blocks[f"body{link.index}"] = list(range(6 * link.index, 6 * link.index + 6))
        blocks[f"joint{link.index}"] = list(range(row, row + 5))
        row += 5
    pattern = {a: {b for b in blocks if np.any(np.array(A)[np.ix_(blocks[a], blocks[b])])} for a in blocks}
    order = [f"{what}{k}" for k in reversed(range(n)) for what in ("body", "joint")]
    for k, name in enumerate(order):
        left = pattern[name] & set(order[k + 1 :])
        # the only neighbour still there is the next one inwards: no two unknowns get joined that were not
        assert len(left) <= 1
    assert len(order) == len(blocks)


def test_block_tridiagonal_solver() -> None:
    rng = np.random.default_rng(0)
    for sizes in ([3], [2, 4], [5, 0, 5, 3], [1, 2, 3, 4, 5, 6, 0], [5] * 8):
        ends = np.cumsum([0, *sizes])
        A = np.zeros((ends[-1], ends[-1]))
        beside = []
        for i in range(len(sizes) - 1):
            block = rng.normal(size=(sizes[i], sizes[i + 1]))
            beside.append(block.tolist())
            A[ends[i] : ends[i + 1], ends[i + 1] : ends[i + 2]] = block
        A = A + A.T + 20 * np.eye(ends[-1])
        b = rng.normal(size=ends[-1])
        diagonal = [A[i:j, i:j].tolist() for i, j in pairwise(ends)]
        right = [b[i:j].tolist() for i, j in pairwise(ends)]
        x = constraint_force.odd_even_reduction(diagonal, beside, right)
        np.testing.assert_allclose(np.concatenate([np.array(part) for part in x]), np.linalg.solve(A, b), atol=1e-12)


def test_divide_and_conquer_is_log_deep() -> None:
    """n bodies of a chain and the base are joined in ⌈log₂(n + 1)⌉ rounds."""

    def depth(piece: divide_and_conquer.Piece) -> int:
        inner = max(map(depth, piece.parts), default=0)
        return inner + 1 if len(piece.parts) == 2 else inner

    for n in (1, 2, 5, 16, 33):
        s = State(n, n, ("revolute",), branching=0.0)
        whole = divide_and_conquer.assembled(s.tree, s.q, s.v, s.x)
        assert depth(whole) == math.ceil(math.log2(n + 1))
        assert not whole.b


def test_force_propagation_gives_the_operational_space_inertia() -> None:
    """Lilly and Orin's Λ⁻¹(k) = J_k 𝓜⁻¹ J_k*, with J and 𝓜 written out."""
    s = State(23, 7, branching=0.4, armature=0.3)
    ops = s.model.operators(s.arrays[0])
    J = (ops.phi.T @ ops.H.T).dense()
    found = lilly_orin.force_propagation(s.tree, s.q)
    for link in s.tree:
        own = J[6 * link.index : 6 * link.index + 6]
        expected = own @ np.linalg.solve(s.M, own.T)
        np.testing.assert_allclose(found[link], expected, rtol=0, atol=1e-11 * np.abs(expected).max())


def test_featherstone_as_printed_is_wrong() -> None:
    """Featherstone 2000 eq. 12 prints τ_i (of the parent) where the child's τ_j belongs; tip forces reach the base."""
    s = State(19, 2, ("revolute",), branching=0.0, armature=0.0)
    still = run("featherstone_link", s.model, s.q, s.v, [0.0, 0.0])
    pushed = run("featherstone_link", s.model, s.q, s.v, [0.0, 1.0])
    Minv = np.linalg.inv(s.M)
    np.testing.assert_allclose(pushed - still, Minv[:, 1], rtol=1e-9)
    assert abs(Minv[0, 1]) > 1e-6  # with τ_i in its place, joint 0 would not feel τ_1 through p^A


@pytest.mark.parametrize("name", ["articulated_body", "featherstone_absolute", "rodriguez"])
def test_floating_base(name: str) -> None:
    """A joint of six freedoms between the base and the inertial frame takes care of a mobile base (Jain 1991 §2)."""
    rng = np.random.default_rng(4)
    b = lw.ModelBuilder("satellite", gravity=(0, 0, 0))
    b.add_body("hull", joint=lw.Free(), mass=10.0, inertia=np.eye(3))
    b.add_body(
        "arm", parent="hull", joint=lw.Revolute(axis=(0, 1, 0)), mass=1.0, com=(0.5, 0, 0), inertia=np.eye(3) * 0.1
    )
    model = b.build()
    q, v, _ = random_state(model, rng)
    vdot = run(name, model, q, v)
    # nothing acts from outside: the momentum stays
    h = 1e-6
    after = model.momentum(model.integrate(q, h * v), v + h * vdot)
    before = model.momentum(model.integrate(q, -h * v), v - h * vdot)
    assert np.abs(after - before).max() / (2 * h) < 1e-6
