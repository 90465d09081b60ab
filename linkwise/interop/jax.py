"""Compiled functions as JAX functions: under ``jit``, ``vmap`` and ``grad``, to any order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from linkwise.compiled.derivatives import componentwise
from linkwise.compiled.function import CompiledFunction
from linkwise.errors import require_extra
from linkwise.interop.derivatives import as_tuple, batch_shape, summed_to


def as_jax(f: CompiledFunction) -> Callable[..., Any]:
    """A function of JAX arrays, with any leading batch axes, from a compiled function.

    It runs on the host, through ``jax.pure_callback``; its derivative is a ``custom_vjp``, exact, and may be
    differentiated again in reverse mode. An input that is a configuration is differentiated number by number, not in
    the tangent space.

    Example:
        >>> f = as_jax(model.function("inverse_dynamics"))  # doctest: +SKIP
        >>> jax.grad(lambda q: f(q, v, vdot).sum())(q)  # doctest: +SKIP
    """
    jax: Any = require_extra("jax", "jax")
    plain = componentwise(f)
    known = plain.__dict__.get("_jax")
    if known is not None:
        return known  # type: ignore[no-any-return]

    def on_host(*arrays: Any) -> Any:
        given = [np.asarray(x) for x in arrays]
        kind = np.result_type(*(x.dtype for x in given))
        results = as_tuple(plain, plain.general(*given))
        return tuple(np.asarray(x, kind) for x in results)

    def run(*arrays: Any) -> Any:
        arrays = tuple(jax.numpy.asarray(x) for x in arrays)
        batch = batch_shape(plain, [x.shape for x in arrays])
        kind = jax.numpy.result_type(*arrays)
        shapes = tuple(jax.ShapeDtypeStruct((*batch, *array.shape), kind) for array in plain.program.outputs)
        results = jax.pure_callback(on_host, shapes, *arrays, vmap_method="broadcast_all")
        return results[0] if plain.result_type is None else plain.result_type._make(results)

    wrapped: Any = jax.custom_vjp(run)

    def forward(*arrays: Any) -> Any:
        return wrapped(*arrays), arrays

    def backward(arrays: Any, weights: Any) -> Any:
        given = as_tuple(plain, weights)
        back = as_jax(plain.vjp())(*arrays, *given)
        found = back if isinstance(back, tuple) else (back,)
        return tuple(summed_to(b, np.shape(x)) for b, x in zip(found, arrays, strict=True))

    wrapped.defvjp(forward, backward)
    plain.__dict__["_jax"] = wrapped
    return wrapped  # type: ignore[no-any-return]
