"""A satellite with hinged flexible panels, linearised, against its assembled finite-element model."""

import numpy as np
from scipy import linalg

import linkwise as lw
from tests.flexible.textbook import beam

HUB = {"mass": 20.0, "com": (0.05, -0.02, 0.1), "inertia": np.diag([3.0, 4.0, 5.0])}
PLACES = (
    lw.transform(xyz=(0.5, 0.1, 0.0), rpy=(0.3, 0.0, 0.2)),
    lw.transform(xyz=(-0.5, 0.0, 0.2), rpy=(0.0, 0.4, np.pi)),
)
HINGE = 7.0  # N m/rad
PANEL = {"n": 2, "L": 3.0, "EA": 2e4, "EI_y": 40.0, "EI_z": 90.0, "GJ": 25.0, "mu": 1.5, "rho_p": 0.02}


def test_frequencies_of_the_assembled_model():
    model, stiffness = satellite()
    M, K = model.mass_matrix(model.neutral()), stiffness
    found = linalg.eigh(K, M, eigvals_only=True)
    expected = linalg.eigh(*assembled(), eigvals_only=True)
    assert len(found) == len(expected)
    assert np.abs(found[:6]).max() < 1e-6 * expected[6]
    np.testing.assert_allclose(np.sqrt(found[6:]), np.sqrt(expected[6:]), rtol=1e-6)


def satellite():
    """The model with its panels in nodal form, and the stiffness of all its coordinates."""
    nodes, M, K = beam(**PANEL)
    panel = lw.FlexibleBody.from_arrays(nodes, M, K, root=0, keep=(2,), boundary="nodal")
    b = lw.ModelBuilder("satellite", gravity=(0, 0, 0))
    b.add_body("hub", joint=lw.Free(), **HUB)
    for k, place in enumerate(PLACES):
        b.add_body(f"panel{k}", parent="hub", joint=lw.Revolute(axis=(0, 1, 0)), placement=place, flexible=panel)
    model = b.build()
    stiffness = np.asarray(model.function("gravity_force").jacobian("q")(model.neutral()))
    for k in range(2):
        at = model.joints[f"panel{k}_joint"].v_slice.start
        stiffness[at, at] += HINGE
    return model, stiffness


def assembled():
    """K and M over [hub ω, v; for each panel its hinge angle and the free nodes' displacements in hub axes]."""
    nodes, M, K = beam(**PANEL)
    free = 6 * (len(nodes) - 1)
    size = 6 + 2 * (1 + free)
    K_all, M_all = np.zeros((size, size)), np.zeros((size, size))
    c = np.array(HUB["com"])
    cross = np.array([[0, -c[2], c[1]], [c[2], 0, -c[0]], [-c[1], c[0], 0]])
    m = HUB["mass"]
    M_all[:3, :3] = HUB["inertia"] - m * cross @ cross
    M_all[:3, 3:6], M_all[3:6, :3] = m * cross, m * cross.T
    M_all[3:6, 3:6] = m * np.eye(3)
    for k, X in enumerate(PLACES):
        first = 6 + k * (1 + free)
        T = np.zeros((len(K), size))  # nodal displacements [u; θ] in panel axes
        R, p = X[:3, :3], X[:3, 3]
        l = np.array([[0, -p[2], p[1]], [p[2], 0, -p[0]], [-p[1], p[0], 0]])
        T[:3, :3], T[:3, 3:6], T[3:6, :3] = -R.T @ l, R.T, R.T
        T[4, first] = 1.0  # the hinge turns the root about y
        T[6:, first + 1 : first + 1 + free] = np.eye(free)
        K_all += T.T @ K @ T
        M_all += T.T @ M @ T
        K_all[first, first] += HINGE
    return K_all, M_all
