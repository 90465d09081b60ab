"""The same texts over other scalars: many digits, symbols, Kane's equations, and closed forms of small mechanisms."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
import pytest
import sympy

import linkwise as lw
from tests.identities.relations import close
from tests.identities.test_parameters import all_names
from tests.oracles.eager import Eager
from tests.random_trees import random_state, random_tree

G = 9.81


def pendulum(mass: float = 1.3, length: float = 0.7, inertia: float = 0.05) -> lw.Model:
    """Hangs along -z at q = 0, swings about y."""
    b = lw.ModelBuilder("pendulum")
    I = np.diag([inertia, inertia, 0.01])
    b.add_body("rod", joint=lw.Revolute((0, 1, 0)), mass=mass, com=(0, 0, -length), inertia=I)
    return b.build()


def two_links() -> lw.Model:
    """Turns about z, then about x, with offsets and full inertias."""
    b = lw.ModelBuilder("two", gravity=(0.0, -3.0, -9.0))
    I1 = [[0.12, 0.01, -0.02], [0.01, 0.1, 0.015], [-0.02, 0.015, 0.09]]
    I2 = [[0.05, -0.004, 0.003], [-0.004, 0.06, 0.002], [0.003, 0.002, 0.07]]
    b.add_body("a", joint=lw.Revolute((0, 0, 1)), mass=2.0, com=(0.1, 0.2, -0.05), inertia=I1)
    b.add_body("b", "a", lw.Revolute((1, 0, 0)), lw.transform((0.3, 0.1, 0.2)), 1.5, (0.02, -0.1, 0.3), I2)
    return b.build()


# Closed forms.
def test_pendulum() -> None:
    m, l, I = 1.3, 0.7, 0.05
    model = pendulum(m, l, I)
    q, v, vdot = np.array([[0.4], [-2.0], [0.0]]), np.array([[1.0], [0.5], [0.0]]), np.array([[0.3], [2.0], [1.0]])
    J = I + m * l * l
    np.testing.assert_allclose(model.inverse_dynamics(q, v, vdot), J * vdot + m * G * l * np.sin(q), rtol=1e-14)
    np.testing.assert_allclose(model.forward_dynamics(q, v, vdot), (vdot - m * G * l * np.sin(q)) / J, rtol=1e-13)
    np.testing.assert_allclose(model.mass_matrix(q)[:, 0, 0], J, rtol=1e-15)
    np.testing.assert_allclose(model.kinetic_energy(q, v), 0.5 * J * v[:, 0] ** 2, rtol=1e-14)
    np.testing.assert_allclose(model.potential_energy(q), -m * G * l * np.cos(q[:, 0]), rtol=1e-14)
    np.testing.assert_allclose(
        model.center_of_mass(q), np.stack([-l * np.sin(q[:, 0]), 0 * q[:, 0], -l * np.cos(q[:, 0])], -1), atol=1e-15
    )


def test_double_pendulum() -> None:
    """Two point masses: the textbook equations, with the second angle counted from the first rod."""
    m1, m2, l1, l2 = 1.0, 2.0, 0.8, 0.5
    b = lw.ModelBuilder("double")
    b.add_body("a", joint=lw.Revolute((0, -1, 0)), mass=m1, com=(0, 0, -l1))
    b.add_body("b", "a", lw.Revolute((0, -1, 0)), lw.transform((0, 0, -l1)), m2, (0, 0, -l2))
    model = b.build()
    q, v, vdot = np.array([0.7, -1.1]), np.array([0.3, 1.9]), np.array([-0.4, 0.6])
    c2, s2 = math.cos(q[1]), math.sin(q[1])
    M22 = m2 * l2**2
    M12 = M22 + m2 * l1 * l2 * c2
    M11 = (m1 + m2) * l1**2 + M22 + 2 * m2 * l1 * l2 * c2
    h = m2 * l1 * l2 * s2
    g2 = m2 * G * l2 * math.sin(q[0] + q[1])
    tau = [
        M11 * vdot[0] + M12 * vdot[1] - h * (2 * v[0] * v[1] + v[1] ** 2) + (m1 + m2) * G * l1 * math.sin(q[0]) + g2,
        M12 * vdot[0] + M22 * vdot[1] + h * v[0] ** 2 + g2,
    ]
    np.testing.assert_allclose(model.inverse_dynamics(q, v, vdot), tau, rtol=1e-13)
    np.testing.assert_allclose(model.mass_matrix(q), [[M11, M12], [M12, M22]], rtol=1e-14)


def test_free_body() -> None:
    """Euler's equations, and gravity that a free body does not feel in its turning."""
    b = lw.ModelBuilder("brick", gravity=(0, 0, -G))
    I = np.diag([0.1, 0.2, 0.25])
    b.add_body("brick", joint=lw.Free(), mass=3.0, inertia=I)
    model = b.build()
    q, v, _ = random_state(model, np.random.default_rng(0))
    R = model.pose(q, "brick")[:3, :3]
    omega, velocity = v[:3], v[3:]
    expected = np.concatenate(
        [-np.linalg.solve(I, np.cross(omega, I @ omega)), R.T @ [0, 0, -G] - np.cross(omega, velocity)]
    )
    np.testing.assert_allclose(model.forward_dynamics(q, v, np.zeros(6)), expected, atol=1e-13)


def test_screw() -> None:
    """A nut on a vertical screw: one freedom, I + m pitch²."""
    pitch, m, I = 0.02, 4.0, 0.3
    b = lw.ModelBuilder("nut")
    b.add_body("nut", joint=lw.Helical(pitch), mass=m, inertia=np.diag([0.2, 0.2, I]))
    model = b.build()
    assert model.inverse_dynamics([0.4], [3.0], [2.0])[0] == pytest.approx((I + m * pitch**2) * 2.0 + m * G * pitch)


def test_bead_on_a_parabola() -> None:
    """A user-defined slide along z = x²: (1 + 4x²) ẍ + 4 x ẋ² + 2 g x = τ/m."""

    def parabola(q: Any) -> Any:
        return [[1, 0, 0, q[0]], [0, 1, 0, 0], [0, 0, 1, q[0] * q[0]], [0, 0, 0, 1]]

    b = lw.ModelBuilder("bead")
    b.add_body("bead", joint=lw.CustomJoint(parabola, n=1, name="parabola"), mass=2.0)
    model = b.build()
    x, v, a = 0.7, -1.3, 0.4
    expected = 2.0 * ((1 + 4 * x * x) * a + 4 * x * v * v + 2 * G * x)
    assert model.inverse_dynamics([x], [v], [a])[0] == pytest.approx(expected, rel=1e-14)
    assert model.forward_dynamics([x], [v], [expected])[0] == pytest.approx(a, rel=1e-13)


# Other people's equations of motion.
def test_kane() -> None:
    """SymPy's KanesMethod on two links in space."""
    from sympy.physics.mechanics import (
        Inertia,
        KanesMethod,
        Point,
        ReferenceFrame,
        RigidBody,
        dynamicsymbols,
        inertia,
    )  # fmt: skip

    model = two_links()
    q1, q2, u1, u2, t1, t2 = dynamicsymbols("q1 q2 u1 u2 t1 t2")
    N, A, B = ReferenceFrame("N"), ReferenceFrame("A"), ReferenceFrame("B")
    A.orient_axis(N, N.z, q1)
    B.orient_axis(A, A.x, q2)
    A.set_ang_vel(N, u1 * N.z)
    B.set_ang_vel(A, u2 * A.x)
    origin = Point("O")
    origin.set_vel(N, 0)
    elbow = origin.locatenew("E", 0.3 * A.x + 0.1 * A.y + 0.2 * A.z)
    elbow.v2pt_theory(origin, N, A)
    links, loads = [], []
    for body, frame, start in ((model.bodies[0], A, origin), (model.bodies[1], B, elbow)):
        part = body.parts[0]
        com = start.locatenew(f"C{body.name}", sum((c * e for c, e in zip(part.com, frame, strict=True)), 0 * frame.x))
        com.v2pt_theory(start, N, frame)
        xx, yy, zz, xy, xz, yz = part.inertia
        tensor = Inertia(inertia(frame, xx, yy, zz, ixy=xy, iyz=yz, izx=xz), com)
        links.append(RigidBody(body.name, com, frame, part.mass, (tensor.dyadic, com)))
        gx, gy, gz = model.gravity
        loads.append((com, part.mass * (gx * N.x + gy * N.y + gz * N.z)))
    loads += [(A, t1 * N.z - t2 * A.x), (B, t2 * A.x)]
    kane = KanesMethod(N, [q1, q2], [u1, u2], kd_eqs=[q1.diff() - u1, q2.diff() - u2])
    kane.kanes_equations(links, loads)
    symbols = (q1, q2, u1, u2, t1, t2)
    M, forcing = sympy.lambdify(symbols, kane.mass_matrix), sympy.lambdify(symbols, kane.forcing)
    rng = np.random.default_rng(0)
    for _ in range(3):
        q, v, tau = rng.normal(size=(3, 2))
        state = (*q, *v, *tau)
        np.testing.assert_allclose(model.mass_matrix(q), M(*state), rtol=1e-12)
        expected = np.linalg.solve(M(*state), forcing(*state))[:, 0]
        np.testing.assert_allclose(model.forward_dynamics(q, v, tau), expected, rtol=1e-11)


# Other scalars.
@pytest.mark.parametrize("seed", range(4))
def test_many_digits(seed: int) -> None:
    """mpmath through the texts. Constants that are inputs have as many digits as anything else: 40 of them agree."""
    rng = np.random.default_rng(seed)
    model = random_tree(rng, 5, mimic=0.2, structured=1.0, almost=0.0)
    model = model.with_parameters(all_names(model))
    state = random_state(model, rng)
    with mpmath.workdps(60):
        q, v, vdot = (many_digits(a) for a in state)
        p = many_digits(model.parameters.nominal)
        tau = model.inverse_dynamics(q, v, vdot, p=p)
        back = model.forward_dynamics(q, v, tau, p=p)
        assert max(abs(a - b) for a, b in zip(back, vdot, strict=True)) < 1e-40
        close(tau.astype(float), Eager(model, model.parameters.nominal).inverse_dynamics(*state), 1e-13)
        energy = model.kinetic_energy(q, v, p=p)
        assert isinstance(energy, mpmath.mpf)
        assert abs(energy - v @ model.mass_matrix(q, p=p) @ v / 2) < 1e-40


def many_digits(values: Any) -> Any:
    return np.array([mpmath.mpf(float(x)) for x in values], dtype=object)


def test_symbols() -> None:
    """SymPy through the texts: the pendulum's equation, letter by letter, and a batch of symbols."""
    q, v, a = sympy.symbols("q v a", real=True)
    model = pendulum(2.0, 0.5, 0.125)
    (tau,) = model.inverse_dynamics([q], [v], [a])
    assert sympy.expand(tau) == sympy.Float(0.625) * a + sympy.Float(9.81) * sympy.sin(q)
    energy = model.kinetic_energy([q], [v]) + model.potential_energy([q])
    motion = sympy.diff(energy, q) * v + sympy.diff(energy, v) * a
    assert sympy.expand(motion - tau * v) == 0
    batch = model.inverse_dynamics(np.array([[q], [2 * q]], dtype=object), [v], [a])
    assert batch.shape == (2, 1)
    assert batch[1, 0].has(sympy.sin(2 * q))


def test_symbols_in_two_links() -> None:
    model = two_links()
    names = sympy.symbols("q1 q2 v1 v2 a1 a2", real=True)
    q, v, a = names[:2], names[2:4], names[4:]
    tau = sympy.lambdify(names, list(model.inverse_dynamics(q, v, a)))
    M = sympy.lambdify(names, sympy.Matrix(model.mass_matrix(q)))
    numbers = np.array([0.3, -1.2, 0.7, 0.4, -0.5, 1.1])
    np.testing.assert_allclose(tau(*numbers), model.inverse_dynamics(*numbers.reshape(3, 2)), rtol=1e-12)
    np.testing.assert_allclose(M(*numbers), model.mass_matrix(numbers[:2]), rtol=1e-12)
    from_energy = sympy.hessian(model.kinetic_energy(q, v), v)
    np.testing.assert_allclose(sympy.lambdify(names, from_energy)(*numbers), M(*numbers), rtol=1e-12)


def test_casadi() -> None:
    """CasADi's expressions through the texts, spherical and planar joints with their branches included."""
    casadi = pytest.importorskip("casadi")
    model = random_tree(3, 4, ("revolute", "spherical", "planar", "arm"))
    q, v, vdot = random_state(model, np.random.default_rng(0))
    names = [casadi.SX.sym(name, n) for name, n in (("q", model.nq), ("v", model.nv), ("a", model.nv))]
    split = [np.array(casadi.vertsplit(x), dtype=object) for x in names]
    tau = casadi.Function("f", names, [casadi.vertcat(*model.inverse_dynamics(*split))])
    np.testing.assert_allclose(np.array(tau(q, v, vdot))[:, 0], model.inverse_dynamics(q, v, vdot), rtol=1e-12)
    step = casadi.Function("f", names[:2], [casadi.vertcat(*model.integrate(*split[:2]))])
    for scale in (1.0, 1e-6):
        np.testing.assert_allclose(np.array(step(q, scale * v))[:, 0], model.integrate(q, scale * v), atol=1e-14)
    other = model.integrate(q, 0.3 * np.tanh(v))
    gap = casadi.SX.sym("r", model.nq)
    ends = [split[0], np.array(casadi.vertsplit(gap), dtype=object)]
    difference = casadi.Function("f", [names[0], gap], [casadi.vertcat(*model.difference(*ends))])
    np.testing.assert_allclose(np.array(difference(q, other))[:, 0], 0.3 * np.tanh(v), atol=1e-13)


def test_pendulum_over_ten_seconds() -> None:
    """The simple pendulum of the IFToMM collection, A01: from (-1, 0) at rest, where it is at t = 10."""
    from scipy.integrate import solve_ivp

    b = lw.ModelBuilder("A01", gravity=(0, -9.81, 0))
    b.add_body("mass", joint=lw.Revolute((0, 0, 1)), mass=1.0, com=(-1.0, 0.0, 0.0))
    model = b.build()

    def rate(_: float, x: np.ndarray) -> list[float]:
        return [x[1], model.forward_dynamics(x[:1], x[1:], np.zeros(1))[0]]

    end = solve_ivp(rate, (0, 10), [0.0, 0.0], method="DOP853", rtol=3e-14, atol=1e-14).y[:, -1]
    position = model.center_of_mass(end[:1])
    np.testing.assert_allclose(position[:2], [-0.275087462576, -0.961419205099], atol=2e-11)
