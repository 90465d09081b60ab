"""Compiled functions inside PyTorch.

PyTorch takes a tensor to be numbers, so configurations are differentiated number by number. Derivatives are the
compiled products of the Jacobian with directions and with weights, functions like any other: to any order.

A call goes one of four ways. Plain tensors that nobody differentiates go straight to the machine code. Those that
``backward`` will ask about go through a ``torch.autograd.Function``, the short kind; ``torch.func``, forward mode and
``vmap`` need the long kind, which costs three times as much. Inside ``torch.compile`` a call is the operator
``linkwise::call``, which PyTorch's compiler takes as it is; its first argument is the number of the function, since
operators take numbers and tensors. On a GPU tensors stay where they are, on PyTorch's stream.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Any

from linkwise.bridges.plain_calls import as_tuple, batch_shape, names_of
from linkwise.errors import InputError, require_extra
from linkwise.functions.function import CompiledFunction, checked_function
from linkwise.functions.function_derivatives import componentwise

if TYPE_CHECKING:
    from torch import Tensor


def as_torch(f: CompiledFunction) -> TorchFunction:
    """A function of tensors, with any leading batch axes, from a compiled function.

    Derivatives are exact (the compiled products of the Jacobian with directions and with weights) and may be
    differentiated again: ``backward``, ``torch.func.grad``, ``jvp``, ``vjp``, ``jacfwd``, ``jacrev``, ``hessian``,
    ``vmap``; ``torch.compile`` takes a call as one operator. An input that is a configuration is differentiated number
    by number, as ``autograd`` expects, not in the tangent space. Tensors on a GPU are computed there, without a copy on
    the host. It can be pickled, for the workers of a ``DataLoader``.

    Example:
        >>> f = as_torch(model.function("inverse_dynamics"))  # doctest: +SKIP
        >>> f(q, v, vdot).sum().backward()  # doctest: +SKIP
    """
    require_extra("torch", "torch")
    known: TorchFunction | None = checked_function(f).__dict__.get("_torch")
    if known is None:
        known = f.__dict__["_torch"] = TorchFunction(f)
    return known


class TorchFunction:
    """A compiled function of tensors; made by :func:`as_torch`.

    Args:
        function: what is computed.
    """

    def __init__(self, function: CompiledFunction) -> None:
        import torch

        self.function, self.plain = function, componentwise(function)
        self._torch, self._cores = torch, [core for _, core in self.plain.inputs]
        self._several = self.plain.result_type is not None
        self._number = _number_of(self.plain)
        self._backward, self._transformed = _autograd_functions(self.plain)

    def __call__(self, *tensors: Tensor, **named: Tensor) -> Any:
        """Results as tensors, from tensors (or what becomes one) in their order or by name, with any leading axes."""
        torch = self._torch
        if named:
            tensors = self.plain.in_order(tensors, named)
        if torch.compiler.is_compiling():
            return self.plain.as_result(torch.ops.linkwise.call(self._number, self._whole(tensors)))
        if _are_transformed(torch, tensors):
            return self.plain.as_result(self._transformed.apply(*self._whole(tensors)))
        if torch.is_grad_enabled() and any(x.requires_grad for x in tensors):
            return self.plain.as_result(self._backward.apply(*self._whole(tensors)))
        return self.plain.as_result(_run(torch, self.plain, tensors))

    def _whole(self, tensors: Sequence[Tensor]) -> Sequence[Tensor]:
        """Tensors of one batch shape, so that PyTorch itself sums derivatives of what was broadcast."""
        try:
            given = [self._torch.as_tensor(x) for x in tensors]
        except (TypeError, ValueError, RuntimeError) as error:
            raise InputError(
                f"an argument of {self.plain.name} is no tensor",
                got=str(error).split("\n")[0],
                allowed="tensors, arrays",
            ) from None
        if [x.shape for x in given] == self._cores:
            return given
        batch = batch_shape(self.plain, [tuple(x.shape) for x in given])
        return [x.expand((*batch, *core)) for x, core in zip(given, self._cores, strict=True)]

    def __reduce__(self) -> tuple[object, ...]:
        """The function it is of."""
        return as_torch, (self.function,)

    def __repr__(self) -> str:
        return f"<{self.function!r} of tensors>"


def _are_transformed(torch: ModuleType, tensors: Sequence[Tensor]) -> bool:
    """Whether arguments are anything but plain tensors that nobody maps, traces or differentiates in forward mode."""
    if any(type(x) not in (torch.Tensor, torch.nn.Parameter) for x in tensors):
        return True
    if torch.autograd.forward_ad._current_level >= 0 or torch._C._are_functorch_transforms_active():
        return True
    return bool(torch._C._len_torch_dispatch_stack())


def _run(torch: ModuleType, f: CompiledFunction, tensors: Sequence[Tensor]) -> list[Tensor]:
    """Tensors of results, computed where the arguments are."""
    if tensors and tensors[0].is_cuda:
        return list(as_tuple(f, f(*(x.detach() for x in tensors))))
    try:
        arrays = [x.detach().numpy() for x in tensors]
    except TypeError as error:
        raise InputError(
            f"tensors of {f.name} are where no code runs",
            got=str(error).split(".")[0],
            allowed="tensors on cpu or cuda",
        ) from None
    found = f.quick(*arrays)
    from_numpy, as_tensor = torch.from_numpy, torch.as_tensor
    return [from_numpy(x) if type(x).__name__ == "ndarray" else as_tensor(x) for x in as_tuple(f, found)]


_functions: list[CompiledFunction] = []


def _number_of(f: CompiledFunction) -> int:
    """Number of a function in this process, for the operator."""
    _operator()
    known: int | None = f.__dict__.get("_torch_number")
    if known is None:
        known = f.__dict__["_torch_number"] = len(_functions)
        _functions.append(f)
    return known


@cache
def _operator() -> None:
    """The operator ``linkwise::call``, defined once: what it computes, its shapes, and its derivative."""
    import torch

    def run(function: int, tensors: list[Tensor]) -> list[Tensor]:
        return _run(torch, _functions[function], [x.contiguous() for x in tensors])

    def shapes(function: int, tensors: list[Tensor]) -> list[Tensor]:
        f = _functions[function]
        batch = tuple(tensors[0].shape[: tensors[0].ndim - len(f.inputs[0][1])]) if tensors else ()
        return [tensors[0].new_empty((*batch, *spec.shape)) for spec in f.program.outputs]

    def remember(ctx: Any, inputs: Any, output: object) -> None:
        ctx.function, tensors = inputs
        ctx.wanted = [k for k, x in enumerate(tensors) if x.requires_grad]
        ctx.save_for_backward(*tensors)

    def backward(ctx: Any, weights: Sequence[Tensor]) -> tuple[None, list[Tensor | None]]:
        f = _functions[ctx.function]
        back = _number_of(f.vjp(*names_of(f, ctx.wanted)))
        found = dict(zip(ctx.wanted, torch.ops.linkwise.call(back, [*ctx.saved_tensors, *weights]), strict=True))
        return None, [found.get(k) for k in range(len(f.inputs))]

    schema = "(int function, Tensor[] tensors) -> Tensor[]"
    call = torch.library.custom_op("linkwise::call", run, mutates_args=(), schema=schema)
    call.register_fake(shapes)
    call.register_autograd(backward, setup_context=remember)


def _autograd_functions(plain: CompiledFunction) -> tuple[Any, Any]:
    """Two classes whose ``apply`` is a call that is differentiated: by ``backward`` alone, and by whatever there is."""
    import torch

    def weighted(ctx: Any, *weights: Tensor) -> tuple[Tensor | None, ...]:
        """Weights times the Jacobian, for those inputs that need it."""
        wanted = [k for k, need in enumerate(ctx.needs_input_grad) if need]
        back = plain.vjp(*names_of(plain, wanted))
        found = as_tuple(back, as_torch(back)(*ctx.saved_tensors, *weights))
        gradients = dict(zip(wanted, found, strict=True))
        return tuple(gradients.get(k) for k in range(len(plain.inputs)))

    class Backward(torch.autograd.Function):  # type: ignore[misc]  # its base has no types
        """A call of tensors of one batch shape, for ``backward``."""

        backward = staticmethod(weighted)

        @staticmethod
        def forward(ctx: Any, *tensors: Tensor) -> tuple[Tensor, ...]:
            ctx.save_for_backward(*tensors)
            return tuple(_run(torch, plain, tensors))

    class Transformed(torch.autograd.Function):  # type: ignore[misc]  # its base has no types
        """The same for ``torch.func`` and forward mode."""

        backward = staticmethod(weighted)

        @staticmethod
        def forward(*tensors: Tensor) -> tuple[Tensor, ...]:
            return tuple(_run(torch, plain, tensors))

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: object) -> None:
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)

        @staticmethod
        def jvp(ctx: Any, *directions: Tensor | None) -> tuple[Tensor, ...]:
            moved = [k for k, d in enumerate(directions) if d is not None]
            along = plain.jvp(*names_of(plain, moved))
            return as_tuple(along, as_torch(along)(*ctx.saved_tensors, *(directions[k] for k in moved)))

        @staticmethod
        def vmap(info: Any, axes: Sequence[int | None], *tensors: Tensor) -> tuple[Sequence[Tensor], tuple[int, ...]]:
            first = [
                x.expand(info.batch_size, *x.shape) if a is None else x.movedim(a, 0)
                for x, a in zip(tensors, axes, strict=True)
            ]
            found = Transformed.apply(*first)
            return found, (0,) * len(found)

    return Backward, Transformed
