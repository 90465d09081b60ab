"""Compiled functions as PyTorch functions that ``autograd`` differentiates, to any order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from linkwise.compiled.derivatives import componentwise
from linkwise.compiled.function import CompiledFunction
from linkwise.errors import require_extra
from linkwise.interop.derivatives import as_tuple, summed_to


def as_torch(f: CompiledFunction) -> Callable[..., Any]:
    """A function of tensors, with any leading batch axes, from a compiled function.

    Gradients are exact (the compiled product of weights with the Jacobian) and may be differentiated again. An
    input that is a configuration is differentiated number by number, as ``autograd`` expects, not in the tangent space.
    Tensors on other devices are computed on the CPU and brought back.

    Example:
        >>> f = as_torch(model.function("inverse_dynamics"))  # doctest: +SKIP
        >>> f(q, v, vdot).sum().backward()  # doctest: +SKIP
    """
    torch: Any = require_extra("torch", "torch")
    plain = componentwise(f)
    known = plain.__dict__.get("_torch")
    if known is not None:
        return known  # type: ignore[no-any-return]

    class Wrapped(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, *tensors: Any) -> Any:
            ctx.save_for_backward(*tensors)
            results = as_tuple(plain, plain.general(*(x.detach().cpu().numpy() for x in tensors)))
            like = tensors[0]
            found = tuple(torch.as_tensor(x, device=like.device) for x in results)
            return found[0] if plain.result_type is None else found

        @staticmethod
        def backward(ctx: Any, *weights: Any) -> Any:
            tensors = ctx.saved_tensors
            given = [w.contiguous() for w in weights]
            back = as_torch(plain.vjp())(*tensors, *given)
            arrays = back if isinstance(back, tuple) else (back,)
            wanted = ctx.needs_input_grad
            return tuple(
                summed_to(b, tuple(x.shape)) if need else None
                for b, x, need in zip(arrays, tensors, wanted, strict=True)
            )

    def call(*tensors: Any) -> Any:
        result = Wrapped.apply(*(torch.as_tensor(x) for x in tensors))
        return plain.result_type._make(result) if plain.result_type is not None else result

    plain.__dict__["_torch"] = call
    return call
