"""Compiled functions inside other libraries' automatic differentiation: JAX and PyTorch, each of which needs its extra.

Another library takes an array to be numbers, so configurations are differentiated number by number. Derivatives are
asked for as two products, which are compiled functions themselves: along directions (``jvp``) and with weights
(``vjp``). Both are linear in their last inputs, and so are products of products: to any order.

In JAX one primitive stands for a call. It knows which of its last arguments enter linearly (none, for a function as it
is; the directions or weights, for its products), and from that its rules follow: the derivative is the compiled product
with directions, the transpose of what is linear is the compiled product with weights, and a mapped axis is one more
axis of the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from linkwise.errors import require_extra
from linkwise.functions.derivatives import componentwise
from linkwise.functions.function import CompiledFunction

__all__ = ["as_jax", "as_torch"]


def as_jax(f: CompiledFunction) -> Callable[..., Any]:
    """A function of JAX arrays, with any leading batch axes, from a compiled function.

    It runs on the host: at once, or inside ``jax.jit`` through a callback. ``grad``, ``jvp``, ``vjp``, ``jacfwd``,
    ``jacrev``, ``hessian``, ``vmap`` and their combinations work, exactly and to any order. An input that is a
    configuration is differentiated number by number, not in the tangent space.

    Example:
        >>> f = as_jax(model.function("inverse_dynamics"))  # doctest: +SKIP
        >>> jax.hessian(lambda q: f(q, v, vdot).sum())(q)  # doctest: +SKIP
    """
    require_extra("jax", "jax")
    plain = componentwise(f)
    known: Callable[..., Any] | None = plain.__dict__.get("_jax")
    if known is None:
        known = plain.__dict__["_jax"] = _jax_function(plain)
    return known


def _jax_function(plain: CompiledFunction) -> Callable[..., Any]:
    import jax.numpy as jnp

    def call(*arrays: Any) -> Any:
        given = [jnp.asarray(x) for x in arrays]
        kind = jnp.result_type(float, *given) if not given else jnp.result_type(*given)
        kind = kind if jnp.issubdtype(kind, jnp.floating) else jnp.result_type(float)
        if len(given) != len(plain.inputs):
            return plain.general(*arrays)  # which says what is wrong
        batch = batch_shape(plain, [x.shape for x in given])
        # Equal batches, so that JAX itself sums the derivatives of what was broadcast.
        whole = [
            jnp.broadcast_to(x.astype(kind), (*batch, *core)) for x, (_, core) in zip(given, plain.inputs, strict=True)
        ]
        return as_result(plain, _jax_call().bind(*whole, f=plain, linear=0))

    return call


@cache
def _jax_call() -> Any:
    """The primitive: arguments of one batch shape and one precision; ``linear`` says how many of the last are."""
    import jax
    from jax.extend.core import Primitive
    from jax.interpreters import ad, batching, mlir

    call = Primitive("linkwise")
    call.multiple_results = True

    def lead(f: CompiledFunction, arrays: Sequence[Any]) -> tuple[int, ...]:
        return batch_shape(f, [tuple(x.shape) for x in arrays])

    def on_host(f: CompiledFunction, *arrays: Any) -> list[Any]:
        given = [np.asarray(x) for x in arrays]
        return [np.asarray(x, given[0].dtype) for x in as_tuple(f, f.general(*given))]

    def at_once(*arrays: Any, f: CompiledFunction, linear: int) -> list[Any]:
        return [jax.numpy.asarray(x) for x in on_host(f, *arrays)]

    def shapes(*arrays: Any, f: CompiledFunction, linear: int) -> list[Any]:
        batch = lead(f, arrays)
        return [jax.core.ShapedArray((*batch, *spec.shape), arrays[0].dtype) for spec in f.program.outputs]

    def by_callback(*arrays: Any, f: CompiledFunction, linear: int) -> Any:
        batch = lead(f, arrays)
        results = [jax.ShapeDtypeStruct((*batch, *spec.shape), arrays[0].dtype) for spec in f.program.outputs]
        return jax.pure_callback(lambda *x: on_host(f, *x), results, *arrays)

    def derivative(arrays: Any, moves: Any, *, f: CompiledFunction, linear: int) -> Any:
        cut = len(arrays) - linear
        moves = [None if type(x) is ad.Zero else x for x in moves]
        parts = []
        moved = [k for k in range(cut) if moves[k] is not None]
        if moved:
            along = f.jvp(*names_of(f, moved))
            parts.append(call.bind(*arrays, *(moves[k] for k in moved), f=along, linear=len(moved)))
        if any(x is not None for x in moves[cut:]):
            zero = [jax.numpy.zeros_like(x) if m is None else m for x, m in zip(arrays[cut:], moves[cut:], strict=True)]
            parts.append(call.bind(*arrays[:cut], *zero, f=f, linear=linear))
        total = parts[0] if len(parts) == 1 else [a + b for a, b in zip(*parts, strict=True)]
        return call.bind(*arrays, f=f, linear=linear), total

    def transpose(weights: Any, *arrays: Any, f: CompiledFunction, linear: int) -> Any:
        cut = len(arrays) - linear
        known = arrays[:cut]
        shape = [x.aval for x in arrays[cut:]]
        zeros = [jax.numpy.zeros(a.shape, a.dtype) for a in shape]  # what is linear does not matter to its transpose
        given = [ad.instantiate_zeros(w) for w in weights]
        back = f.vjp(*names_of(f, range(cut, len(arrays))))
        found = call.bind(*known, *zeros, *given, f=back, linear=len(given))
        return [None] * cut + list(found)

    def mapped(arrays: Any, axes: Any, *, f: CompiledFunction, linear: int) -> Any:
        size = next(x.shape[a] for x, a in zip(arrays, axes, strict=True) if a is not None)
        first = [
            jax.numpy.broadcast_to(x, (size, *x.shape)) if a is None else jax.numpy.moveaxis(x, a, 0)
            for x, a in zip(arrays, axes, strict=True)
        ]
        found = call.bind(*first, f=f, linear=linear)
        return found, [0] * len(found)

    call.def_impl(at_once)
    call.def_abstract_eval(shapes)
    ad.primitive_jvps[call] = derivative
    ad.primitive_transposes[call] = transpose
    batching.primitive_batchers[call] = mapped
    mlir.register_lowering(call, mlir.lower_fun(by_callback, multiple_results=True))
    return call


def as_torch(f: CompiledFunction) -> Callable[..., Any]:
    """A function of tensors, with any leading batch axes, from a compiled function.

    Derivatives are exact (the compiled products of the Jacobian with directions and with weights) and may be
    differentiated again: ``backward``, ``torch.func.grad``, ``jvp``, ``vjp``, ``jacfwd``, ``jacrev``, ``hessian``,
    ``vmap``. An input that is a configuration is differentiated number by number, as ``autograd`` expects, not in the
    tangent space. Tensors on other devices are computed on the CPU and brought back.

    Example:
        >>> f = as_torch(model.function("inverse_dynamics"))  # doctest: +SKIP
        >>> f(q, v, vdot).sum().backward()  # doctest: +SKIP
    """
    require_extra("torch", "torch")
    plain = componentwise(f)
    known: Callable[..., Any] | None = plain.__dict__.get("_torch")
    if known is None:
        known = plain.__dict__["_torch"] = _torch_function(plain)
    return known


def _torch_function(plain: CompiledFunction) -> Callable[..., Any]:
    import torch

    class Wrapped(torch.autograd.Function):  # type: ignore[misc]
        """A call; all tensors have one batch shape, so that PyTorch itself sums derivatives of what was broadcast."""

        @staticmethod
        def forward(*tensors: Any) -> Any:
            like = tensors[0]
            results = as_tuple(plain, plain.general(*(x.detach().cpu().numpy() for x in tensors)))
            return tuple(torch.as_tensor(x, device=like.device) for x in results)

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)

        @staticmethod
        def backward(ctx: Any, *weights: Any) -> Any:
            wanted = [k for k, need in enumerate(ctx.needs_input_grad) if need]
            back = plain.vjp(*names_of(plain, wanted))
            found = as_tuple(back, as_torch(back)(*ctx.saved_tensors, *weights))
            gradients = dict(zip(wanted, found, strict=True))
            return tuple(gradients.get(k) for k in range(len(plain.inputs)))

        @staticmethod
        def jvp(ctx: Any, *directions: Any) -> Any:
            moved = [k for k, d in enumerate(directions) if d is not None]
            along = plain.jvp(*names_of(plain, moved))
            return as_tuple(along, as_torch(along)(*ctx.saved_tensors, *(directions[k] for k in moved)))

        @staticmethod
        def vmap(info: Any, axes: Any, *tensors: Any) -> Any:
            first = [
                x.expand(info.batch_size, *x.shape) if a is None else x.movedim(a, 0)
                for x, a in zip(tensors, axes, strict=True)
            ]
            found = Wrapped.apply(*first)
            return found, (0,) * len(found)

    def call(*tensors: Any) -> Any:
        given = [torch.as_tensor(x) for x in tensors]
        if len(given) != len(plain.inputs):
            return plain.general(*tensors)  # which says what is wrong
        batch = batch_shape(plain, [tuple(x.shape) for x in given])
        whole = [x.expand((*batch, *core)) for x, (_, core) in zip(given, plain.inputs, strict=True)]
        return as_result(plain, Wrapped.apply(*whole))

    return call


def batch_shape(f: CompiledFunction, shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The common leading axes of the arguments."""
    leading = [shape[: len(shape) - len(core)] for shape, (_, core) in zip(shapes, f.inputs, strict=True)]
    return np.broadcast_shapes(*leading)


def as_tuple(f: CompiledFunction, result: Any) -> tuple[Any, ...]:
    """The outputs of a call, one or several."""
    return (result,) if f.result_type is None else tuple(result)


def as_result(f: CompiledFunction, arrays: Sequence[Any]) -> Any:
    """Arrays as a call returns them."""
    return arrays[0] if f.result_type is None else f.result_type._make(arrays)


def names_of(f: CompiledFunction, places: Sequence[int]) -> tuple[str, ...]:
    """Names of inputs by their places."""
    return tuple(f.inputs[k][0] for k in places)
