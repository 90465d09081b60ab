"""After a first call a model keeps a compiled function before its method; but for its speed, nobody can tell."""

import concurrent.futures
import copy
import inspect
import multiprocessing
import pickle
import pydoc
import re
import sys
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest

import linkwise as lw
from linkwise.algorithms.catalogue import CATALOGUE
from linkwise.functions.function import CompiledFunction
from linkwise.samples import planar_arm
from linkwise.targets.llvm import layouts

Q = np.random.default_rng(0).normal(size=(6, 3))


PARTIALS_ARE_NO_ROUTINES = sys.version_info[:2] == (3, 13)
"""Whether this Python denies that a ``functools.partial``, which our methods are, is a method: one of them does."""


quick = pytest.mark.skipif(not layouts.available(), reason="this interpreter has its ordinary path only")


def called() -> lw.Model:
    model = planar_arm(n=3)
    for _ in range(3):
        model.mass_matrix(Q[0])
    return model


@quick
def test_something_is_installed() -> None:
    assert inspect.isbuiltin(called().mass_matrix)


def no_detour(*_: object, **__: object) -> None:
    raise AssertionError("a call went the ordinary way")


PLAIN = {
    "inverse_dynamics": 3, "forward_dynamics": 3, "mass_matrix": 1, "rnea": 3, "aba": 3, "crba": 1, "poses": 1,
    "momentum": 2, "linearize_inverse": 3,
}  # fmt: skip
AT_NAMES = {"pose": 1, "jacobian": 1, "velocity": 2, "jacobian_rate": 2, "acceleration": 3}


@quick
@pytest.mark.parametrize("shape", ["one state", "batch"])
@pytest.mark.parametrize("early", [True, False])
@pytest.mark.parametrize("name", [*PLAIN, *AT_NAMES])
def test_every_form_of_a_call_is_quick(name: str, early: bool, shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model, single = planar_arm(n=3), shape == "one state"
    arrays = [Q[k] if single else Q + k for k in range({**PLAIN, **AT_NAMES}[name])]
    arguments = [*arrays, "link2"] if name in AT_NAMES else arrays
    method = getattr(model, name)
    expected = [method(*arguments) for _ in range(3)][-1]
    if not early:
        method = getattr(model, name)
    forms = [{}, {"threads": 2}, {"out": None}]
    if not isinstance(expected, tuple):
        out = np.empty_like(expected)
        forms += [{"out": out}, {"threads": 3, "out": out}]
    monkeypatch.setattr(lw.Model, "_run", no_detour)
    monkeypatch.setattr(CompiledFunction, "general", no_detour)
    for form in forms:
        result = method(*arguments, **form)
        assert form.get("out") is None or result is out
        for got, wanted in zip(*([x] if isinstance(x, np.ndarray) else x for x in (result, expected)), strict=True):
            np.testing.assert_array_equal(got, wanted)


@quick
def test_a_first_call_with_out_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    model, out = planar_arm(n=3), np.empty((6, 3, 3))
    method = model.mass_matrix
    for _ in range(2):
        method(Q, out=out)
    monkeypatch.setattr(lw.Model, "_run", no_detour)
    np.testing.assert_array_equal(method(Q, out=out), model.mass_matrix(Q))


def test_places_by_name() -> None:
    """What the quick way does not know goes the ordinary way, with the same arguments."""
    model, plain = planar_arm(n=3), planar_arm(n=3)
    pose, jacobian = model.pose, model.jacobian
    for body in ("link1", "link2", "link1", "link3", "link2"):
        expected = plain.poses(Q)[:, int(body[-1]) - 1]
        for one in (pose(Q, body), pose(Q, body=body), model.pose(q=Q, body=body), pose(Q, body, node=None)):
            np.testing.assert_allclose(one, expected, atol=1e-15)
        np.testing.assert_allclose(pose(Q[0].tolist(), body), expected[0], atol=1e-15)
        local = jacobian(Q, body, reference="local")
        np.testing.assert_allclose(expected[:, :3, :3] @ local[:, 3:], jacobian(Q, body)[:, 3:], atol=1e-14)
        moved = jacobian(Q, body, (0.0, 0.0, 0.0))
        np.testing.assert_allclose(moved, jacobian(Q, body), atol=1e-15)
    for wrong in ("link9", 2, ["link1"], None):
        with pytest.raises(lw.LinkwiseError):
            pose(Q, wrong)
    with pytest.raises(lw.InputError, match="reference"):
        jacobian(Q, "link1", reference="elsewhere")
    with pytest.raises(TypeError):
        pose(Q, "link1", "link2")
    with pytest.raises(TypeError):
        pose(Q, "link1", out=None, threads=None, nothing=3)


def test_a_method_taken_early_looks_like_one() -> None:
    model = planar_arm(n=3)
    method = model.mass_matrix
    assert inspect.isroutine(method) is not PARTIALS_ARE_NO_ROUTINES
    assert method.__self__ is model
    assert method.__name__ == "mass_matrix"
    for _ in range(3):
        assert shown(method) == shown(lw.Model.mass_matrix)[1:]
        assert "𝓜(q)" in inspect.getdoc(method)
        assert pickle.loads(pickle.dumps(method)).__self__ == model
        if not PARTIALS_ARE_NO_ROUTINES:  # a long signature may be shown on several lines
            assert len(re.findall(r"mass_matrix\(\s*q", pydoc.plain(pydoc.render_doc(method)))) == 1
        method(Q[0])


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
    at = {"body": "link2"} if "body" in (p for p, _, _ in before) else {}
    arguments = [np.full(shape, 0.1) for _, shape in model.function(name, **at).inputs]
    arguments += at.values()
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
