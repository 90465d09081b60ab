"""Bodies from meshes, against scikit-fem's own eigenvalues, beam theory and the beam builder."""

import numpy as np
import pytest
from scipy import linalg
from scipy.sparse.linalg import eigsh

from linkwise.errors import InputError, ModelError, UnknownNameError
from linkwise.flexible import FlexibleBody
from linkwise.flexible.integrals import modal_integrals
from linkwise.flexible.solid import SolidStructure

skfem = pytest.importorskip("skfem")

E, NU, RHO = 7e10, 0.33, 2700.0
L, B, H = 1.0, 0.05, 0.02
ALUMINIUM = {"E": E, "nu": NU, "density": RHO}


def bar(nx=20, ny=1, nz=1, length=L, kind=None):
    grid = (np.linspace(0, length, nx + 1), np.linspace(-B / 2, B / 2, ny + 1), np.linspace(-H / 2, H / 2, nz + 1))
    return (kind or skfem.MeshHex).init_tensor(*grid)


def root(x):
    return x[0] < 1e-9


def tip(x):
    return x[0] > L - 1e-9


def elasticity(mesh, element):
    """K and M as scikit-fem's own models assemble them."""
    from skfem.models.elasticity import lame_parameters, linear_elasticity

    basis = skfem.Basis(mesh, skfem.ElementVector(element), intorder=4)
    mass = skfem.BilinearForm(lambda u, v, w: RHO * sum(u[i] * v[i] for i in range(3)))
    return linear_elasticity(*lame_parameters(E, NU)).assemble(basis), mass.assemble(basis), basis


@pytest.mark.parametrize(
    ("mesh", "element", "expected", "free"),
    [
        (bar(), "ElementHex2", (16.550, 41.254), 104.60),
        (bar(40, 2, 1, kind=skfem.MeshTet), "ElementTetP2", (16.551, 41.190), 104.57),
    ],
    ids=["Hex2", "Tet2"],
)
def test_frequencies_are_those_of_the_library_itself(mesh, element, expected, free):
    body = FlexibleBody.from_mesh(mesh, **ALUMINIUM, root=root, nodes={"tip": tip}, modes=6, stiffening=False)
    K, M, basis = elasticity(mesh, getattr(skfem, element)())
    held = np.unique(np.concatenate([np.flatnonzero(root(basis.doflocs))]))
    inner = np.setdiff1d(np.arange(basis.N), held)
    squared = np.sort(
        eigsh(K[inner][:, inner].tocsc(), 6, M[inner][:, inner].tocsc(), sigma=0.0, return_eigenvectors=False)
    )
    np.testing.assert_allclose(body.frequencies, np.sqrt(squared) / (2 * np.pi), rtol=1e-8)
    np.testing.assert_allclose(body.frequencies[:2], expected, atol=6e-4)
    assert body.mass == pytest.approx(RHO * L * B * H, rel=1e-10)
    np.testing.assert_allclose(body.com, [L / 2, 0, 0], atol=1e-10)
    np.testing.assert_allclose(
        np.diag(body.inertia) / body.mass, [(B**2 + H**2) / 12, (L**2 + H**2) / 12, (L**2 + B**2) / 12], rtol=1e-9
    )
    floating = FlexibleBody.from_mesh(mesh, **ALUMINIUM, root=root, boundary="free", modes=3, stiffening=False)
    assert floating.frequencies[0] == pytest.approx(free, rel=5e-3)  # the root face is tied here, free in the table


def test_craig_bampton_of_a_bar():
    """Twelve interface motions and eight modes: the free body keeps the full model's free frequencies."""
    body = FlexibleBody.from_mesh(
        bar(), **ALUMINIUM, root=root, interfaces={"tip": tip}, boundary="craig-bampton", modes=8, stiffening=False
    )
    assert body.modes == 14
    np.testing.assert_allclose(body.free_frequencies[:3], (104.638, 259.7, 288.3), rtol=1e-3)
    assert dict(body.reduction.static_error)["tip"] < 1e-8


def test_tip_of_a_bar_moves_and_turns_as_beam_theory_says():
    body = FlexibleBody.from_mesh(bar(), **ALUMINIUM, root=root, nodes={"tip": tip}, modes=2, stiffening=False)
    first = body.node("tip").Gamma[2, 0], body.node("tip").Lambda[1, 0]
    # Clamped-free: slope at the tip over deflection there is 1.3765 / L.
    assert -first[1] / first[0] == pytest.approx(1.3765 / L, rel=5e-3)  # and 0.6 % of the frequency: clamping in 3-D


def test_second_order_of_a_bar_is_a_beams_foreshortening():
    mesh = bar(16, length=1.0)
    solid = FlexibleBody.from_mesh(mesh, **ALUMINIUM, root=root, nodes={"tip": tip}, modes=2)
    beam = FlexibleBody.beam(
        L, E * B * H, (E * B * H**3 / 12, E * H * B**3 / 12), 1e9, RHO * B * H, modes=1, axial_modes=0
    )
    assert solid.stiffening
    for mode in range(2):
        ratio = np.abs(solid.node("tip").Gamma[:, mode]).max() / np.abs(beam.node("tip").Gamma[:, mode]).max()
        assert solid.node("tip").Q[0, mode, mode] / ratio**2 == pytest.approx(
            beam.node("tip").Q[0, mode, mode], rel=1e-2
        )
        ours, theirs = solid.integrals.J_second[2, 2], beam.integrals.J_second[2, 2]
        assert ours[mode, mode] == pytest.approx(theirs[mode, mode], abs=1.5e-2)  # of 2.4 from Q, 2 from Γ


@pytest.mark.parametrize(("gamma", "expected"), [(1.0, 3.681647), (6.0, 7.360373)])
def test_rotating_bar(gamma, expected):
    """Flapping about the thin direction, in units of the frequency at rest, against the table for a thin beam."""
    body = FlexibleBody.from_mesh(bar(20), **ALUMINIUM, root=root, modes=5)
    omega_1 = 2 * np.pi * body.frequencies[0]
    rate = gamma * omega_1 / 3.516015
    K = body.stiffness - 0.5 * rate**2 * body.integrals.J_second[2, 2]
    spun = np.sqrt(linalg.eigh(K, body.integrals.Me, eigvals_only=True))
    # Flapping (along z) is the lower pair for this section; in-plane starts 2.5 times higher.
    assert spun[0] / omega_1 == pytest.approx(expected / 3.516015, rel=5e-3)


def test_reciprocity_with_the_geometric_stiffness_under_a_load():
    """F·Q_j = -Φ*K_G(F)Φ with K_G from the stress of the load, assembled here by scikit-fem from the same mesh."""
    from skfem.helpers import ddot, grad, mul, trace, transpose

    mesh = bar(4)
    body = FlexibleBody.from_mesh(mesh, **ALUMINIUM, root=root, nodes={"tip": tip}, modes=3)
    K, M, basis = elasticity(mesh, skfem.ElementHex2())
    held = np.flatnonzero(root(basis.doflocs))
    inner = np.setdiff1d(np.arange(basis.N), held)
    at_tip = tip(basis.doflocs)
    # A mean force along x on the tip face: what the body's node, the mean of the face's nodes, feels.
    load = np.zeros(basis.N)
    along_x = np.zeros(basis.N, dtype=bool)
    along_x[basis.split_indices()[0]] = True
    load[at_tip & along_x] = 1.0 / (at_tip & along_x).sum()
    u = np.zeros(basis.N)
    u[inner] = linalg.solve(K[inner][:, inner].toarray(), load[inner], assume_a="pos")
    lam, mu = E * NU / ((1 + NU) * (1 - 2 * NU)), E / (2 * (1 + NU))

    @skfem.BilinearForm
    def geometric(p, q, w):
        strain = 0.5 * (grad(w["u"]) + transpose(grad(w["u"])))
        stress = 2 * mu * strain
        for i in range(3):
            stress[i, i] += lam * trace(strain)
        return ddot(mul(grad(p), stress), grad(q))

    K_G = geometric.assemble(basis, u=basis.interpolate(u))
    squared, shapes = linalg.eigh(K[inner][:, inner].toarray(), M[inner][:, inner].toarray(), subset_by_index=[0, 2])
    np.testing.assert_allclose(np.sqrt(squared) / (2 * np.pi), body.frequencies, rtol=1e-7)
    modal = -shapes.T @ K_G[inner][:, inner] @ shapes
    ours = body.node("tip").Q[0]
    np.testing.assert_allclose(np.diag(ours), np.diag(modal), rtol=1e-6)
    np.testing.assert_allclose(np.abs(ours), np.abs(modal), atol=1e-6 * np.abs(modal).max())


def test_mass_integrals_of_a_mesh_are_those_over_its_points():
    """Every integral with Γ, by quadrature points of the deformed solid and scikit-fem's interpolation."""
    mesh = bar(4)
    structure = SolidStructure(mesh, E, NU, RHO)
    rng = np.random.default_rng(0)
    shapes = rng.standard_normal((structure.size, 2))
    ours = modal_integrals(structure.samples(shapes, None))
    basis = skfem.Basis(mesh, skfem.ElementHex2(), intorder=6)
    x = np.asarray(basis.global_coordinates()).reshape(3, -1)
    dm = RHO * basis.dx.ravel()
    G = np.array([[np.asarray(basis.interpolate(shapes[a::3, i])).ravel() for i in range(2)] for a in range(3)])
    eta, eta_dot, V = rng.standard_normal(2), rng.standard_normal(2), rng.standard_normal(6)
    velocity = (
        V[3:, None] + np.cross(V[:3], (x + np.einsum("ain,i->an", G, eta)).T).T + np.einsum("ain,i->an", G, eta_dot)
    )
    rates = np.concatenate([eta_dot, V])
    assert 0.5 * rates @ ours.mass_matrix(eta) @ rates == pytest.approx(0.5 * dm @ (velocity**2).sum(axis=0), rel=1e-11)


def bracket(n):
    """An L of two legs 0.2 × 0.1 × 0.04 m."""
    mesh = skfem.MeshHex.init_tensor(
        np.linspace(0, 0.2, 5 * n + 1), np.linspace(0, 0.1, 2 * n + 1), np.linspace(0, 0.2, 5 * n + 1)
    )
    centre = mesh.p[:, mesh.t].mean(axis=1)
    return mesh.remove_elements(np.flatnonzero((centre[0] > 0.04) & (centre[2] > 0.04)))


def far(x):
    return x[0] > 0.2 - 1e-9


def test_small_bracket_with_named_boundary_and_point():
    mesh = bracket(1).with_boundaries({"flange": far})
    body = FlexibleBody.from_mesh(mesh, **ALUMINIUM, root="flange", nodes={"corner": (0.0, 0.0, 0.2)}, modes=4)
    by_test = FlexibleBody.from_mesh(mesh, **ALUMINIUM, root=far, modes=4, stiffening=False)
    np.testing.assert_allclose(body.frequencies, by_test.frequencies, rtol=1e-10)
    np.testing.assert_allclose(body.com + np.array([0.2, 0.05, 0.02]), mesh_centre(mesh), atol=1e-12)


def mesh_centre(mesh):
    return mesh.p[:, mesh.t].mean(axis=(1, 2))


@pytest.mark.slow
def test_bracket_of_ten_thousand_nodes():
    mesh = bracket(4)
    K, M, basis = elasticity(mesh, skfem.ElementHex2())
    assert basis.N // 3 > 10_000
    body = FlexibleBody.from_mesh(mesh, **ALUMINIUM, root=far, nodes={"top": lambda x: x[2] > 0.2 - 1e-9}, modes=6)
    inner = np.setdiff1d(np.arange(basis.N), np.flatnonzero(far(basis.doflocs)))
    squared = np.sort(
        eigsh(K[inner][:, inner].tocsc(), 6, M[inner][:, inner].tocsc(), sigma=0.0, return_eigenvectors=False)
    )
    np.testing.assert_allclose(body.frequencies, np.sqrt(squared) / (2 * np.pi), rtol=1e-8)


# ----------------------------------------------------------------------------------------------------------- bad input


def test_bad_meshes():
    options = {**ALUMINIUM, "root": root, "modes": 2}
    with pytest.raises(InputError, match="holds no node"):
        FlexibleBody.from_mesh(bar(2), **{**options, "root": lambda x: x[0] > 5})
    with pytest.raises(InputError, match="not a test of points"):
        FlexibleBody.from_mesh(bar(2), **{**options, "root": lambda x: x[0]})
    with pytest.raises(InputError, match="do not fix a rotation"):
        FlexibleBody.from_mesh(bar(2), **{**options, "root": 0})
    with pytest.raises(UnknownNameError, match="boundary of the mesh"):
        FlexibleBody.from_mesh(bar(2), **{**options, "root": "flange"})
    with pytest.raises(InputError, match="not a mesh of solid elements"):
        FlexibleBody.from_mesh(skfem.MeshTri(), **options)
    with pytest.raises(ModelError, match="Poisson"):
        FlexibleBody.from_mesh(bar(2), **{**options, "nu": 0.5})
    with pytest.raises(ModelError, match="density"):
        FlexibleBody.from_mesh(bar(2), **{**options, "density": -1.0})
    with pytest.raises(InputError, match="need names"):
        FlexibleBody.from_mesh(bar(2), **options, interfaces=(tip,))
    with pytest.raises(ModelError, match="falls into 2 parts"):
        two = bar(2) + bar(2).translated((3.0, 0, 0))
        FlexibleBody.from_mesh(two, **options)
    with pytest.raises(ModelError, match="there is no such file"):
        FlexibleBody.from_mesh("absent.msh", **options)


def test_a_mesh_in_millimetres_is_suspected():
    mesh = bar(2).scaled(1000.0)
    with pytest.warns(UserWarning, match="are the units SI"):
        FlexibleBody.from_mesh(mesh, E=7e4, nu=NU, density=2.7e-9, root=root, modes=2, stiffening=False)
