"""Bodies from matrices, and what is said about matrices that cannot be."""

import numpy as np
import pytest
from scipy import linalg, sparse

from linkwise.errors import InputError, LinkwiseError, ModelError
from linkwise.flexible import FlexibleBody, check
from linkwise.flexible.nodal import nodal_structure
from linkwise.flexible.structure_checks import check_structure
from tests.flexible import textbook

L, EA, EI_y, EI_z, GJ, MU = 10.0, 2.8e7, 1.4e4, 2.0e4, 1e4, 1.2


def ours(**options):
    return FlexibleBody.beam(L, EA, (EI_y, EI_z), GJ, MU, **{"elements": 10, "modes": 3, "axial_modes": 0, **options})


def test_textbook_matrices_give_the_beam():
    nodes, M, K = textbook.beam(10)
    theirs = FlexibleBody.from_arrays(nodes, M, K, root=0, keep={"tip": 10}, modes=6)
    beam = ours()
    np.testing.assert_allclose(theirs.frequencies, beam.frequencies, rtol=1e-8)
    np.testing.assert_allclose(np.abs(theirs.node("tip").Gamma), np.abs(beam.node("tip").Gamma), atol=1e-7)
    np.testing.assert_allclose(np.abs(theirs.node("tip").Lambda), np.abs(beam.node("tip").Lambda), atol=1e-7)
    np.testing.assert_allclose(np.abs(theirs.integrals.A0), np.abs(beam.integrals.A0), atol=1e-6)
    np.testing.assert_allclose(np.abs(theirs.integrals.h1), np.abs(beam.integrals.h1), atol=1e-6)
    assert not theirs.stiffening
    with pytest.warns(UserWarning, match="no geometric stiffening"):
        theirs.check_spin(10.0)


def test_lumping_for_terms_in_the_deformation_errs_as_the_square_of_the_element():
    """A consistent M with rotations leaves ∫ΓΓ to masses lumped at the nodes."""
    errors = []
    for n in (10, 20, 40):
        nodes, M, K = textbook.beam(n)
        theirs = FlexibleBody.from_arrays(nodes, M, K, root=0, modes=4)
        errors.append(np.abs(np.abs(theirs.integrals.J2) - np.abs(ours(elements=n, modes=2).integrals.J2)).max())
    np.testing.assert_allclose(np.log2(np.array(errors[:-1]) / errors[1:]), 2.0, atol=0.2)


@pytest.mark.parametrize("as_kind", [np.asarray, sparse.csr_array, sparse.coo_matrix], ids=["dense", "csr", "coo"])
def test_kinds_of_matrices_and_nodes(as_kind):
    nodes, M, K = textbook.beam(4)
    keyed = {100 + k: position for k, position in enumerate(nodes)}
    dofs = [(100 + k, c) for k in range(5) for c in range(1, 7)]
    order = np.random.default_rng(0).permutation(30)
    body = FlexibleBody.from_arrays(
        keyed, as_kind(M[np.ix_(order, order)]), as_kind(K[np.ix_(order, order)]), root=100, keep=[104],
        dofs=[dofs[k] for k in order], modes=4,
    )  # fmt: skip
    plain = FlexibleBody.from_arrays(nodes, M, K, root=0, keep=[4], modes=4)
    np.testing.assert_allclose(body.frequencies, plain.frequencies, rtol=1e-9)
    np.testing.assert_allclose(np.abs(body.node(104).Gamma), np.abs(plain.node(4).Gamma), atol=1e-8)


def test_geometric_stiffness_under_unit_loads_stiffens_as_our_beam():
    """K_geo of the textbook's elements: 1 N/kg along x, x N/kg along x, and 1 N at the tip, all of them axial."""
    n = 40
    loads = {"x": lambda x: MU * (L - x), "xx": lambda x: MU * (L**2 - x**2) / 2, ("tip", "x"): lambda x: 1.0}
    K_geo = {key: textbook.beam(n, axial=force)[3] for key, force in loads.items()}
    nodes, M, K = textbook.beam(n)
    named = {"root" if k == 0 else "tip" if k == n else k: position for k, position in enumerate(nodes)}
    theirs = FlexibleBody.from_arrays(named, M, K, root="root", keep=["tip"], K_geo=K_geo, modes=4)
    beam = ours(elements=n, modes=2)
    assert theirs.stiffening
    np.testing.assert_allclose(np.abs(theirs.node("tip").Q), np.abs(beam.node("tip").Q), atol=1e-6)
    np.testing.assert_allclose(
        np.abs(theirs.integrals.h2), np.abs(beam.integrals.h2), atol=1e-3 * np.abs(beam.integrals.h2).max()
    )
    np.testing.assert_allclose(
        np.diag(theirs.integrals.J_second[2, 2]), np.diag(beam.integrals.J_second[2, 2]), rtol=1e-3, atol=1e-3
    )


def test_lumped_masses_with_inertia_and_offset_are_exact():
    """Rigid pieces on massless springs: every order of T against the pieces themselves."""
    rng = np.random.default_rng(2)
    nodes, _, K = textbook.beam(3, L=3.0)
    M = np.zeros((24, 24))
    pieces = []
    for k in range(4):
        m, c = 1.0 + k, 0.1 * rng.standard_normal(3)
        points = c + 0.2 * rng.standard_normal((5, 3))
        c = points.mean(axis=0)
        block = np.zeros((6, 6))
        for p in points:
            row = np.hstack([np.eye(3), -np.cross(np.eye(3), p).T @ np.eye(3)])
            lever = np.array([[0, p[2], -p[1]], [-p[2], 0, p[0]], [p[1], -p[0], 0]])  # θ×p = lever θ
            row = np.hstack([np.eye(3), lever])
            block += m / 5 * row.T @ row
        M[6 * k : 6 * k + 6, 6 * k : 6 * k + 6] = block
        pieces.append((nodes[k], points, m / 5))
    body = FlexibleBody.from_arrays(nodes, M, K, root=0, keep=[1, 2, 3], modes=5)
    eta, eta_dot, V = 0.01 * rng.standard_normal(5), rng.standard_normal(5), rng.standard_normal(6)
    energy = 0.0
    for k, (node, points, dm) in enumerate(pieces):
        here = body.node(k)
        for p in points:
            move = here.Gamma + np.cross(here.Lambda.T, p).T
            velocity = V[3:] + np.cross(V[:3], node + p + move @ eta) + move @ eta_dot
            energy += 0.5 * dm * velocity @ velocity
    # Six particles stand for five: same mass, centre and second moments, so T is the same to every order.
    assert body.kinetic_energy(eta, eta_dot, V) == pytest.approx(energy, rel=1e-9)


def test_modes_from_elsewhere():
    nodes, M, K = textbook.beam(6)
    held = np.arange(6, 42)
    squared, shapes = linalg.eigh(K[np.ix_(held, held)], M[np.ix_(held, held)])
    full = np.zeros((42, 4))
    full[held] = shapes[:, :4]
    body = FlexibleBody.from_arrays(nodes, M, K, root=0, shapes=full)
    np.testing.assert_allclose(body.frequencies, np.sqrt(squared[:4]) / (2 * np.pi), rtol=1e-7)
    full[:, 1] += 0.3 * full[:, 0]
    with pytest.warns(UserWarning, match="not orthogonal.*|modes 0 and 1"):
        skewed = FlexibleBody.from_arrays(nodes, M, K, root=0, shapes=full)
    np.testing.assert_allclose(skewed.frequencies, body.frequencies, rtol=1e-7)
    with pytest.raises(InputError, match=r"\(42, m\)"):
        FlexibleBody.from_arrays(nodes, M, K, root=0, shapes=full[:40])


def test_the_check_tells_what_a_model_is_like():
    nodes, M, K = textbook.beam(5)
    found = check_structure(nodal_structure(nodes + np.array([1.0, 2.0, 3.0]), M, K))
    assert found.mass == pytest.approx(12.0)
    np.testing.assert_allclose(found.com, [6.0, 2.0, 3.0], rtol=1e-12)
    np.testing.assert_allclose(np.diag(found.inertia), [0.01, 100.0, 100.0], rtol=1e-9)
    assert found.rigid_energy.max() < 1e-12
    assert "mass 12 kg" in found.report()
    whole = check(nodes, M, K)
    squared = linalg.eigh(K, M, eigvals_only=True)
    assert max(whole.free_hz[:6]) < 1e-3 * whole.free_hz[6]
    np.testing.assert_allclose(whole.free_hz[6:], np.sqrt(squared[6:12]) / (2 * np.pi), rtol=1e-6)
    assert "lowest free frequencies" in whole.report()


# ----------------------------------------------------------------------------------------------------------- bad input


def changed(**entries):
    nodes, M, K = textbook.beam(4)
    arrays = {"nodes": nodes, "M": M, "K": K}
    for name, change in entries.items():
        arrays[name] = change(arrays[name].copy())
    return arrays["nodes"], arrays["M"], arrays["K"]


def put(i, j, value):
    def change(matrix):
        matrix[i, j] = value
        return matrix

    return change


def _indefinite(M):
    """A little taken off where two nodes stretch against each other: the same mass, an eigenvalue below zero."""
    for row, column, sign in ((6, 6, -1), (12, 12, -1), (6, 12, 1), (12, 6, 1)):
        M[row, column] += sign * 1.5
    return M


def grounded(K):
    K[12 + 1, 12 + 1] += 1e3
    return K


def cut(K):
    K = K.copy()
    k, _ = textbook.element(2.5, EA, EI_y, EI_z, GJ, MU, 1e-3)
    K[6:18, 6:18] -= k
    K[np.abs(K) < 1e-6] = 0.0
    return K


@pytest.mark.parametrize(
    ("arrays", "texts"),
    [
        (changed(K=put(7, 13, 5e5)), ["K is not symmetric", "node 1 ty", "node 2 ty"]),
        (changed(M=put(8, 9, 5.0)), ["M is not symmetric", "node 1 tz", "rx"]),
        (changed(M=put(7, 7, -1.0)), ["M is not positive", "node 1 ty"]),
        (changed(M=lambda M: _indefinite(M)), ["M is not positive semidefinite", "negative eigenvalues"]),
        (changed(K=grounded), ["not free", "node 2"]),
        (changed(nodes=lambda nodes: nodes[:, [1, 0, 2]]), ["not free"]),
        (changed(K=cut), ["falls into 2 parts", "node 0"]),
        (changed(K=put(3, 3, np.nan)), ["K is not finite", "row 3"]),
        (changed(M=lambda M: M * 0), ["no mass"]),
        (changed(M=lambda M: M * np.where(np.arange(30) % 6 == 0, 2.0, 1.0)[:, None]), ["mass is not the same", "24"]),
        (changed(nodes=lambda nodes: nodes[:4]), ["do not fit the nodes", "30 rows for 4 nodes", "nodes are missing"]),
        (changed(nodes=lambda nodes: nodes[:, :2]), ["not points"]),
        (changed(nodes=put(2, 0, np.inf)), ["not at a finite place", "node 2"]),
        (changed(M=lambda M: M[:-6, :-6]), ["wrong shape", "(24, 24)"]),
        (changed(K=lambda K: K[:, :-6]), ["wrong shape"]),
        (changed(K=lambda K: K.astype(complex) * 1j), ["real numbers"]),
    ],
)
def test_matrices_that_cannot_be(arrays, texts):
    with pytest.raises(LinkwiseError) as error:
        FlexibleBody.from_arrays(*arrays, root=0, modes=2)
    for text in texts:
        assert text in str(error.value)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"root": 9}, "no node of this name"),
        ({"root": []}, "empty"),
        ({"root": 1.5}, "no node"),
        ({"root": 0, "keep": ["tip"]}, "no node of this name"),
        ({"root": 0, "dofs": [(0, 1)]}, "does not name every row"),
        ({"root": 0, "dofs": [(k // 6, k % 6) for k in range(30)]}, "1 to 6"),
        ({"root": 0, "dofs": [(k // 6 + 1, k % 6 + 1) for k in range(30)]}, "node that is missing"),
        ({"root": 0, "dofs": [(0, 1)] * 30}, "the same dof"),
        ({"root": 0, "K_geo": {"X": np.zeros((30, 30))}}, "geometric stiffness"),
        ({"root": 0, "K_geo": {"x": np.zeros((3, 3))}}, "wrong shape"),
        ({"root": 0, "moodes": 3}, "did you mean 'modes'"),
    ],
)
def test_arguments_that_cannot_be(options, text):
    nodes, M, K = textbook.beam(4)
    with pytest.raises(LinkwiseError, match=text):
        FlexibleBody.from_arrays(nodes, M, K, **options)


def test_a_mechanism_is_found_and_placed():
    """A hinge in the middle: no stiffness against one rotation between two halves."""
    nodes = textbook.beam(2)[0]
    split = {0: nodes[0], 1: nodes[1], 2: nodes[1] + [1e-9, 0, 0], 3: nodes[2]}
    k, m = textbook.element(5.0, EA, EI_y, EI_z, GJ, MU, 1e-3)
    K4, M4 = np.zeros((24, 24)), np.zeros((24, 24))
    for at in (np.arange(0, 12), np.arange(12, 24)):
        K4[np.ix_(at, at)] += k
        M4[np.ix_(at, at)] += m
    for c in (0, 1, 2, 3, 4):
        pair = np.ix_([6 + c, 12 + c], [6 + c, 12 + c])
        K4[pair] += 1e6 * np.array([[1, -1], [-1, 1]])
    with pytest.raises(ModelError, match="7 motions without stiffness"):
        check(split, M4, K4)
    with pytest.raises(ModelError, match=r"mechanism[\s\S]*node [123]"):
        FlexibleBody.from_arrays(split, M4, K4, root=0, modes=2)


def test_units_are_suspected():
    nodes, M, K = textbook.beam(4)
    with pytest.warns(UserWarning, match="are the units SI"):
        FlexibleBody.from_arrays(
            nodes * 1000, *(_in_mm(each, power) for each, power in ((M, 1e-3), (K, 1.0))), root=0, modes=2
        )
    with pytest.warns(UserWarning, match="faster than in any solid"):
        FlexibleBody.from_arrays(nodes, M, K * 1e12, root=0, modes=2)


def _in_mm(matrix, factor):
    """Tonnes, millimetres, newtons: rotations keep their unit, so their rows scale by 1000 against displacements."""
    scale = np.where(np.arange(len(matrix)) % 6 < 3, 1.0, 1000.0)
    return factor * 1e-3**0 * scale[:, None] * matrix * scale * (1e-3 if factor == 1.0 else 1.0)
