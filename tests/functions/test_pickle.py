"""Compiled functions travel: what they compute does, and their derivatives."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import linkwise as lw
from linkwise.samples import planar_arm

FACTOR = [2.0]


def test_functions_and_derivatives_come_back_the_same():
    model = planar_arm(2)
    q, v = np.array([0.1, 0.2]), np.array([1.0, -1.0])
    energy = model.function("kinetic_energy")
    for f, given in (
        (energy, (q, v)),
        (energy.hessian("v"), (q, v)),
        (model.function("pose", body="link2"), (q,)),
        (energy.vjp("q", "v"), (q, v, np.array(1.0))),
    ):
        again = pickle.loads(pickle.dumps(f))
        for ours, theirs in zip(np.atleast_1d(f(*given)), np.atleast_1d(again(*given)), strict=True):
            assert (np.asarray(ours) == np.asarray(theirs)).all()


def test_a_function_of_the_users_keeps_its_formulas():
    """Also where Python's own function could not be found again, or would say something else by now."""
    model = planar_arm(2)

    def several(m, q, v):
        def more(_, x):
            return x + 0.1 * m.forward_dynamics(q, x, [0.0, 0.0])

        return {"last": lw.loop(3, more, v), "twice": FACTOR[0] * q[0]}

    f = lw.compile(several, model, {"q": "q", "v": "v"})
    packed = pickle.dumps(f)
    FACTOR[0] = 3.0
    try:
        again = pickle.loads(pickle.loads(pickle.dumps(packed)))
        q, v = np.array([0.1, 0.2]), np.array([1.0, -1.0])
        assert (again(q, v).last == f(q, v).last).all() and again(q, v).twice == 0.2
        assert np.allclose(again.jacobian("q")(q, v).last, f.jacobian("q")(q, v).last, rtol=1e-12)
        third = pickle.loads(pickle.dumps(again))
        assert (third(q, v).last == f(q, v).last).all()
    finally:
        FACTOR[0] = 2.0


def test_parts_say_that_they_do_not_travel():
    inner = lw.CompiledFunction("inner", lambda x: x, [("x", (2,))])
    with pytest.raises(TypeError, match="does not travel"):
        pickle.dumps(inner)
