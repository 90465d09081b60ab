"""Compiled functions inside PyTorch: its derivatives are the compiled products with directions and with weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from linkwise.bridges.calls import as_result, as_tuple, batch_shape, names_of
from linkwise.errors import require_extra
from linkwise.functions.derivatives import componentwise
from linkwise.functions.function import CompiledFunction


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
