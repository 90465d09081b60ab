"""The moving mass over scalars: the integrals' own mass matrix, and Lagrange's equations of its kinetic energy."""

import numpy as np
import pytest

from linkwise.flexible import FlexibleBody
from linkwise.mechanism.flexible_link import NodeShape
from linkwise.mechanism.moving_mass import MovingMass
from linkwise.spatial.flexible import FlexibleMoving
from linkwise.spatial.moving import RigidMotion
from linkwise.spatial.transforms import Transform
from linkwise.spatial.vectors import Vec
from tests.flexible.lagrange import _WEIGHTS, node_pose
from tests.flexible.mechanisms import small_beam
from tests.flexible.textbook import beam

BODIES = {
    "beam": small_beam,
    "free": lambda: small_beam(boundary="free"),
    "craig-bampton": lambda: small_beam(boundary="craig-bampton", interfaces=("tip",), modes=1),
    "without stiffening": lambda: small_beam(stiffening=False),
    "plate": lambda: FlexibleBody.plate(
        1.0, 0.6, 0.01, E=7e9, nu=0.3, density=2700.0, elements=(3, 2), modes=4, nodes={"corner": (1.0, 0.3)}
    ),
    "arrays": lambda: FlexibleBody.from_arrays(*beam(4, rho_p=0.3), root=0, keep=(4,), modes=4),
    "nodal": lambda: FlexibleBody.from_arrays(*beam(1, L=1.0), root=0, keep=(1,), boundary="nodal"),
}


@pytest.fixture(params=BODIES)
def body(request):
    return BODIES[request.param]()


def slope(function, h):
    return sum(w * (function(k * h) - function(-k * h)) for k, w in _WEIGHTS) / h


def state(body, seed=0):
    rng = np.random.default_rng(seed)
    scale = np.abs(body.random_deformation(rng))
    m = body.modes
    return scale, scale * rng.normal(size=m), scale * rng.normal(size=m), scale * rng.normal(size=m)


def test_mass_matrix(body):
    _, eta, *_ = state(body)
    M = np.array(MovingMass(body.integrals).inertia(eta.tolist()).rows(), float)
    expected = body.integrals.mass_matrix(eta)
    np.testing.assert_allclose(M, expected, rtol=0, atol=1e-12 * np.abs(expected).max())


def test_force_is_lagranges(body):
    """χ = d/dt ∂T/∂η̇ - ∂T/∂η and f = d/dt ∂T/∂V + V ×* ∂T/∂V, with the root's origin at rest for an instant."""
    scale, eta, rate, rate_dot = state(body, 1)
    rng = np.random.default_rng(2)
    omega, omega_dot, a = rng.normal(size=(3, 3))
    moving = FlexibleMoving(
        RigidMotion(*(Vec.of(x.tolist()) for x in (omega, omega_dot, a))),
        tuple(rate.tolist()),
        tuple(rate_dot.tolist()),
    )
    f = MovingMass(body.integrals).wrench(eta.tolist(), moving.root, moving.rate, moving.rate_dot)
    mass = body.integrals.mass_matrix
    x, x_dot = np.concatenate([rate, omega, np.zeros(3)]), np.concatenate([rate_dot, omega_dot, a])
    h = 0.2
    p_dot = mass(eta) @ x_dot + slope(lambda s: mass(eta + s * rate) @ x, h)
    p = mass(eta) @ x
    units = np.eye(body.modes) * scale
    by_eta = np.array([slope(lambda s, u=u: 0.5 * x @ mass(eta + s * u) @ x, h) for u in units]) / scale
    m = body.modes
    N = p_dot[m : m + 3] + np.cross(omega, p[m : m + 3])
    F = p_dot[m + 3 :] + np.cross(omega, p[m + 3 :])
    expected = np.concatenate([p_dot[:m] - by_eta, N, F])
    np.testing.assert_allclose(list(f), expected, rtol=0, atol=1e-10 * np.abs(expected).max())


def test_nodes(body):
    """r(η), the rotation, Π as their rates, and Π̇η̇ as Π's."""
    _, eta, rate, _ = state(body, 3)
    node = body.nodes[-1]
    shape = NodeShape(node)
    factors = shape.factors(eta.tolist())
    R, p = Transform(*factors).matrix()
    X = node_pose(body, node.key, eta)
    np.testing.assert_allclose(R.m, X[:3, :3], atol=1e-14)
    np.testing.assert_allclose(list(p), X[:3, 3], atol=1e-14)
    h = 0.1
    moved = list(factors[0].moved(rate.tolist()))
    X_dot = slope(lambda s: node_pose(body, node.key, eta + s * rate), h)
    W = X_dot[:3, :3] @ X[:3, :3].T
    np.testing.assert_allclose(moved, [W[2, 1], W[0, 2], W[1, 0], *X_dot[:3, 3]], atol=1e-12)

    def at(s):
        return np.array(list(shape.factors((eta + s * rate).tolist())[0].moved(rate.tolist())))

    np.testing.assert_allclose(list(factors[0].bias(rate.tolist())), slope(at, h), atol=1e-11)
