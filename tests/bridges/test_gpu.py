"""Bridges on a real GPU: results, derivatives, and that nothing goes by way of the host."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise import samples
from linkwise.targets.cuda.target import TARGET

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not TARGET.available(), reason="no CUDA device, or no CuPy")]

MODEL = samples.stanford_arm()


def states(count: int) -> list[np.ndarray]:
    rng = np.random.default_rng(count)
    return [rng.normal(size=(count, 6)) for _ in range(3)]


@pytest.fixture
def jax() -> Iterator[Any]:
    found = pytest.importorskip("jax")
    if found.default_backend() != "gpu":
        pytest.skip("JAX has no GPU here")
    with found.enable_x64(True):
        yield found


@pytest.mark.parametrize("count", [1, 33, 5000])
def test_jax_on_its_stream(jax: Any, count: int) -> None:
    f = lw.as_jax(MODEL.function("forward_dynamics"))
    given = states(count)

    def several(q: Any, v: Any, tau: Any) -> Any:
        for _ in range(3):  # kernels of XLA's before and behind
            v = v + 1e-3 * f(q, v, 2.0 * tau)
        return jax.numpy.sin(v)

    q, v, tau = given
    for _ in range(3):
        v = v + 1e-3 * MODEL.forward_dynamics(q, v, 2.0 * tau)
    text = jax.jit(several).lower(*given).as_text()
    assert "custom_call @linkwise" in text and "callback" not in text
    np.testing.assert_allclose(jax.jit(several)(*given), np.sin(v), rtol=1e-9, atol=1e-9)


def test_jax_derivatives_and_loops(jax: Any) -> None:
    q, v, tau = states(7)
    f = lw.as_jax(MODEL.function("forward_dynamics"))
    first = jax.jit(jax.vmap(jax.jacrev(f, argnums=2)))(q, v, tau)
    np.testing.assert_allclose(first, MODEL.mass_matrix_inverse(q), rtol=1e-9, atol=1e-9)
    energy = lw.as_jax(MODEL.function("kinetic_energy"))
    second = jax.jit(jax.vmap(jax.hessian(energy, argnums=1)))(q, v)
    np.testing.assert_allclose(second, MODEL.mass_matrix(q), rtol=1e-9, atol=1e-9)

    def roll(q: Any, v: Any) -> Any:
        def step(state: Any, _: Any) -> Any:
            q, v = state
            v = v + 1e-3 * f(q, v, 0.0 * v)
            return (q + 1e-3 * v, v), None

        return jax.lax.scan(step, (q, v), None, length=50)[0][0]

    x, w = q, 0.1 * v
    for _ in range(50):
        w = w + 1e-3 * MODEL.forward_dynamics(x, w, np.zeros(6))
        x = x + 1e-3 * w
    np.testing.assert_allclose(jax.jit(roll)(q, 0.1 * v), x, rtol=1e-8, atol=1e-8)
    assert jax.jit(jax.grad(lambda q: roll(q, 0.1 * v).sum()))(q).shape == q.shape
    at_once = f(*map(jax.numpy.asarray, (q, v, tau)))
    np.testing.assert_allclose(at_once, MODEL.forward_dynamics(q, v, tau), rtol=1e-9)


def test_torch_without_the_host() -> None:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("PyTorch has no GPU here")
    from torch.profiler import ProfilerActivity, profile

    f = lw.as_torch(MODEL.function("forward_dynamics"))
    q, v, tau = (torch.tensor(x, device="cuda") for x in states(512))
    tau.requires_grad_()

    def both() -> Any:
        found = f(q, v, tau)
        return found, *torch.autograd.grad(found.square().sum(), tau)

    found, gradient = both()
    assert found.device == gradient.device == q.device
    plain = MODEL.forward_dynamics(*(x.detach().cpu().numpy() for x in (q, v, tau)))
    np.testing.assert_allclose(found.detach().cpu(), plain, rtol=1e-9, atol=1e-9)
    inverse = MODEL.mass_matrix_inverse(q.cpu().numpy())
    np.testing.assert_allclose(gradient.cpu(), 2 * np.einsum("bij,bi->bj", inverse, plain), rtol=1e-8, atol=1e-8)
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as seen:
        both()
        torch.cuda.synchronize()
    names = [event.name for event in seen.events()]
    assert not [name for name in names if "Memcpy" in name and ("DtoH" in name or "HtoD" in name)]
    small = [torch.tensor(x, device="cuda", requires_grad=True) for x in states(2)]
    assert torch.autograd.gradcheck(f, small)
    assert torch.autograd.gradgradcheck(f, small)
    compiled = torch.compile(lambda *x: f(*x) * 2.0, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(q, v, tau), 2.0 * f(q, v, tau))


def test_environments_are_the_same_as_on_the_processor() -> None:
    pytest.importorskip("gymnasium")
    import cupy

    for name in ("cart_pole", "hopper", "satellite_slew"):
        here, there = (lw.gym.task(name, 100, dtype=np.float64, device=device) for device in ("cpu", "cuda"))
        seen = [env.reset(seed=4)[0] for env in (here, there)]
        assert isinstance(seen[1], cupy.ndarray)
        here.action_space.seed(0)
        for _ in range(40):
            action = here.action_space.sample()
            ours, theirs = here.step(action), there.step(cupy.asarray(action))
            np.testing.assert_allclose(cupy.asnumpy(theirs[0]), ours[0], rtol=1e-6, atol=1e-6)
            for a, b in zip(ours[1:4], theirs[1:4], strict=True):
                np.testing.assert_allclose(cupy.asnumpy(b), a, rtol=1e-6, atol=1e-6)
