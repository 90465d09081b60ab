"""Traces that call programs with loops: the pieces together do what one straight-line program does."""

import numpy as np
import pytest

import linkwise as lw
from linkwise.algorithms.catalogue import CATALOGUE
from linkwise.functions.scalar_arrays import scalar_array as objects
from linkwise.spatial.dual import derivative
from linkwise.spatial.scalar import where
from linkwise.trace.calls import CallingTracer, stored
from linkwise.trace.interpreter import interpret
from linkwise.trace.program import Program
from linkwise.trace.tracer import Tracer
from linkwise.trace.verifier import verify
from tests.sim.mechanisms import mixed


def run(composite, inputs):
    """The definition: one call after the other."""
    verify(composite)
    return interpret(composite, inputs)


def both(text, sizes, inputs):
    """What a text of a model gives written out, and with calls; and the pieces."""
    model = mixed()
    found = []
    for way, tracer in ((model, Tracer()), (model.with_sweeps("rolled"), CallingTracer())):
        arrays = [tracer.input(name, (size,)) for name, size in sizes.items()]
        values = list(np.ravel(text(way, *arrays)))
        outputs = [("out", (len(values),), values)]
        if isinstance(tracer, CallingTracer):
            composite = tracer.composite("text", outputs)
            found.append(run(composite, inputs)[0])
        else:
            found.append(interpret(tracer.finish("text", outputs), inputs)[0])
    return *map(np.array, found), composite


MODEL = mixed()
SIZES = {"q": MODEL.nq, "v": MODEL.nv, "a": MODEL.nv, "dq": MODEL.nq, "dv": MODEL.nv, "da": MODEL.nv}
RNG = np.random.default_rng(0)
INPUTS = [MODEL.random_configuration(1).tolist(), *(RNG.normal(size=n).tolist() for n in list(SIZES.values())[1:])]


def calling(name, count):
    return lambda m, q, v, a: m._run(name, *map(objects, (q, v, a)[:count]))


VECTORS = (("q",), ("q", "v"), ("q", "x"), ("q", "v", "tau"), ("q", "v", "vdot"))
OF_A_BODY = ("pose", "velocity", "acceleration", "operational_inertia", "operational_admittance")
TEXTS = {
    name: calling(name, len(text.inputs))
    for name, text in CATALOGUE.items()
    if text.columns is None and text.inputs in VECTORS and name not in OF_A_BODY
}
TEXTS["pose"] = lambda m, q, v, a: m.pose(objects(q), "rod")
TEXTS["velocity"] = lambda m, q, v, a: m.velocity(objects(q), objects(v), "rod")
TEXTS["acceleration"] = lambda m, q, v, a: m.acceleration(*map(objects, (q, v, a)), "rod")
TEXTS["integrate"] = lambda m, q, v, a: m.integrate(objects(q), objects(v))
TEXTS["difference"] = lambda m, q, v, a: m.difference(objects(m.neutral()), objects(q))
TEXTS["external"] = lambda m, q, v, a: m.forward_dynamics(
    objects(q), objects(v), objects(a), np.multiply.outer(objects(v[:5]), np.arange(1.0, 7.0))
)


@pytest.mark.parametrize("name", TEXTS)
def test_functions_are_called_with_the_same_result(name):
    plain, called, composite = both(lambda m, q, v, a, dq, dv, da: TEXTS[name](m, q, v, a), SIZES, INPUTS)
    np.testing.assert_allclose(called, plain, rtol=1e-12, atol=1e-12)
    assert any(isinstance(code, Program) for code in composite.codes)


@pytest.mark.parametrize("name", TEXTS)
def test_dual_numbers_go_through_calls(name):
    def text(m, q, v, a, dq, dv, da):
        nq, nv = len(q), len(v)

        def moved(s):
            return list(np.ravel(TEXTS[name](m, list(s[:nq]), list(s[nq : nq + nv]), list(s[nq + nv :]))))

        return derivative(moved, [*q, *v, *a], [*dq, *dv, *da])[1]

    plain, called, _ = both(text, SIZES, INPUTS)
    assert np.abs(plain).max() > 1e-3
    np.testing.assert_allclose(called, plain, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("name", ["mass_matrix", "linearize_forward", "jacobian"])
def test_matrices_are_called_column_by_column(name):
    def text(m, q, v, a, *_):
        if name == "linearize_forward":
            return np.concatenate([np.ravel(x) for x in m.linearize_forward(*map(objects, (q, v, a)))])
        return m.mass_matrix(objects(q)) if name == "mass_matrix" else m.jacobian(objects(q), "rod")

    plain, called, _ = both(text, SIZES, INPUTS)
    np.testing.assert_allclose(called, plain, rtol=1e-10, atol=1e-10)


def test_values_cross_from_piece_to_piece():
    """Calls that wait for calls, comparisons and intermediate values used on both sides, and a call nobody needs."""

    def text(m, q, v, a, *_):
        first = m.mass_product(objects(q), objects([lw.math.sin(x) for x in v]))
        rising = first[0] < first[1]
        second = m.mass_solve(objects(q), objects([where(rising, x, y) for x, y in zip(first, a, strict=True)]))
        m.gravity_force(objects(q))
        total = sum(stored([x * x for x in second]))
        return [total * lw.math.sin(x) + where(rising, y, 2.0 * y) for x, y in zip(v, second, strict=True)]

    plain, called, composite = both(text, SIZES, INPUTS)
    np.testing.assert_allclose(called, plain, rtol=1e-12)
    names = [call.code.name for call in composite.statements]
    assert "gravity_force" not in names and names.count("mass_product") == 1
