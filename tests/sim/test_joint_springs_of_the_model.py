"""Springs that a model's joints have: an oscillator's frequency, its energy, and joints that follow."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw


def slider(**parts: object) -> lw.ModelBuilder:
    b = lw.ModelBuilder("slider", gravity=(0, 0, 0))
    b.add_body("a", joint=lw.Prismatic((1, 0, 0)), mass=2.0, joint_name="slide", **parts)  # type: ignore[arg-type]
    return b


@pytest.mark.parametrize("method", ["dop853", "rodas4"])
def test_it_swings_as_a_spring_does(method: str) -> None:
    model = slider(stiffness=50.0, rest=0.3).build()
    motion = lw.simulate(model, [0.5], [0.0], duration=2.0, method=method, rtol=1e-10)
    expected = 0.3 + 0.2 * np.cos(5.0 * motion.t)
    np.testing.assert_allclose(motion.q[:, 0], expected, atol=1e-7)
    np.testing.assert_allclose(motion.energy, 0.5 * 50.0 * 0.2**2, rtol=1e-7)


def test_it_can_be_left_out() -> None:
    model = slider(stiffness=50.0, rest=0.3).build()
    still = lw.simulate(model, [0.5], [0.0], duration=1.0, rules=lw.JointRules(springs=False))
    assert still.q[-1, 0] == 0.5


def test_a_follower_pulls_its_leader() -> None:
    b = slider()
    b.add_body(
        "b", joint=lw.Prismatic((0, 1, 0)), mass=1e-9, stiffness=50.0, rest=0.3, mimic=lw.Mimic("slide", -2.0, 0.1)
    )
    motion = lw.simulate(b.build(), [0.0], [0.0], duration=1.0, rtol=1e-10)
    # ½ k (m q + o - rest)² is a spring of stiffness k m² that rests where the follower does.
    centre, omega = (0.3 - 0.1) / -2.0, np.sqrt(50.0 * 4 / 2.0)
    np.testing.assert_allclose(motion.q[:, 0], centre * (1 - np.cos(omega * motion.t)), atol=1e-7)


@pytest.mark.parametrize("bad", [{"stiffness": -1.0}, {"stiffness": 1.0, "rest": np.inf}, {"rest": [1, 2]}])
def test_mistakes(bad: dict[str, object]) -> None:
    with pytest.raises(lw.LinkwiseError, match="slide"):
        slider(**bad)


def test_a_ball_has_no_coordinate_for_a_spring() -> None:
    with pytest.raises(lw.InputError, match="spring"):
        lw.ModelBuilder("x").add_body("ball", joint=lw.Spherical(), mass=1.0, stiffness=1.0)
