"""Closures that take hold where they are: a capture with a residual, a latch that draws it in, release, the impulse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import linkwise as lw
from tests.seeds import usual


def docking() -> tuple[lw.Model, Any, Any]:
    """Two craft that approach each other, off by 3 mm and a degree."""
    b = lw.ModelBuilder("docking", gravity=(0, 0, 0))
    b.add_body("target", joint=lw.Free(), mass=400.0, inertia=np.diag([100.0, 120.0, 80.0]))
    b.add_body("chaser", joint=lw.Free(), mass=300.0, com=(0.1, 0, 0), inertia=np.diag([60.0, 50.0, 80.0]))
    ports = lw.transform(xyz=(1, 0, 0)), lw.transform(xyz=(-1, 0, 0))
    b.add_closure("dock", "target", ports[0], "chaser", ports[1], joint=lw.Fixed())
    half = np.deg2rad(0.5)
    q = [1.0, 0, 0, 0, 0, 0, 0, np.cos(half), 0, 0, np.sin(half), 2.02, 0.003, 0]
    return b.build(), q, [0, 0, 0.002, 0, 0, 0, 0.001, 0, 0, -0.05, 0, 0.002]


@pytest.mark.parametrize(
    ("method", "options", "latch"),
    usual(
        [
            ("dop853", {}, 1.0),
            ("euler", {"dt": 0.01}, 1.0),
            ("variational", {"dt": 0.01}, 1.0),
            ("generalized_alpha", {"dt": 0.01}, 0.0),
        ],
        ("dop853", {}, 0.0),
        ("rk4", {"dt": 0.01}, 1.0),
        ("rodas4", {}, 1.0),
    ),
)
def test_capture_where_it_is(method: str, options: dict[str, Any], latch: float) -> None:
    """Welded with what is open at the capture, or drawn in by a latch; momentum stays, and the impulse is told."""
    model, q, v = docking()
    capture = lw.Event(
        lambda t, q, v, p: q[11] - q[4] - 2.005, direction=-1, name="capture", attach="dock", where="here", latch=latch
    )
    leave = lw.Event(lambda t, q, v, p: t - 2.5, name="leave", release="dock")
    motion = lw.simulate(
        model, q, v, 3.0, method=method, events=[capture, leave], released="dock", **options, output_times=[2.4, 3.0]
    )
    caught, _ = motion.events
    np.testing.assert_array_equal(caught.q_after, caught.q)
    h0, after, end = (
        model.momentum(*state) for state in ((q, v), (caught.q_after, caught.v_after), (motion.q[-1], motion.v[-1]))
    )
    np.testing.assert_allclose(after, h0, atol=1e-8)
    np.testing.assert_allclose(end, h0, atol=1e-4 if method == "euler" else 1e-6)
    # The impulse on the chaser is what its momentum changed by, in the axes of its own port.
    change = 300.0 * (model.velocity(caught.q, caught.v_after, "chaser") - model.velocity(caught.q, caught.v, "chaser"))
    turning = np.cross(change[:3] / 300.0, model.pose(caught.q, "chaser")[:3, :3] @ [0.1, 0, 0]) * 300.0
    R = model.pose(caught.q, "chaser")[:3, :3]
    assert caught.impulses is not None
    np.testing.assert_allclose(caught.impulses[:3], R.T @ (change[3:] + turning), atol=1e-8)
    error = np.abs(motion.closure_error[0])
    offset = motion.x[0, :6]
    if latch:
        assert error.max() < 1e-12
    else:
        np.testing.assert_allclose(error.max(), np.abs(offset).max(), rtol=0.1)
        assert 1e-3 < np.abs(offset[3:]).max() < 0.02


def test_a_latch_needs_a_place_and_one_time() -> None:
    def near(t: Any, q: Any, v: Any, p: Any) -> Any:
        return q[11] - 2.0

    with pytest.raises(lw.InputError, match='say where="here"'):
        lw.Event(near, attach="dock", latch=1.0)
    model, q, v = docking()
    two = [lw.Event(near, attach="dock", where="here", latch=latch) for latch in (1.0, 2.0)]
    with pytest.raises(lw.InputError, match="one latch for each closure"):
        lw.simulate(model, q, v, 1.0, events=two, released="dock")
    rod = lw.ModelBuilder("rod")
    rod.add_body("rod", joint=lw.Revolute(), mass=1.0, com=(1, 0, 0), inertia=np.eye(3))
    rod.add_closure("spring", "rod", None, "world", None, joint=lw.Revolute(), stiffness=1.0)
    late = lw.Event(lambda t, q, v, p: t - 0.1, attach="spring", where="here")
    with pytest.raises(lw.InputError, match="cannot take hold where it is"):
        lw.simulate(rod.build(), [0.0], duration=0.2, events=late, released="spring")
