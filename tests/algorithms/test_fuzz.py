"""Anything at the call boundary: a right answer or an InputError, never a crash and never a silent mistake."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import linkwise as lw
from tests.oracles.eager import Eager
from tests.random_trees import random_tree

MODEL = random_tree(21, 3, ("revolute", "spherical", "prismatic"), branching=0.0, gravity=(0, 0, -9.81))
EAGER = Eager(MODEL)
relaxed = settings(deadline=None, max_examples=150, suppress_health_check=list(HealthCheck), derandomize=True)

sizes = st.sampled_from([MODEL.nq, MODEL.nv, MODEL.nq, MODEL.nv, 0, 1, 2])
shapes = st.one_of(
    st.tuples(sizes),
    st.tuples(st.integers(0, 3), sizes),
    st.tuples(st.integers(0, 3), st.integers(0, 2), sizes),
    st.just(()),
)
real = st.sampled_from(["f8", "f4", ">f8", "<f4", ">f4", "f2", "g", "i1", "u2", "i8", ">i4", "?"])
dtypes = st.one_of(real, real, st.sampled_from(["c16", "c8", "U3", "S2", "O", "M8[s]", "m8[s]"]))
layouts = st.sampled_from(["as is", "fortran", "reversed", "strided", "read-only", "offset", "broadcast", "list"])


@st.composite
def arrays(draw: Any) -> Any:
    """An array of any shape, type and layout."""
    shape, dtype, layout = draw(shapes), np.dtype(draw(dtypes)), draw(layouts)
    seed = draw(st.integers(0, 2**16))
    values = np.random.default_rng(seed).uniform(-2, 2, size=shape)
    with np.errstate(all="ignore"):
        array = values.astype(dtype) if dtype.kind not in "mM" else np.zeros(shape, dtype)
    if layout == "fortran":
        array = np.asfortranarray(array)
    elif layout == "reversed" and array.ndim:
        array = array[::-1][..., ::-1]
    elif layout == "strided" and array.ndim:
        array = np.repeat(array, 2, axis=-1)[..., ::2]
    elif layout == "read-only":
        array = array.copy()
        array.flags.writeable = False
    elif layout == "offset":
        raw = np.zeros(array.nbytes + 1, np.uint8)
        odd = raw[1:].view(array.dtype) if array.dtype != object else None
        if odd is not None:
            odd = odd[: array.size].reshape(array.shape)
            odd[...] = array
            array = odd
    elif layout == "broadcast":
        array = np.broadcast_to(array, (2, *array.shape))
    elif layout == "list":
        return array.tolist()
    return array


strange = st.sampled_from(
    [None, "q", b"", 3, 2.5, 1j, [], [[]], {}, object(), float, [None], ["a"], [[1.0], [2.0, 3.0]]]
)
anything = st.one_of(arrays(), arrays(), arrays(), strange)


def is_number_array(value: Any) -> bool:
    try:
        return np.asarray(value).dtype.kind in "fiubO"
    except ValueError:
        return False


def expected(name: str, given_arrays: list[Any], cores: list[int]) -> Any:
    """The answer state by state, or None where the call is a mistake."""
    if not all(is_number_array(a) for a in given_arrays):
        return None
    try:
        whole = [np.asarray(a).astype(float) for a in given_arrays]
    except (TypeError, ValueError):
        return None
    if any(a.ndim < 1 or a.shape[-1] != n for a, n in zip(whole, cores, strict=True)):
        return None
    try:
        shape = np.broadcast_shapes(*(a.shape[:-1] for a in whole))
    except ValueError:
        return None
    flat = [np.broadcast_to(a, (*shape, a.shape[-1])).reshape(-1, a.shape[-1]) for a in whole]
    rows = [getattr(EAGER, name)(*state) for state in zip(*flat, strict=True)] if all(len(a) for a in flat) else []
    return np.array(rows, float).reshape(shape + (rows[0].shape if rows else (-1,))) if rows else np.empty(shape)


def check(name: str, given_arrays: list[Any], cores: list[int]) -> None:
    with np.errstate(all="ignore"):
        answer = expected(name, given_arrays, cores)
        for _ in range(2):  # the second time the compiled single-state function may be in the way
            try:
                result = getattr(MODEL, name)(*given_arrays)
            except lw.InputError:
                assert answer is None
                continue
            assert answer is not None, "a mistake was not noticed"
            if not np.isfinite(answer).all():  # a quaternion of length zero; the program left out some zeros times NaN
                assert not np.isfinite(result).all()
                continue
            if answer.size == 0:
                assert np.size(result) == 0
                continue
            single = np.asarray(result).dtype == np.float32
            scale = np.abs(answer).max() + 1.0
            np.testing.assert_allclose(
                np.asarray(result).astype(float), answer, rtol=0, atol=scale * (3e-4 if single else 1e-9)
            )


@given(anything)
@relaxed
def test_of_q(q: Any) -> None:
    check("gravity_force", [q], [MODEL.nq])


@given(anything, anything)
@relaxed
def test_of_q_and_v(q: Any, v: Any) -> None:
    check("kinetic_energy", [q, v], [MODEL.nq, MODEL.nv])


@given(st.lists(arrays(), min_size=3, max_size=3))
@relaxed
def test_of_three(given_arrays: list[Any]) -> None:
    check("inverse_dynamics", given_arrays, [MODEL.nq, MODEL.nv, MODEL.nv])


@given(
    st.integers(1, 9), st.integers(0, 99), st.lists(st.sampled_from(["f4", "f8", ">f8", "i8"]), min_size=3, max_size=3)
)
@relaxed
def test_of_good_batches(batch: int, seed: int, which: list[str]) -> None:
    rng = np.random.default_rng(seed)
    q = rng.uniform(1, 3, size=(batch, MODEL.nq)).astype(which[0])
    v, vdot = (rng.uniform(-2, 2, size=(batch, MODEL.nv)).astype(dtype) for dtype in which[1:])
    check("inverse_dynamics", [q, v, vdot], [MODEL.nq, MODEL.nv, MODEL.nv])


@given(out=anything, threads=st.one_of(st.none(), st.integers(-2, 5), st.floats(), st.text(max_size=2)))
@relaxed
def test_out_and_threads(out: Any, threads: Any) -> None:
    q = np.random.default_rng(0).uniform(1, 2, size=(2, MODEL.nq))
    expected_force = np.array([EAGER.gravity_force(x) for x in q])
    try:
        result = MODEL.gravity_force(q, out=out, threads=threads)
    except lw.InputError:
        return
    np.testing.assert_allclose(result, expected_force, rtol=1e-11, atol=1e-12)
    assert out is None or result is out


@pytest.mark.parametrize("name", ["gravity_force", "mass_matrix", "poses"])
def test_big_batches(name: str) -> None:
    q = np.random.default_rng(0).uniform(1, 2, size=(10007, MODEL.nq))
    result = getattr(MODEL, name)(q, threads=2)
    for k in (0, 8, 4999, 10006):
        np.testing.assert_allclose(result[k], getattr(EAGER, name)(q[k]), rtol=1e-10, atol=1e-11)
