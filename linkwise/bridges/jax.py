"""Compiled functions inside JAX.

JAX takes an array to be numbers, so configurations are differentiated number by number. Derivatives are asked for as
two products, which are compiled functions themselves: along directions (``jvp``) and with weights (``vjp``). Both are
linear in their last inputs, and so are products of products: to any order.

One primitive stands for a call. It knows which of its last arguments enter linearly (none, for a function as it is; the
directions or weights, for its products), and from that its rules follow: the derivative is the compiled product with
directions, the two products are each other's transposes, and a mapped axis is one more axis of the batch.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise import targets
from linkwise.array_types import Array
from linkwise.bridges.plain_calls import as_tuple, batch_shape, names_of
from linkwise.errors import LinkwiseError, require_extra
from linkwise.functions.function import CompiledFunction, checked_function
from linkwise.functions.function_derivatives import componentwise
from linkwise.targets.llvm.foreign_calls import ATTRIBUTE, MAJOR, MOST_ARRAYS, foreign_calls, launch_entry, number_of
from linkwise.targets.llvm.foreign_calls import available as foreign_calls_available
from linkwise.trace.block import Block
from linkwise.trace.program import Program

if TYPE_CHECKING:
    from jax import Array as JaxArray

Of = tuple[CompiledFunction, tuple[str, ...], str] | None


def as_jax(f: CompiledFunction) -> Callable[..., Any]:
    """A function of JAX arrays, with any leading batch axes, from a compiled function.

    Inside ``jax.jit`` a call is a call of machine code: XLA hands its buffers to the compiled function, on the
    processor and on a GPU (there on its own stream), and neither Python nor a copy comes between. ``grad``, ``jvp``,
    ``vjp``, ``jacfwd``, ``jacrev``, ``hessian``, ``vmap``, ``scan`` and their combinations work, exactly and to any
    order, and so does ``jax.export`` (see :data:`TARGET`). An input that is a configuration is differentiated number by
    number, not in the tangent space.

    Example:
        >>> f = as_jax(model.function("inverse_dynamics"))  # doctest: +SKIP
        >>> jax.hessian(lambda q: f(q, v, vdot).sum())(q)  # doctest: +SKIP
    """
    require_extra("jax", "jax")
    plain = componentwise(checked_function(f))
    known: Callable[..., Any] | None = plain.__dict__.get("_jax")
    if known is None:
        known = plain.__dict__["_jax"] = _jax_function(plain)
    return known


TARGET = "linkwise"
"""Name of the foreign call in XLA's programs, one for all functions: what ``jax.export`` must be told to let pass,
``disabled_checks=[jax.export.DisabledSafetyCheck.custom_call("linkwise")]``. The functions in it are known by what they
compute; a process that runs an exported program lowers the same function once before (``jax.jit(f).lower(...)``)."""


def _jax_function(plain: CompiledFunction) -> Callable[..., Any]:
    import jax.numpy as jnp

    def call(*arrays: JaxArray, **named: JaxArray) -> Any:
        given = [jnp.asarray(x) for x in (plain.in_order(arrays, named) if named else arrays)]
        kind = jnp.result_type(*given) if given else jnp.result_type(float)
        kind = kind if jnp.issubdtype(kind, jnp.floating) else jnp.result_type(float)
        batch = batch_shape(plain, [x.shape for x in given], jnp.broadcast_shapes)
        # Equal batches, so that JAX itself sums the derivatives of what was broadcast.
        whole = [
            jnp.broadcast_to(x.astype(kind), (*batch, *core)) for x, (_, core) in zip(given, plain.inputs, strict=True)
        ]
        return plain.as_result(_jax_call().bind(*whole, f=plain, linear=0, of=None))

    return call


@cache
def _jax_call() -> Any:
    """The primitive: arguments of one batch shape and one precision; ``linear`` says how many of the last are.

    What is linear is a product of a Jacobian: ``of`` has its function, the names, and the mode, ``"jvp"`` or ``"vjp"``.
    The other mode is its transpose.
    """
    import jax
    from jax.extend.core import Primitive
    from jax.interpreters import ad, batching, mlir

    call = Primitive("linkwise")
    call.multiple_results = True

    def lead(f: CompiledFunction, arrays: Sequence[JaxArray]) -> tuple[int, ...]:
        return tuple(arrays[0].shape[: len(arrays[0].shape) - len(f.inputs[0][1])]) if arrays else ()

    def on_host(f: CompiledFunction, *arrays: JaxArray) -> list[Array]:
        given = [np.asarray(x) for x in arrays]
        return [np.asarray(x, given[0].dtype) for x in as_tuple(f, f.general(*given))]

    def at_once(*arrays: JaxArray, f: CompiledFunction, linear: int, of: Of) -> list[JaxArray]:
        if targets.place_of(arrays) is not None:
            return list(as_tuple(f, f.general(*arrays)))
        return [jax.numpy.asarray(x) for x in on_host(f, *arrays)]

    def shapes(*arrays: JaxArray, f: CompiledFunction, linear: int, of: Of) -> list[Any]:
        batch = lead(f, arrays)
        return [jax.core.ShapedArray((*batch, *spec.shape), arrays[0].dtype) for spec in f.program.outputs]

    def by_callback(*arrays: JaxArray, f: CompiledFunction, linear: int, of: Of) -> Sequence[JaxArray]:
        batch = lead(f, arrays)
        results = [jax.ShapeDtypeStruct((*batch, *spec.shape), arrays[0].dtype) for spec in f.program.outputs]
        found: Sequence[JaxArray] = jax.pure_callback(lambda *x: on_host(f, *x), results, *arrays)
        return found

    def derivative(
        arrays: Sequence[JaxArray], moves: Sequence[Any], *, f: CompiledFunction, linear: int, of: Of
    ) -> tuple[Sequence[JaxArray], Sequence[JaxArray]]:
        cut = len(arrays) - linear
        moves = [None if type(x) is ad.Zero else x for x in moves]
        parts = []
        moved = [k for k in range(cut) if moves[k] is not None]
        if moved:
            names = names_of(f, moved)
            given = [moves[k] for k in moved]
            parts.append(call.bind(*arrays, *given, f=f.jvp(*names), linear=len(moved), of=(f, names, "jvp")))
        if any(x is not None for x in moves[cut:]):
            zero = [jax.numpy.zeros_like(x) if m is None else m for x, m in zip(arrays[cut:], moves[cut:], strict=True)]
            parts.append(call.bind(*arrays[:cut], *zero, f=f, linear=linear, of=of))
        total = parts[0] if len(parts) == 1 else [a + b for a, b in zip(*parts, strict=True)]
        return call.bind(*arrays, f=f, linear=linear, of=of), total

    def transpose(
        weights: Sequence[Any], *arrays: Any, f: CompiledFunction, linear: int, of: Of
    ) -> list[JaxArray | None]:
        assert of is not None  # only what is linear has a transpose
        cut, (whole, names, mode) = len(arrays) - linear, of
        given = [ad.instantiate_zeros(w) for w in weights]
        other = (whole, names, "vjp" if mode == "jvp" else "jvp")
        back = whole.vjp(*names) if mode == "jvp" else whole.jvp(*names)
        found = call.bind(*arrays[:cut], *given, f=back, linear=len(given), of=other)
        return [None] * cut + list(found)

    def mapped(
        arrays: Sequence[JaxArray], axes: Sequence[int | None], *, f: CompiledFunction, linear: int, of: Of
    ) -> tuple[Sequence[JaxArray], list[int]]:
        size = next(x.shape[a] for x, a in zip(arrays, axes, strict=True) if a is not None)
        first = [
            jax.numpy.broadcast_to(x, (size, *x.shape)) if a is None else jax.numpy.moveaxis(x, a, 0)
            for x, a in zip(arrays, axes, strict=True)
        ]
        found = call.bind(*first, f=f, linear=linear, of=of)
        return found, [0] * len(found)

    call.def_impl(at_once)
    call.def_abstract_eval(shapes)
    ad.primitive_jvps[call] = derivative
    ad.primitive_transposes[call] = transpose
    batching.primitive_batchers[call] = mapped
    asking_python = mlir.lower_fun(by_callback, multiple_results=True)

    def foreign(entry: Callable[..., int | None]) -> Callable[..., Any]:
        def lowered(ctx: Any, *arrays: JaxArray, f: CompiledFunction, linear: int, of: Of) -> Any:
            number = entry(f, np.dtype(ctx.avals_in[0].dtype)) if arrays else None
            if number is None:
                return asking_python(ctx, *arrays, f=f, linear=linear, of=of)
            return jax.ffi.ffi_lowering(TARGET)(ctx, *arrays, **{ATTRIBUTE: np.int64(number)})

        return lowered

    mlir.register_lowering(call, asking_python)
    if foreign_calls_available():
        check_version()
        jax.ffi.register_ffi_target(TARGET, foreign_calls().capsule(), platform="cpu")
        jax.ffi.register_ffi_target(TARGET, foreign_calls().capsule(), platform="CUDA")
        mlir.register_lowering(call, foreign(on_processor), platform="cpu")
        mlir.register_lowering(call, foreign(on_gpu), platform="cuda")
    return call


def check_version() -> None:
    """Raise where the installed JAX has another interface for foreign calls than the one that is known here."""
    import jax

    header = Path(jax.ffi.include_dir()) / "xla" / "ffi" / "api" / "c_api.h"
    text = header.read_text() if header.exists() else ""
    found = dict(re.findall(r"#define XLA_FFI_API_(MAJOR|MINOR) (\d+)", text))
    if found and int(found["MAJOR"]) != MAJOR:
        raise LinkwiseError(
            "this JAX calls foreign functions in a way that linkwise does not know",
            got=f"version {found['MAJOR']}.{found.get('MINOR', '?')} of XLA's FFI, in JAX {jax.__version__}",
            allowed=f"version {MAJOR}.x",
            do="install a JAX that linkwise was tested with, or a newer linkwise",
        )


def on_processor(f: CompiledFunction, dtype: np.dtype[Any]) -> int | None:
    """Number by which foreign calls find a function on the processor; None where only Python can call it."""
    if type(f)._evaluate is not CompiledFunction._evaluate or dtype not in _REALS:
        return None
    number = number_of("host", dtype.name, *_identity(f.program))
    if foreign_calls().knows(number):
        return number
    kernel = f.kernel(dtype)
    entry = kernel.foreign_entry() if hasattr(kernel, "foreign_entry") else None
    if entry is None or len(entry.order) > MOST_ARRAYS:
        return None
    foreign_calls().add(number, entry)
    return number


def on_gpu(f: CompiledFunction, dtype: np.dtype[Any]) -> int | None:
    """Number by which foreign calls find a function on a GPU, which is launched on their stream."""
    if type(f)._evaluate is not CompiledFunction._evaluate or dtype not in _REALS:
        return None
    inputs, outputs = f.program.inputs, f.program.outputs
    if len(inputs) + len(outputs) > MOST_ARRAYS:
        return None
    number = number_of("GPU", dtype.name, *_identity(f.program))
    if foreign_calls().knows(number):
        return number
    # Compiled by the first launch: a program can be lowered for a GPU where there is none.
    cuda = targets.target("cuda")
    launch = cuda.launch(f.program_for(cuda), dtype)
    foreign_calls().add(number, launch_entry(number, launch, len(inputs), len(outputs), len(outputs[0].shape)))
    return number


_REALS = (np.dtype(np.float64), np.dtype(np.float32))


def _identity(program: Block | Program) -> Iterator[object]:
    """All that decides the results of a program: its code, and the data of its loops."""
    yield program.fingerprint
    if isinstance(program, Program):
        yield [buffer.size for buffer in program.buffers]
        yield program.ranges
        yield program.rows.tobytes()
        yield program.parameters.tobytes()
        yield program.initial
        for code in program.codes:
            yield from _identity(code)
