"""Events: found in either precision, their actions kept on the right side, terminal ones the last sample."""

import numpy as np
import pytest

import linkwise as lw
from tests.sim.mechanisms import slider


@pytest.mark.parametrize("count", [None, 5])
def test_single_precision_with_parameters_finds_what_double_precision_finds(count):
    model = slider()
    event = lw.Event(lambda t, q, v, p: q[0] - p[0], name="pass")
    q0 = np.zeros(1 if count is None else (count, 1), np.float32)
    p = np.array([0.25], np.float32) if count is None else np.linspace(0.1, 0.5, count, dtype=np.float32)[:, None]
    options = {"duration": 1.0, "dt": 1e-2, "method": "rk4", "events": event}
    narrow = lw.simulate(model, q0, np.float32([1.0]), p=p, **options)
    assert narrow.q.dtype == np.float32
    wide = lw.simulate(model, q0.astype(float), [1.0], p=p.astype(float), **options)
    assert len(wide.events) == len(narrow.events) == (count or 1)
    np.testing.assert_allclose([e.t for e in narrow.events], [e.t for e in wide.events], atol=1e-6)
    np.testing.assert_allclose([e.t for e in wide.events], np.ravel(p), atol=1e-12)


def test_single_precision_does_not_lose_an_event_that_rounding_puts_on_a_step():
    """The place is reached within a rounding error of a step's end, wherever the grid lies."""
    model = slider()
    event = lw.Event(lambda t, q, v, p: q[0] - p[0], name="pass")
    places = np.linspace(0.05, 0.95, 181, dtype=np.float32)[:, None]
    q0 = np.zeros((len(places), 1), np.float32)
    motion = lw.simulate(model, q0, np.float32([1.0]), 1.0, dt=5e-3, method="rk4", events=event, p=places)
    assert sorted(e.state[0] for e in motion.events) == list(range(len(places)))
