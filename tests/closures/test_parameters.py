"""Numbers of closures as run-time parameters: the same as a model built with them, and differentiated."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise import errors, samples
from tests.closures.mechanisms import EagerModel

Array = Any
HINGE = lw.Revolute((0.0, 1.0, 0.0))


def rodded(length: float = 0.5, ratio: float = 2.0, offset: float = 0.1, xyz: Any = (0.2, 0, 0.3)) -> lw.Model:
    """Two wheels and a pendulum: a gear between the wheels, and a rod from one to the pendulum."""
    b = lw.ModelBuilder("rodded")
    wheel = {"mass": 2.0, "com": (0.1, 0, 0), "inertia": 0.1 * np.eye(3)}
    b.add_body("left", "world", HINGE, joint_name="motor", **wheel)
    b.add_body("right", "world", HINGE, lw.transform(xyz=(0.5, 0, 0)), joint_name="shaft", **wheel)
    b.add_body("bob", "world", lw.Spherical(), lw.transform(xyz=(1, 0.1, 0.2)), **wheel)
    b.add_closure(
        "rod", "right", lw.transform(xyz=xyz), "bob", lw.transform(xyz=(0, 0, 0.4)), joint=lw.closures.Distance(length)
    )
    b.add_coupling("gear", lw.closures.Coupling.gear("motor", "shaft", ratio, offset))
    return b.build()


def test_the_numbers_of_a_rod_and_a_gear() -> None:
    """As built with other numbers; one program for all."""
    names = ["rod.length", "gear.coefficients", "gear.offset", "rod.xyz_a"]
    free = EagerModel.of(rodded().with_parameters(names))
    np.testing.assert_allclose(free.parameters.nominal, [0.5, 1.0, -2.0, 0.1, 0.2, 0, 0.3])
    fixed = EagerModel.of(rodded(0.6, 3.0, -0.2, (0.1, 0.05, 0.25)))
    p = np.array([0.6, 1.0, -3.0, -0.2, 0.1, 0.05, 0.25])
    q = free.assemble(free.neutral(), p=p)
    assert np.abs(fixed.closure_error(q)).max() < 1e-12
    v = free.constraints.project_velocity(q, np.ones(5), p=p)
    np.testing.assert_allclose(v, fixed.constraints.project_velocity(q, np.ones(5)), atol=1e-13)
    for solver in ("auto", "kkt"):
        found = free.with_closure_solver(solver).forward_dynamics(q, v, np.ones(5), p=p)
        np.testing.assert_allclose(found, fixed.forward_dynamics(q, v, np.ones(5)), rtol=1e-10, atol=1e-10)


def test_the_places_of_a_closure() -> None:
    """Frames on bodies, in position and orientation, with a false root to be told from the true one."""
    free = EagerModel.of(
        samples.slider_crank().with_parameters(["wrist.xyz_a", "wrist.rpy_a", "wrist.rpy_b", "rod.xyz"])
    )
    p = free.parameters.nominal.copy()
    p[:6] = 0.32, 0.0, 0.01, 0.0, 0.3, 0.0
    placement = lw.transform(xyz=(0.32, 0, 0.01), rpy=(0, 0.3, 0))
    fixed = EagerModel.of(
        samples.slider_crank().without("wrist").with_closure("wrist", "rod", placement, "slider", joint=HINGE)
    )
    q = free.assemble([0.5, -0.6, 0.0], p=p)
    np.testing.assert_allclose(q, fixed.assemble([0.5, -0.6, 0.0]), atol=1e-12)
    v = free.constraints.project_velocity(q, [3.0, 0, 0], p=p)
    np.testing.assert_allclose(
        free.forward_dynamics(q, v, np.ones(3), p=p), fixed.forward_dynamics(q, v, np.ones(3)), rtol=1e-10
    )
    over = p.copy()
    over[6] = np.pi  # the axis turned over
    with pytest.raises(errors.ClosureError, match="turned by 180°"):
        free.assemble([0.5, -0.6, 0.0], p=over)


def test_legs_of_a_platform() -> None:
    """With the branches first."""
    names = [f"ball{i}.xyz_{side}" for i in (1, 4) for side in "ab"]
    free = samples.stewart_platform().with_parameters(names)
    p = free.parameters.nominal + 0.01 * np.random.default_rng(0).normal(size=12)
    fixed = samples.stewart_platform()
    for k, i in enumerate((1, 4)):
        a, b = (lw.transform(xyz=p[6 * k + 3 * j : 6 * k + 3 * j + 3].tolist()) for j in range(2))
        fixed = fixed.without(f"ball{i}")
        fixed = fixed.with_closure(f"ball{i}", f"piston{i}", a, "plate", b, joint=lw.Spherical())
    assert free._trees.branching is not None
    free, fixed = EagerModel.of(free), EagerModel.of(fixed)
    q = free.assemble(free.neutral(), p=p)
    expected = fixed.forward_dynamics(q, np.zeros(24), np.ones(24))
    np.testing.assert_allclose(free.forward_dynamics(q, np.zeros(24), np.ones(24), p=p), expected, atol=1e-10)


def test_gradients() -> None:
    """Of anything compiled, by dual numbers against differences."""
    model = rodded().with_parameters(["rod.length", "gear.coefficients", "rod.rpy_b"])
    q, v, tau = model.assemble(model.neutral()), np.linspace(0.1, 0.5, 5), np.ones(5)
    p = model.parameters.nominal
    for name, arguments in (("closure_error", (q,)), ("closure_rate", (q, v)), ("forward_dynamics", (q, v, tau))):
        function = model.function(name)
        found = function.jacobian("p")(*arguments, p)
        for i in range(len(p)):
            step = np.zeros(len(p))
            step[i] = 1e-5
            difference = (function(*arguments, p + step) - function(*arguments, p - step)) / 2e-5
            np.testing.assert_allclose(found[..., i], difference, atol=1e-6 * (1.0 + np.abs(difference).max()))


def test_names() -> None:
    model = rodded()
    with pytest.raises(errors.UnknownNameError, match=r"did you mean 'rod\.length'"):
        model.with_parameters(["rod.lenght"])
    with pytest.raises(errors.UnknownNameError):
        model.with_parameters(["gear.xyz_a"])
    moving = model.without("rod").with_closure(
        "rod", "right", None, "bob", None, joint=lw.closures.Distance(lambda t: 1.0 + t)
    )
    with pytest.raises(errors.UnknownNameError, match=r"rod\.length"):
        moving.with_parameters(["rod.length"])
    with pytest.raises(errors.UnknownNameError, match=r"rod\.length"):
        model.with_parameters(["rod.length"]).without("rod")
