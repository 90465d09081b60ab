"""Compiled functions under PyTorch's autograd and torch.func: both modes, first and second order, batches."""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import InputError
from tests.derivatives.differences import relative
from tests.random_trees import random_state, random_tree

torch = pytest.importorskip("torch", reason="needs the extra torch")


@pytest.fixture(scope="module")
def model() -> lw.Model:
    return random_tree(11, 2, ("spherical", "revolute"))


@pytest.fixture(scope="module")
def arm() -> lw.Model:
    """Without quaternions, so that number by number is the tangent space."""
    return random_tree(3, 2, ("revolute",), mimic=0.0)


def tensors(*arrays: Any) -> list[Any]:
    return [torch.tensor(a) for a in arrays]


def test_backward(model: lw.Model) -> None:
    rng = np.random.default_rng(3)
    q, v, x = random_state(model, rng, (2,))
    given = [y.requires_grad_() for y in tensors(q, v, x[0])]  # the last one is broadcast
    f = lw.as_torch(model.function("inverse_dynamics"))
    np.testing.assert_allclose(f(*given).detach().numpy(), model.inverse_dynamics(q, v, x[0]))
    assert torch.autograd.gradcheck(f, given, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(f, given, check_fwd_over_rev=True)
    lin = lw.as_torch(model.function("linearize_inverse"))
    assert torch.autograd.gradcheck(lambda *y: lin(*y).dv, given)
    weights = torch.tensor(rng.normal(size=(2, model.nv)))
    (grad,) = torch.autograd.grad((f(*given) * weights).sum(), [given[1]])
    expected = np.einsum("bi,bij->bj", weights.numpy(), model.linearize_inverse(q, v, x[0]).dv)
    assert relative(grad.numpy(), expected) < 1e-11


def test_all_ways_of_a_first_derivative(model: lw.Model) -> None:
    q, v, x = random_state(model, np.random.default_rng(4))
    f = lw.as_torch(model.function("inverse_dynamics"))
    expected = model.linearize_inverse(q, v, x).dv
    q_, v_, x_ = tensors(q, v, x)
    for way in (torch.func.jacfwd, torch.func.jacrev):
        assert relative(way(f, argnums=1)(q_, v_, x_).numpy(), expected) < 1e-11
    direction = torch.arange(1.0, model.nv + 1, dtype=torch.float64)
    value, along = torch.func.jvp(lambda v: f(q_, v, x_), (v_,), (direction,))
    assert relative(value.numpy(), model.inverse_dynamics(q, v, x)) < 1e-12
    assert relative(along.numpy(), expected @ direction.numpy()) < 1e-11
    _, pull = torch.func.vjp(lambda v: f(q_, v, x_), v_)
    assert relative(pull(direction)[0].numpy(), expected.T @ direction.numpy()) < 1e-11


def test_hessians(arm: lw.Model) -> None:
    q, v, _ = random_state(arm, np.random.default_rng(0))
    f = lw.as_torch(arm.function("kinetic_energy"))
    q_, v_ = tensors(q, v)
    expected = arm.function("kinetic_energy").hessian("q")(q, v)
    func = torch.func
    for way in (func.hessian(f), func.jacrev(func.jacrev(f)), func.jacfwd(func.jacfwd(f)), func.jacrev(func.jacfwd(f))):
        assert relative(way(q_, v_).numpy(), expected) < 1e-10
    twice = torch.autograd.functional.hessian(lambda v: f(q_, v), v_)
    assert relative(twice.numpy(), arm.mass_matrix(q)) < 1e-11


def test_maps(model: lw.Model) -> None:
    q, v, x = random_state(model, np.random.default_rng(5), (3,))
    q_, v_, x_ = tensors(q, v, x[0])
    f = lw.as_torch(model.function("inverse_dynamics"))
    expected = model.inverse_dynamics(q, v, x[0])
    assert relative(torch.func.vmap(f, in_dims=(0, 0, None))(q_, v_, x_).numpy(), expected) < 1e-12
    mapped = torch.func.vmap(f, in_dims=(1, 0, None), out_dims=1)(q_.T, v_, x_)
    assert relative(mapped.numpy(), expected.T) < 1e-12
    lin = model.linearize_inverse(q, v, x[0])
    each = torch.func.vmap(torch.func.jacrev(f, argnums=1), in_dims=(0, 0, None))(q_, v_, x_)
    assert relative(each.numpy(), lin.dv) < 1e-11
    each = torch.func.vmap(torch.func.grad(lambda v, q: f(q, v, x_).sum()))(v_, q_)
    assert relative(each.numpy(), lin.dv.sum(-2)) < 1e-11
    energy = lw.as_torch(model.function("kinetic_energy"))
    assert torch.func.vmap(torch.func.hessian(energy))(q_, v_).shape == (3, model.nq, model.nq)


def test_several_outputs(model: lw.Model) -> None:
    q, v, x = random_state(model, np.random.default_rng(6))
    q_, v_, x_ = tensors(q, v, x)
    lin = lw.as_torch(model.function("linearize_inverse"))
    found = lin(q_, v_, x_)
    assert relative(found.dv.numpy(), model.linearize_inverse(q, v, x).dv) < 1e-12
    first = torch.func.jacrev(lambda v: lin(q_, v, x_).tau)(v_)  # the other outputs have no weight
    assert relative(first.numpy(), found.dv.numpy()) < 1e-11


def test_single_precision(arm: lw.Model) -> None:
    f = lw.as_torch(arm.function("kinetic_energy"))
    q = torch.zeros(arm.nq, requires_grad=True)
    value = f(q, torch.ones(arm.nv))
    assert value.dtype == torch.float32
    value.backward()
    assert q.grad.dtype == torch.float32


def test_mistakes_are_ours_to_tell(arm: lw.Model) -> None:
    f = lw.as_torch(arm.function("kinetic_energy"))
    with pytest.raises(InputError, match="takes 2 arrays"):
        f(torch.zeros(arm.nq))
    for q in (torch.zeros(arm.nq + 1), torch.zeros(arm.nq + 1, requires_grad=True)):
        with pytest.raises(InputError, match="q has the wrong shape"):
            f(q, torch.zeros(arm.nv))
    with pytest.raises(InputError, match="do not fit together"):
        f(torch.zeros(4, arm.nq, requires_grad=True), torch.zeros(5, arm.nv))
    with pytest.raises(InputError, match="kinetic_energy is no tensor"):
        f("q", torch.zeros(arm.nv))
    with pytest.raises(InputError, match="not a compiled function"):
        lw.as_torch(arm.kinetic_energy)
    falling = lw.compile(lambda m, q, v: {"q": m.integrate(q, 0.01 * v), "v": v}, arm, {"q": "q", "v": "v"})
    with pytest.raises(InputError, match=r"take its step, f\.step, and repeat that there"):
        lw.as_torch(lw.rollout(falling, 3))


def test_arrays_and_names(arm: lw.Model) -> None:
    f = lw.as_torch(arm.function("kinetic_energy"))
    q, v, _ = random_state(arm, np.random.default_rng(4))
    moved = torch.tensor(v, requires_grad=True)
    for found in (f(q, v), f(v=v, q=q), f(q, moved)):
        assert float(found) == pytest.approx(float(arm.kinetic_energy(q, v)), rel=1e-14)


def test_compiled_by_torch(model: lw.Model) -> None:
    """As one operator, with its derivative; PyTorch's own check of operators finds nothing."""
    q, v, x = tensors(*random_state(model, np.random.default_rng(4), (3,)))
    f = lw.as_torch(model.function("inverse_dynamics"))
    compiled = torch.compile(lambda *y: 2.0 * f(*y), backend="aot_eager", fullgraph=True)
    v.requires_grad_()
    torch.testing.assert_close(compiled(q, v, x), 2.0 * f(q, v, x), rtol=0, atol=0)
    ours, theirs = (torch.autograd.grad(g(q, v, x).square().sum(), v)[0] for g in (f, compiled))
    torch.testing.assert_close(theirs, 4.0 * ours)
    torch.testing.assert_close(compiled(q, v.detach(), x[0]), 2.0 * f(q, v.detach(), x[0]), rtol=0, atol=0)
    torch.library.opcheck(torch.ops.linkwise.call, (f._number, [q, v, x]))


def test_the_operator_to_second_order(arm: lw.Model) -> None:
    f = lw.as_torch(arm.function("inverse_dynamics"))
    given = [y.requires_grad_() for y in tensors(*random_state(arm, np.random.default_rng(4), (2,)))]

    def call(*y: Any) -> Any:
        return torch.ops.linkwise.call(f._number, list(y))[0]

    assert torch.autograd.gradcheck(call, given)
    assert torch.autograd.gradgradcheck(call, given)


WORKER = """
import torch
import linkwise as lw
from linkwise.samples import planar_arm

class Motions(torch.utils.data.Dataset):
    f = lw.as_torch(planar_arm(2).function("forward_dynamics"))

    def __len__(self):
        return 4

    def __getitem__(self, k):
        return self.f(torch.full((2,), float(k)), torch.ones(2), torch.ones(2))

data = Motions()
(found,) = torch.utils.data.DataLoader(data, batch_size=4, num_workers=1)
torch.testing.assert_close(found, torch.stack([data[k] for k in range(4)]), rtol=0, atol=0)
"""


def test_functions_travel(arm: lw.Model) -> None:
    for made in (
        arm.function("forward_dynamics"),
        lw.compile(lambda m, a, b, c: m.forward_dynamics(a, b, c), arm, {"a": "q", "b": "v", "c": "v"}),
    ):
        f = lw.as_torch(made)
        again = pickle.loads(pickle.dumps(f))
        given = tensors(*random_state(arm, np.random.default_rng(4), (3,)))
        torch.testing.assert_close(again(*given), f(*given), rtol=0, atol=0)


def test_workers_of_a_loader() -> None:
    """In a process of its own: one in which JAX has threads should not be forked."""
    done = subprocess.run([sys.executable, "-c", WORKER], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_inference_and_plain_numbers(arm: lw.Model) -> None:
    f = lw.as_torch(arm.function("kinetic_energy"))
    q, v = tensors(*random_state(arm, np.random.default_rng(4))[:2])
    with torch.inference_mode():
        assert f(q, v).shape == ()
        assert not f(q, v.clone()).requires_grad
    strided = torch.stack([v, v], dim=1)[:, 0]
    torch.testing.assert_close(f(q, strided), f(q, v))
    parameter = torch.nn.Parameter(v)
    f(q, parameter).backward()
    assert relative(parameter.grad.numpy(), arm.mass_matrix(q.numpy()) @ v.numpy()) < 1e-12
