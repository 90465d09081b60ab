"""After a first call a model keeps a compiled function before its method; but for its speed, nobody can tell."""

import concurrent.futures
import copy
import inspect
import multiprocessing
import pickle
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest

import linkwise as lw
from linkwise.algorithms.catalogue import CATALOGUE
from linkwise.samples import planar_arm
from linkwise.targets.llvm import layouts

Q = np.random.default_rng(0).normal(size=(6, 3))


def called() -> lw.Model:
    model = planar_arm(n=3)
    for _ in range(3):
        model.mass_matrix(Q[0])
    return model


@pytest.mark.skipif(not layouts.available(), reason="this interpreter has its ordinary path only")
def test_something_is_installed() -> None:
    assert inspect.isbuiltin(called().mass_matrix)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_methods_are_pickled_as_methods(protocol: int) -> None:
    model = called()
    method = pickle.loads(pickle.dumps(model.mass_matrix, protocol))
    assert np.array_equal(method(Q[0]), model.mass_matrix(Q[0]))
    assert method.__self__ == model  # nothing compiled has travelled
    together = pickle.loads(pickle.dumps([model, model.mass_matrix, model.mass_matrix], protocol))
    assert together[0] == model
    assert together[1].__self__ is together[0]


def test_methods_are_copied() -> None:
    model = called()
    for method in (copy.copy(model.mass_matrix), copy.deepcopy(model.mass_matrix)):
        assert np.array_equal(method(Q[0]), model.mass_matrix(Q[0]))
    cloudpickle = pytest.importorskip("cloudpickle")
    assert np.array_equal(pickle.loads(cloudpickle.dumps(model.mass_matrix))(Q[0]), model.mass_matrix(Q[0]))


@pytest.mark.parametrize("start", ["spawn", "fork"])
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_methods_run_in_other_processes(start: str) -> None:
    if start not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {start} here")
    model = called()
    context = multiprocessing.get_context(start)
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool:
        results = list(pool.map(model.mass_matrix, Q, timeout=60))
    assert np.array_equal(results, model.mass_matrix(Q))


class Doubled(lw.Model):
    def mass_matrix(self, q, **others):
        return 2.0 * super().mass_matrix(q, **others)


class Louder(Doubled):
    def inverse_dynamics(self, q, v, vdot, **others):
        return self.mass_matrix(q) @ vdot


def as_kind(kind: type) -> lw.Model:
    model = planar_arm(n=3)
    return kind(**model.__getstate__())


@pytest.mark.parametrize("kind", [Doubled, Louder])
def test_subclasses_are_asked(kind: type) -> None:
    model, plain = as_kind(kind), planar_arm(n=3)
    for _ in range(4):
        assert np.array_equal(model.mass_matrix(Q[0]), 2.0 * plain.mass_matrix(Q[0]))
        assert np.array_equal(model.mass_matrix(Q), 2.0 * plain.mass_matrix(Q))
        assert np.array_equal(model.forward_dynamics(Q[0], Q[1], Q[2]), plain.forward_dynamics(Q[0], Q[1], Q[2]))
    if kind is Louder:
        for _ in range(3):
            assert np.array_equal(model.inverse_dynamics(Q[0], Q[1], Q[2]), model.mass_matrix(Q[0]) @ Q[2])


def test_a_patched_class_is_asked() -> None:
    model = planar_arm(n=3)
    with mock.patch.object(lw.Model, "gravity_force", lambda self, q: "patched"):
        for _ in range(3):
            assert model.gravity_force(Q[0]) == "patched"
    assert model.gravity_force(Q[0]).shape == (3,)


def shown(function) -> list[tuple[str, object, object]]:
    return [(p.name, p.kind, p.default) for p in inspect.signature(function).parameters.values()]


@pytest.mark.parametrize("name", sorted(name for name in CATALOGUE if hasattr(lw.Model, name)))
def test_signatures_stay(name: str) -> None:
    model = planar_arm(n=3)
    before, doc = shown(getattr(model, name)), inspect.getdoc(getattr(model, name))
    if "body" in (p for p, _, _ in before):
        pytest.skip("a function for each body: none stands before the method")
    arguments = [np.full(shape, 0.1) for _, shape in model.function(name).inputs]
    for _ in range(2):
        getattr(model, name)(*arguments)
    assert shown(getattr(model, name)) == before
    assert inspect.getdoc(getattr(model, name)) == doc
    assert getattr(model, name).__name__ == name


def test_what_a_model_remembers_is_no_part_of_it() -> None:
    model, fresh = called(), planar_arm(n=3)
    lw.simulate(model, Q[0], Q[1], duration=0.01)
    assert model == fresh
    assert hash(model) == hash(fresh)
    fields = set(vars(fresh))
    for other in (replace(model), copy.copy(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert set(vars(other)) <= fields
        assert other == fresh
    assert model.__getstate__().keys() == fresh.__getstate__().keys()


@pytest.mark.parametrize("name", ["a\nb", "a\rb", "a\x00b", "", "\x1b[31m", "a\u2028b", "\ud800", 3])
def test_names_that_cannot_be_written_down(name) -> None:
    with pytest.raises(lw.InputError, match="name"):
        lw.compile(lambda m, q: m.mass_matrix(q), planar_arm(n=3), inputs={"q": "q"}, name=name)


def test_names_of_functions_and_inputs() -> None:
    def f(m, q):
        return m.mass_matrix(q)

    model = planar_arm(n=3)
    with pytest.raises(lw.InputError, match="name of an input"):
        lw.compile(f, model, inputs={"q\n": "q"})
    assert lw.compile(f, model, inputs={"q": "q"}, name="Trägheit × 2")(Q[0]).shape == (3, 3)
    f.__name__ = "f\ndefine"
    with pytest.raises(lw.InputError, match="name="):
        lw.compile(f, model, inputs={"q": "q"})
