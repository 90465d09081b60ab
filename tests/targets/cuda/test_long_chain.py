"""One state of a long chain on a GPU, by segments that are joined pair by pair; kernels run by emulation."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.functions.rolled import chain_segments as segments
from linkwise.functions.rolled import on_device
from linkwise.functions.rolled.on_device import segment_length
from tests.functions.rolled.test_long_chain import CUT, chain, state
from tests.targets.cuda.emulation import needs_compiler
from tests.targets.cuda.fakes import CupyArray, Fakes, Tensor, fakes  # noqa: F401

pytestmark = needs_compiler


@pytest.fixture(autouse=True)
def _short_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments, "LONG", 5)
    monkeypatch.setattr(on_device, "SEGMENTS", 6)
    on_device.step.cache_clear()  # what another test's device compiled


@pytest.mark.parametrize("n", [13, 60])  # with and without links left over
def test_segments_give_the_same_accelerations(fakes: Fakes, n: int) -> None:  # noqa: F811
    model = chain(n, CUT["revolute"], n)
    q, v, tau = state(model)
    expected = model.forward_dynamics(q, v, tau)
    bound = 1e-9 * np.abs(expected).max()
    on = [fakes.array(x) for x in (q, v, tau)]
    got = model.forward_dynamics(*on)
    assert type(got) is CupyArray
    assert np.abs(np.asarray(got) - expected).max() <= bound
    names = [name for name, *_ in fakes.cupy.launches]
    assert "linkwise_chain_joined" in names and "linkwise_forward_dynamics" not in names
    if n == 13:
        return
    narrow = model.forward_dynamics(*(x.astype(np.float32) for x in on))
    assert narrow.dtype == np.float32 and np.abs(np.asarray(narrow) - expected).max() <= 1e-3 * np.abs(expected).max()
    several = model.forward_dynamics(np.stack([on[0]] * 3).view(CupyArray), on[1], tau)
    assert several.shape == (3, model.nv) and np.abs(np.asarray(several) - expected).max() <= bound
    tensor = model.forward_dynamics(*(Tensor(x) for x in (q, v, tau)))
    assert isinstance(tensor, Tensor) and np.abs(np.asarray(tensor.array) - expected).max() <= bound
    assert model.forward_dynamics(*on, out=on[2]) is on[2]
    assert np.abs(np.asarray(on[2]) - expected).max() <= bound
    with pytest.raises(lw.InputError, match="wrong shape"):
        model.forward_dynamics(on[0][:-1], on[1], on[2])


def test_many_states_go_from_link_to_link(fakes: Fakes, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    monkeypatch.setattr(on_device, "FEW", 4)
    model = chain(12, CUT["revolute"])
    rng = np.random.default_rng(0)
    q, v, tau = rng.normal(size=(3, 5, 12))
    got = model.forward_dynamics(*(fakes.array(x) for x in (q, v, tau)))
    expected = model.forward_dynamics(q, v, tau)
    assert np.abs(np.asarray(got) - expected).max() <= 1e-12 * np.abs(expected).max()
    assert [name for name, *_ in fakes.cupy.launches] == ["linkwise_forward_dynamics"]


def test_few_links_are_left_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_device, "SEGMENTS", 2048)
    assert segment_length(100_000) == 50
    for n in (10_000, 12_345, 100_000, 99_991, 1_000_003):
        length = segment_length(n)
        assert n % length < length and 0.7 < n / length / 2048 < 1.4
