"""One vector, many right-hand sides, batches, symbols: the same numbers, in time linear in n."""

import time

import numpy as np
import pytest
import scipy.sparse.linalg

import linkwise as lw
from linkwise.errors import InputError
from linkwise.operators.scalar_blocks import ScalarBlocks
from tests.operators.checks import largest, tree_and_operators

LETTERS = (
    *("E_phi", "phi", "phi_tilde", "H", "M", "R", "P", "D", "G", "K", "tau", "tau_bar", "E_psi", "psi", "psi_tilde"),
    *("Upsilon", "Omega", "armature", "mass_matrix"),
)


def near(a, b, tolerance=1e-10):
    return np.shape(a) == np.shape(b) and largest(a - b) <= tolerance * max(1.0, largest(a), largest(b))


@pytest.mark.parametrize("word", LETTERS)
def test_vectors_matrices_and_adjoints(word):
    _, ops, _ = tree_and_operators(7, 9, armature=0.5)
    op = getattr(ops, word)
    dense = op.dense()
    rng = np.random.default_rng(0)
    x, X, y, Y = (rng.normal(size=s) for s in (op.shape[1], (op.shape[1], 3), op.shape[0], (op.shape[0], 3)))
    assert dense.shape == op.shape
    assert near(op @ x, dense @ x)
    assert near(op @ X, dense @ X)
    assert near(op.T @ y, dense.T @ y)
    assert near(op.T @ Y, dense.T @ Y)
    assert near(y @ op, y @ dense)
    assert near(Y.T @ op, Y.T @ dense)
    assert near(op.apply_transpose(y), dense.T @ y)
    assert near(op.T.dense(), dense.T)


@pytest.mark.parametrize("word", [*LETTERS, "V", "a", "b", "f", "C"])
def test_batches_are_states_side_by_side(word):
    model, ops, (q, v, _) = tree_and_operators(7, 6, armature=0.5, batch=(2, 3))
    op = getattr(ops, word)
    rng = np.random.default_rng(0)
    for index in np.ndindex(2, 3):
        one = getattr(model.operators(q[index], v[index]), word)
        if word in ("V", "a", "b", "f", "C"):
            assert near(np.asarray(op)[index], np.asarray(one))
            continue
        x, X = rng.normal(size=(2, 3, op.shape[1])), rng.normal(size=(2, 3, op.shape[1], 4))
        assert near((op @ x)[index], one @ x[index])
        assert near((op @ X)[index], one @ X[index])
        assert near((op @ x[0, 0])[index], one @ x[0, 0])
        assert near(op.dense()[index], one.dense())


@pytest.mark.parametrize("word", [*LETTERS, "V", "a", "b", "f", "C"])
def test_symbols_give_the_same(word):
    """The blocks of symbols, run on floats."""
    model, ops, (q, v, _) = tree_and_operators(11, 8, armature=0.5)
    symbolic = model.operators(q.astype(object), v.astype(object))
    assert isinstance(symbolic.engine.blocks, ScalarBlocks)
    expected, op = getattr(ops, word), getattr(symbolic, word)
    if word in ("V", "a", "b", "f", "C"):
        assert near(np.asarray(op, float), np.asarray(expected))
        return
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=op.shape[1]), rng.normal(size=op.shape[0])
    assert near((op @ x).astype(float), expected @ x)
    assert near((op.T @ y).astype(float), expected.T @ y)
    assert near(op.dense().astype(float), expected.dense())


def test_symbols_in_points_inverses_and_blocks():
    model, ops, (q, v, _) = tree_and_operators(11, 8)
    symbolic = model.operators(q.astype(object), v.astype(object))
    for of in (
        lambda o: o.J(["tool", model.bodies[0].name]).dense(),
        lambda o: o.B("tool").dense(),
        lambda o: o.mass_matrix.inv().dense(),
        lambda o: o.M.inv().dense(),
        lambda o: o.Omega.block(1, 3),
        lambda o: o.psi.block(0, 3),
        lambda o: (o.E_phi @ o.E_psi @ o.K @ o.D.inv() @ o.H + o.E_psi).dense(),
    ):
        assert near(of(symbolic).astype(float), of(ops))


def test_symbols_as_right_hand_sides():
    """Numbers for the state, symbols for the vector."""
    sympy = pytest.importorskip("sympy")
    model, ops, _ = tree_and_operators(2, 3)
    T = np.array(sympy.symbols(f"T:{model.nv}"), object)
    numbers = np.arange(1.0, 1.0 + model.nv)
    result = ops.mass_matrix.inv() @ T
    values = [float(x.subs(dict(zip(T, numbers, strict=True)))) for x in result]
    assert near(np.array(values), ops.mass_matrix.inv() @ numbers)


def test_single_precision_stays_single():
    model, ops, (q, v, _) = tree_and_operators(7, 5)
    single = model.operators(q.astype(np.float32), v.astype(np.float32))
    x = np.ones(model.nv, np.float32)
    for of in (lambda o: o.mass_matrix @ x, lambda o: o.mass_matrix.inv() @ x, lambda o: o.C.value):
        assert of(single).dtype == np.float32
        assert near(of(single), of(ops), 1e-3)


def test_joints_that_move_nothing():
    builder = lw.ModelBuilder("point")
    builder.add_body("a", joint=lw.Revolute(), mass=1.0, com=(1.0, 0.0, 0.0))
    builder.add_body("b", "a", lw.Revolute(), mass=2.0)  # a point on its own axis
    model = builder.build()
    ops = model.operators(np.zeros(2))
    assert near(ops.mass_matrix.dense(), np.diag([1.0, 0.0]))
    with pytest.raises(InputError, match="moves no inertia"):
        ops.mass_matrix.inv() @ np.ones(2)


def test_a_mechanism_without_joints():
    ops = lw.ModelBuilder("nothing").build().operators(np.zeros(0), np.zeros(0))
    assert (ops.phi @ np.zeros(0)).shape == (0,)
    assert ops.mass_matrix.inv().dense().shape == (0, 0)
    assert ops.C.value.shape == (0,)


def test_empty_batches():
    model, _, _ = tree_and_operators(7, 4)
    ops = model.operators(np.empty((0, model.nq)), np.empty((0, model.nv)))
    assert (ops.mass_matrix.inv() @ np.empty((0, model.nv))).shape == (0, model.nv)
    assert ops.C.value.shape == (0, model.nv)
    assert ops.phi.dense().shape == (0, *ops.phi.shape)


def test_scipy_takes_operators():
    model, ops, (q, _, _) = tree_and_operators(3, 6, armature=1.0)
    mass = ops.mass_matrix
    T = np.random.default_rng(0).normal(size=model.nv)
    expected = np.linalg.solve(model.mass_matrix(q), T)
    for linear in (mass.as_linear_operator(), scipy.sparse.linalg.aslinearoperator(mass)):
        assert linear.shape == mass.shape
        found, failed = scipy.sparse.linalg.cg(linear, T, rtol=1e-13, maxiter=50 * model.nv)
        assert not failed
        assert near(found, expected, 1e-8)
        assert near(linear.rmatvec(T), mass.T @ T)
        assert near(linear.matmat(np.eye(model.nv)), mass.dense())


def test_scipy_takes_one_state():
    _, ops, _ = tree_and_operators(3, 3, batch=(2,))
    with pytest.raises(InputError, match="batch of states"):
        ops.phi.as_linear_operator()


def chain(n):
    builder = lw.ModelBuilder("chain")
    for k in range(n):
        builder.add_body(
            f"link{k}",
            f"link{k - 1}" if k else "world",
            lw.Revolute(axis=np.eye(3)[k % 3]),
            lw.transform(xyz=(0.1, 0.0, 0.0)),
            mass=1.0,
            com=(0.05, 0.0, 0.0),
            inertia=0.01 * np.eye(3),
        )
    return builder.build()


def test_time_is_linear_in_the_number_of_links():
    """phi on chains of 1000 and 4000 links; the depth is the number of links."""
    times = {}
    for n in (1000, 4000):
        model = chain(n)
        ops = model.operators(np.full(n, 0.1))
        x = np.ones(6 * n)
        ops.phi @ x
        times[n] = min(timed(lambda ops=ops, x=x: ops.phi @ x) for _ in range(5))
    assert times[4000] < 4 * 2 * times[1000]
    assert largest(ops.E_phi @ (ops.phi @ x) + x - ops.phi @ x) < 1e-9 * largest(ops.phi @ x)


def timed(function):
    start = time.thread_time()
    function()
    return time.thread_time() - start


@pytest.mark.parametrize(
    ("shape", "match"),
    [((3,), "cannot be applied"), ((2, 3), "cannot be applied"), ((1, 1, 1, 1), "cannot be applied")],
)
def test_arrays_of_the_wrong_shape(shape, match):
    _, ops, _ = tree_and_operators(3, 4)
    with pytest.raises(InputError, match=match) as error:
        ops.phi @ np.ones(shape)
    assert "24" in str(error.value)


def test_rows_where_columns_are_meant():
    _, ops, _ = tree_and_operators(3, 4)
    with pytest.raises(InputError, match="as columns"):
        ops.phi @ np.ones((3, 24))


def test_states_of_the_wrong_shape():
    model, _, (q, v, _) = tree_and_operators(3, 4)
    with pytest.raises(InputError, match="q has the wrong shape"):
        model.operators(q[:-1], v)
    with pytest.raises(InputError, match="do not fit together"):
        model.operators(np.stack([q, q]), np.stack([v, v, v]))
    with pytest.raises(InputError, match="frames"):
        model.operators(q, v, frames="world")
    with pytest.raises(InputError, match="one state"):
        model.operators(np.stack([q, q]).astype(object))


def test_vectors_are_arrays_to_their_users() -> None:
    """Everything that people do with an array."""
    from linkwise import samples

    model = samples.stanford_arm()
    q, v, tau = np.random.default_rng(0).normal(size=(3, 6))
    ops = model.operators(q, v)
    x = ops.mass_matrix.inv() @ (ops.vector(tau) - ops.C)
    plain = np.asarray(x)
    assert type(plain) is np.ndarray
    assert x.sum() == plain.sum()
    assert x.tolist() == plain.tolist()
    assert x.dtype == np.float64
    assert x.max() == plain.max()
    assert np.array_equal(x.reshape(2, 3), plain.reshape(2, 3))
    assert near(x / 2, plain / 2)
    assert near(x / plain, np.ones(6))
    assert near(x**2, plain**2)
    assert near(abs(x), np.abs(plain))
    assert np.array_equal((x > 0) | (x <= -1), (plain > 0) | (plain <= -1))
    assert np.array_equal((x < 0) & (x >= -1), (plain < 0) & (plain >= -1))
    assert "D" in repr(x / 2)  # still shown by name
    with pytest.raises(AttributeError, match="no attribute 'simpify'"):
        x.simpify  # noqa: B018
