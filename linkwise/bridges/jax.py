"""Compiled functions inside JAX.

JAX takes an array to be numbers, so configurations are differentiated number by number. Derivatives are asked for as
two products, which are compiled functions themselves: along directions (``jvp``) and with weights (``vjp``). Both are
linear in their last inputs, and so are products of products: to any order.

One primitive stands for a call. It knows which of its last arguments enter linearly (none, for a function as it is; the
directions or weights, for its products), and from that its rules follow: the derivative is the compiled product with
directions, the transpose of what is linear is the compiled product with weights, and a mapped axis is one more axis of
the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from linkwise.bridges.calls import as_result, as_tuple, batch_shape, names_of
from linkwise.errors import require_extra
from linkwise.functions.derivatives import componentwise
from linkwise.functions.function import CompiledFunction


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
