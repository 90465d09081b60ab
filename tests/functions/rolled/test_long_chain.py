"""One state of a long chain, by segments on several threads: the same accelerations, or the ordinary sweep."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import linkwise as lw
from linkwise.functions.rolled import chain_segments as segments
from linkwise.functions.rolled.chain_segments import LongChainFunction

CUT = {
    "revolute": lambda rng: lw.Revolute(rng.normal(size=3)),
    "prismatic": lambda rng: lw.Prismatic(rng.normal(size=3)),
    "helical": lambda rng: lw.Helical(axis=rng.normal(size=3), pitch=0.1),
    "cylindrical": lambda rng: lw.Cylindrical(rng.normal(size=3)),
}
NOT_CUT = {
    "universal": lambda _: lw.Universal(),
    "planar": lambda _: lw.Planar(),
    "spherical": lambda _: lw.Spherical(),
    "free": lambda _: lw.Free(),
    "mixed": lambda rng: lw.Revolute((0, 0, 1)) if rng.random() < 0.5 else lw.Prismatic((0, 0, 1)),
}
MakeJoint = Callable[[np.random.Generator], lw.Joint]


def chain(n: int, joint: MakeJoint, seed: int = 0, branch_at: int | None = None) -> lw.Model:
    rng = np.random.default_rng(seed)
    builder = lw.ModelBuilder("chain")
    for i in range(n):
        parent = "world" if i == 0 else f"link{i - 2}" if i == branch_at else f"link{i - 1}"
        builder.add_body(
            f"link{i}",
            parent,
            joint(rng),
            placement=lw.transform(xyz=rng.normal(size=3) * 0.1, rpy=rng.normal(size=3)),
            mass=1 + rng.random(),
            com=rng.normal(size=3) * 0.1,
            inertia=np.diag((0.1, 0.12, 0.05)),
        )
    return builder.build().with_sweeps("rolled")


def state(model: lw.Model) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    return model.random_configuration(rng), *(rng.normal(size=(2, model.nv)) * 0.3)


@pytest.fixture
def short_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments, "LONG", 5)


@pytest.mark.usefixtures("short_is_long")
@pytest.mark.parametrize("threads", [2, 3])
@pytest.mark.parametrize("n", [5, 37, 400])
def test_segments_give_the_same_accelerations(n: int, threads: int) -> None:
    model = chain(n, CUT["revolute"], n)
    q, v, tau = state(model)
    assert isinstance(model.function("forward_dynamics"), LongChainFunction)
    expected = model.forward_dynamics(q, v, tau)
    out = np.empty(n)
    got = model.forward_dynamics(q, v, tau, out=out, threads=threads)
    assert got is out
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-10 * np.abs(expected).max())
    assert not np.array_equal(got, expected)  # another order of operations: it did go by segments


@pytest.mark.usefixtures("short_is_long")
@pytest.mark.parametrize("kind", [*CUT, *NOT_CUT])
def test_every_joint_type(kind: str) -> None:
    """Those that cannot be cut go from link to link, without a word, and to the bit as without threads."""
    model = chain(40, (CUT | NOT_CUT)[kind])
    q, v, tau = state(model)
    expected = model.forward_dynamics(q, v, tau)
    got = model.forward_dynamics(q, v, tau, threads=2)
    assert isinstance(model.function("forward_dynamics"), LongChainFunction) == (kind in CUT)
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-10 * np.abs(expected).max())
    if kind in NOT_CUT:
        np.testing.assert_array_equal(got, expected)
    residual = model.inverse_dynamics(q, v, got) - tau
    assert np.abs(residual).max() < 1e-10 * np.abs(model.bias_force(q, v)).max()


@pytest.mark.usefixtures("short_is_long")
def test_what_is_not_one_state_of_a_chain() -> None:
    model = chain(40, CUT["revolute"])
    q, v, tau = state(model)
    together = model.forward_dynamics(np.stack((q, q)), v, tau, threads=2)
    np.testing.assert_array_equal(together, model.forward_dynamics(np.stack((q, q)), v, tau))
    single = model.forward_dynamics(*(np.float32(x) for x in (q, v, tau)), threads=2)
    assert single.dtype == np.float32
    pulled = model.forward_dynamics(q, v, tau, np.ones((40, 6)), threads=2)
    np.testing.assert_array_equal(pulled, model.forward_dynamics(q, v, tau, np.ones((40, 6))))
    heavier = model.with_parameters(["link3.mass"])
    np.testing.assert_array_equal(heavier.forward_dynamics(q, v, tau, threads=2), heavier.forward_dynamics(q, v, tau))
    branched = chain(40, CUT["revolute"], branch_at=20)
    assert not isinstance(branched.function("forward_dynamics"), LongChainFunction)
    np.testing.assert_array_equal(branched.forward_dynamics(q, v, tau, threads=2), branched.forward_dynamics(q, v, tau))


def test_short_chains_are_left_alone() -> None:
    assert not isinstance(chain(100, CUT["revolute"]).function("forward_dynamics"), LongChainFunction)
