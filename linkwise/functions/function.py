"""Compiled functions, from a Python function of the model to machine code: here the mechanism meets the tracer."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from linkwise import targets
from linkwise.array_types import HANDLERS
from linkwise.dataclass import dataclass
from linkwise.errors import InputError, LinkwiseError, UnknownNameError
from linkwise.functions.call_arrays import SymbolBatch, host_arrays, is_one_state, is_plain_batch, results_like
from linkwise.functions.frozen import checked_once, run_again
from linkwise.functions.scalar_arrays import scalar_array
from linkwise.functions.traced_loops import loop, loop_over_items, row_of_table, while_loop
from linkwise.functions.traced_systems import grouped_products, grouped_solution, grouped_sweeps
from linkwise.memoized import cached_property, once
from linkwise.spatial.scalar import is_exact
from linkwise.targets.device import Device
from linkwise.targets.llvm.device import PROCESSOR, device_of
from linkwise.targets.steps import Rollout
from linkwise.trace.block import Block
from linkwise.trace.calls import CallingTracer, waypoint
from linkwise.trace.program import Program
from linkwise.trace.readable import Counts, count
from linkwise.trace.recorded import Recorded, SecondDerivativeError, recorded
from linkwise.trace.tracer import Traced

if TYPE_CHECKING:
    from linkwise.model.model import Model


# Of the texts of the mathematics, which know no traces.
HANDLERS.update(
    loop=loop, while_loop=while_loop, loop_over_items=loop_over_items, row_of_table=row_of_table, waypoint=waypoint
)
HANDLERS.update(grouped_products=grouped_products, grouped_sweeps=grouped_sweeps, grouped_solution=grouped_solution)

Text = Callable[..., Any]  # takes flat lists of scalars, one for each input; returns scalars in nested sequences


@dataclass(frozen=True)
class Chart:
    """The tangent space of an input that is a configuration.

    Args:
        size: its dimension, nv.
        rate: ``rate(q, v)`` gives q̇, over any scalar.
    """

    size: int
    rate: Callable[[Sequence[Any], Sequence[Any]], Sequence[Any]]


class Relay(functools.partial[Any]):
    """A callable that hands its calls on, and whose callee may change: a partial without arguments.

    Nothing in Python is a cheaper step between two callables: it takes 20 to 40 ns.
    """

    def __init__(self, ordinary: Callable[..., Any]) -> None:
        self.ordinary = ordinary
        self._callees = [ordinary]  # all are kept: when one is put in place of another, a thread may still be in that

    @property
    def is_new(self) -> bool:
        """Whether calls have gone the ordinary way from the beginning."""
        return len(self._callees) == 1

    if TYPE_CHECKING:  # that of every partial

        def __setstate__(self, state: tuple[Any, ...]) -> None: ...

    def go_to(self, callee: Callable[..., Any]) -> None:
        """Hand calls on to this one from here on."""
        self._callees.append(callee)
        self.__setstate__((callee, (), {}, vars(self)))

    def __reduce__(self) -> tuple[Any, ...]:
        """Reduced form without what belongs to this process."""
        return type(self), (self.ordinary,)


class CompiledFunction:
    """A function of arrays, compiled for this machine when first called.

    Takes one state or any leading batch axes, which broadcast like NumPy's; returns one array, or a named tuple.

    Args:
        name: shown in messages and used in emitted code.
        text: the function over any scalar; called once, on traced scalars.
        inputs: name and core shape (batch axes left out) of each input.
        doc: docstring of the single-state function.
        charts: for inputs that are configurations, their tangent spaces, in which derivatives are taken.
    """

    repeats: tuple[int, Rollout] | None = None  # as a device asks
    waits = False  # whether the first call waits for optimised code
    origin: Callable[[], tuple[Callable[..., CompiledFunction], tuple[Any, ...]]] | None = None
    """Recipe by which another process makes the function again: a callable and its arguments."""

    def __init__(
        self,
        name: str,
        text: Text,
        inputs: Sequence[tuple[str, tuple[int, ...]]],
        doc: str = "",
        charts: Mapping[str, Chart] | None = None,
    ) -> None:
        self.name = name
        self.charts = dict(charts or {})
        self.text = text
        self.inputs = tuple(inputs)
        self.__doc__ = doc or None
        self._kernels: dict[Any, Any] = {}  # by the device's name, the precision, and whether for few states

    @cached_property
    def _traced(self) -> tuple[Block | Program, type[Any] | None, bool]:
        """The program, the kind of its result, and whether its text holds any values."""
        return self._trace()

    def _trace(self, *, products: bool = True) -> tuple[Block | Program, type[Any] | None, bool]:
        tracer = CallingTracer(large_models=False, products=products)
        arguments = [tracer.input(name, shape) for name, shape in self.inputs]
        outputs, result_type = _named_outputs(self.text(*arguments))
        made = tracer.composite(self.name, outputs) if tracer.calls else tracer.finish(self.name, outputs)
        return made, result_type, tracer.was_held

    @cached_property
    def _held(self) -> Recorded | InputError:
        """The trace in which values are held; or why there is none."""
        return self._recorded()

    @cached_property
    def _with_waypoints(self) -> Recorded | InputError:
        """The same, with waypoints."""
        return self._recorded(waypoints=True)

    def _recorded(self, *, waypoints: bool = False) -> Recorded | InputError:
        tracer = CallingTracer(large_models=False, holds=True, waypoints=waypoints)
        arguments = [tracer.input(name, shape) for name, shape in self.inputs]
        try:
            outputs, _ = _named_outputs(self.text(*arguments))
        except SecondDerivativeError as error:
            return error
        return recorded(tracer, self.name, outputs)

    @property
    def differentiable(self) -> Block | Program | Recorded:
        """Source of derivatives: the program, or the trace of the text where that holds values."""
        return self._differentiable("_held")

    @property
    def differentiable_by_many(self) -> Block | Program | Recorded:
        """The same for derivatives along many directions: a trace has waypoints, unless the text is settled."""
        return self._differentiable("_held" if "settled" in vars(self) else "_with_waypoints")

    def _differentiable(self, name: str) -> Block | Program | Recorded:
        if not self._traced[2]:
            return self.program
        trace: Recorded | InputError = getattr(self, name)
        if isinstance(trace, InputError):
            raise trace
        return trace

    @property
    def program(self) -> Block | Program:
        """Program of this function: a straight-line block, or a program with the loops of its text."""
        return self._traced[0]

    @cached_property
    def settled(self) -> Block | Program | Recorded:
        """Trace of the text as it was computed: the trace with the values that it holds, if there is one."""
        held = self._traced[2] and self._held
        return held if isinstance(held, Recorded) else self.program

    @property
    def result_type(self) -> type[Any] | None:
        """The kind of named tuple that is returned; None for a single array."""
        return self._traced[1]

    @property
    def counts(self) -> Counts:
        """Operations of one evaluation."""
        return count(self.program)

    def source(self, target: str = "llvm", dtype: Any = np.float64) -> str:
        """The generated code for a target, as text: "llvm", "c", "cuda", or "program" for the program itself."""
        chosen = targets.target(target)
        return chosen.source(self.program_for(chosen), targets.real(dtype))

    def emit(self, folder: str | PathLike[str], target: str = "c", dtype: Any = np.float64) -> tuple[Path, ...]:
        """Write the generated code into a folder, made if need be; the paths of the files.

        For C these are the function, its header and a test program; see :func:`linkwise.emit_c`.
        """
        chosen, kind = targets.target(target), targets.real(dtype)
        home = targets.folder_for_code(folder)
        return chosen.emit(self.program_for(chosen), home, kind)

    def program_for(self, target: targets.Target) -> Block | Program:
        """Program that a target writes."""
        return self.program

    def kernel(self, dtype: np.dtype[Any], device: Device = PROCESSOR, few_states: bool = False) -> Any:
        """The compiled kernel for float64 or float32; programs with loops have one apart for few states."""
        few = few_states and device is PROCESSOR and isinstance(self.program_for(device.target), Program)
        key = (device.name, dtype, few)
        return self._kernels.get(key) or once(self._kernels, key, lambda: self._built(device, dtype, few))

    def _built(self, device: Device, dtype: np.dtype[Any], few_states: bool = False) -> Any:
        from linkwise.targets.llvm.tiers import optimised_only

        with optimised_only(self.waits):
            kernel = device.kernel(self.program_for(device.target), dtype, few_states)
        if device is PROCESSOR:
            kernel.offer(self._slot)
        return kernel

    @cached_property
    def _slot(self) -> Any:
        """Slot in which builtin functions find the kernel."""
        from linkwise.targets.llvm.fastcall import BatchSlot

        return BatchSlot()

    def builtin(
        self, slow: Callable[..., Any], name: str, signature: str | None = None, *, one_state: bool
    ) -> Callable[..., Any] | None:
        """A low-overhead function for plain batches and, if asked for, one state; None where it cannot be had.

        What is not for it, it passes on to ``slow``, and it pickles as the attribute ``name`` of what that is bound to.
        """
        from linkwise.targets.llvm.kernel import builtin_function
        from linkwise.targets.llvm.tiers import optimised_only

        program, result = self.program_for(PROCESSOR.target), self.result_type
        make = None if result is None else result._make
        doc = self.__doc__ or self.name
        with optimised_only(self.waits):
            return builtin_function(program, slow, name, doc, make, signature, self._slot, one_state)

    @cached_property
    def quick(self) -> Relay:
        """The shortest way in: inputs in their order, ``out`` and ``threads``."""
        return Relay(self._ordinary)

    @cached_property
    def single(self) -> Callable[..., Any] | None:
        """The low-overhead function for one float64 state, or None where this interpreter does not allow it."""
        return self.builtin(self.general, self.name, one_state=True)

    def __call__(self, *arrays: Any, out: Any = None, threads: int | None = None, **named: Any) -> Any:
        """Evaluate, inputs in their order or by name.

        ``out``: array (or tuple of arrays) to fill; ``threads``: how many to split a batch over.
        """
        if named:
            arrays = self.in_order(arrays, named)
        if out is None and threads is None:
            return self.quick(*arrays)
        return self.quick(*arrays, out=out, threads=threads)

    def in_order(self, arrays: Sequence[Any], named: Mapping[str, Any]) -> tuple[Any, ...]:
        """Inputs that were given in part by name."""
        names = [name for name, _ in self.inputs]
        for name in named:
            if name not in names:
                raise UnknownNameError(f"input of {self.name}", name, names)
            if name in names[: len(arrays)]:
                raise InputError(f"{self.name} was given {name!r} twice", got="by its place and by its name")
        missing = [name for name in names[len(arrays) :] if name not in named]
        if missing:
            raise InputError(f"{self.name} was not given {', '.join(missing)}", allowed=f"all of {', '.join(names)}")
        return (*arrays, *(named[name] for name in names[len(arrays) :]))

    def _ordinary(self, *arrays: Any, out: Any = None, threads: int | None = None) -> Any:
        """The general path, on which the builtin function is made that will serve calls like this one.

        That for single states contains the whole program, so it is not made for batches alone.
        """
        if is_one_state(arrays, self.inputs) and self.single is not None:
            self.quick.go_to(self.single)
            return self.single(*arrays, out=out, threads=threads)
        plain = self.quick.is_new and is_plain_batch(arrays, self.inputs)
        if plain and (PROCESSOR.name, arrays[0].dtype, False) in self._kernels:
            self.quick.go_to(self.builtin(self._ordinary, self.name, one_state=False) or self._ordinary)
        return self.general(*arrays, out=out, threads=threads)

    def general(self, *arrays: Any, out: Any = None, threads: int | None = None) -> Any:
        """The general path: batches, float32, other array types, ``out`` and ``threads``."""
        device, split = device_of(arrays), checked_threads(threads)
        if device is PROCESSOR:
            given, arrays = arrays, tuple(host_arrays(self.name, self.inputs, arrays))
            if any(array.dtype.hasobject for array in arrays):
                return self._on_symbols(SymbolBatch(self.name, self.inputs, arrays, given), out)
        return self.as_result(self._evaluate(device, arrays, out, split))

    def _evaluate(self, device: Device, arrays: Sequence[Any], out: Any, threads: int) -> list[Any]:
        """One result for each output, from arrays of numbers on a device."""
        return device.call(self, arrays, out, threads)

    def as_result(self, values: Sequence[Any]) -> Any:
        """Arrays as a call returns them: one, or the function's own kind of tuple."""
        return values[0] if self.result_type is None else self.result_type._make(values)

    def _on_symbols(self, batch: SymbolBatch, out: Any) -> Any:
        if out is not None:
            raise InputError(f"{self.name} can fill out= with numbers only", got="symbols", do="drop the out= argument")
        if batch.size:
            return batch.each_state(self.text, self._symbolic_result)
        # No state tells the shape of a result: numbers do.
        nothing = self._evaluate(PROCESSOR, [np.zeros(array.shape) for array in batch.arrays], None, 1)
        return self.as_result([array.astype(object) for array in nothing])

    @cached_property
    def routines(self) -> dict[Any, Any]:
        """Loops over this function, and what has been compiled of them."""
        return {}

    # Derivatives, each a compiled function again; see linkwise.functions.function_derivatives.
    def jacobian(self, name: str, mode: Literal["forward", "reverse"] | None = None) -> CompiledFunction:
        """∂f/∂(input ``name``): takes what f takes; every output of shape s becomes one of shape s + (n,).

        An input of kind "q" is differentiated in its tangent space (nv columns, as in ``model.integrate(q, dv)``), any
        other number by number. ``mode`` None takes reverse mode where there are fewer outputs than inputs, else forward
        mode.
        """
        return self._derived("jacobian", name, mode)

    def jacobians(self, *names: str) -> CompiledFunction:
        """The Jacobians ``(dq, dv, …)`` with respect to several inputs, of a function that returns one array.

        What they share is computed once.
        """
        return self._derived("jacobians", names)

    def gradient(self, name: str) -> CompiledFunction:
        """∇f with respect to an input: (n,) for a scalar output, else the transposed Jacobian, (n,) + s."""
        return self._derived("gradient", name)

    def hessian(self, name: str, other: str | None = None) -> CompiledFunction:
        """∂²f/∂(``name``)∂(``other``), s + (n, m): how the Jacobian changes along ``other`` (or ``name`` again).

        With respect to a configuration with quaternions it is not symmetric: directions in body frames do not commute.
        """
        return self._derived("hessian", name, other)

    def jvp(self, *names: str) -> CompiledFunction:
        """The derivative along a direction: takes f's inputs, then a direction for each name (all inputs, if none)."""
        return self._derived("jvp", names)

    def vjp(self, *names: str) -> CompiledFunction:
        """Weights times the Jacobian: takes f's inputs, then a weight for each output; one array for each name."""
        return self._derived("vjp", names)

    def value_and_gradient(self, *names: str) -> CompiledFunction:
        """A number and its gradient in one call: takes what f takes, returns ``(value, gradient)``.

        With several names, a gradient for each: ``(value, d_first, d_second, …)``. What value and gradients both need
        is computed once.
        """
        return self._derived("value_and_gradient", names)

    def _derived(self, kind: str, *arguments: Any) -> CompiledFunction:
        from linkwise.functions import function_derivatives

        make: Callable[..., CompiledFunction] = getattr(function_derivatives, kind)
        check_names(self, arguments[0] if isinstance(arguments[0], tuple) else arguments[:1])

        def made() -> CompiledFunction:
            function = make(self, *arguments)
            function.waits = self.waits
            if function.origin is None:
                function.origin = lambda: (_derived, (self, kind, arguments))
            return function

        return once(self._derivatives, (kind, *arguments), made)

    def __reduce__(self) -> tuple[Any, ...]:
        """The recipe, without code: that is made again, from the cache if it has been compiled on that machine."""
        if self.origin is None:
            raise TypeError(f"{self!r} is a part of something else and does not travel: pickle that instead")
        return (*self.origin(), {"waits": True}) if self.waits else self.origin()

    @cached_property
    def _derivatives(self) -> dict[Any, CompiledFunction]:
        return {}

    def _symbolic_result(self, raw: Any) -> tuple[list[Any], type[Any] | None]:
        outputs, result_type = _named_outputs(raw)
        arrays = [results_like(shape, values) for _, shape, values in outputs]
        return arrays, result_type

    def __repr__(self) -> str:
        shapes = ", ".join(f"{name}{list(shape)}" for name, shape in self.inputs)
        return f"<compiled {self.name}({shapes})>"


def check_names(f: CompiledFunction, names: Sequence[object]) -> None:
    """Raise an error for what is no name of an input that something is derived by."""
    known = [name for name, _ in f.inputs]
    for name in names:
        if not isinstance(name, str):
            raise InputError(
                f"derivatives of {f.name} are by inputs that are named",
                got=repr(name)[:80],
                allowed=", ".join(map(repr, known)),
                do=f"f.jvp({known[0]!r})(…): names first, arrays go into what comes out",
            )
        if name not in known:
            raise UnknownNameError(f"input of {f.name}", name, known)


def _derived(function: CompiledFunction, kind: str, arguments: tuple[Any, ...]) -> CompiledFunction:
    return function._derived(kind, *arguments)


def checked_threads(threads: object) -> int:
    """A number of threads; one if not given."""
    if threads is None:
        return 1
    if isinstance(threads, (bool, np.bool_)) or not isinstance(threads, (int, np.integer)) or threads < 1:
        raise InputError("threads is not a positive whole number", got=repr(threads), allowed="1, 2, 3, …")
    return int(threads)


Output = tuple[str, tuple[int, ...], list[Any]]


def _named_outputs(raw: Any) -> tuple[list[Output], type[Any] | None]:
    """Name, shape and flat values of each output, and the tuple type of the result (None: a single array)."""
    from collections import namedtuple

    if isinstance(raw, Mapping):
        return [_output(name, value) for name, value in raw.items()], namedtuple("Result", list(raw))
    if isinstance(raw, tuple):
        names = getattr(raw, "_fields", None) or [f"out{i}" for i in range(len(raw))]
        result_type = type(raw) if hasattr(raw, "_fields") else namedtuple("Result", names)
        return [_output(name, value) for name, value in zip(names, raw, strict=True)], result_type
    return [_output("out", raw)], None


def _output(name: str, value: Any) -> Output:
    array = np.asarray(value, dtype=object)
    flat = list(array.reshape(-1))
    for entry in flat:
        if not isinstance(entry, (Traced, float, int, np.floating, np.integer)) and not _is_scalar(entry):
            raise InputError(
                f"the output {name!r} of a compiled function holds something that is not a number",
                got=repr(entry),
                allowed="scalars, arrays of them, or a tuple or dict of these",
            )
    return name, array.shape, flat


def _is_scalar(entry: Any) -> bool:
    return hasattr(entry, "__mul__") and not isinstance(entry, (str, bytes, list, tuple))


def compile(
    fn: Callable[..., Any],
    model: Model,
    inputs: Mapping[str, str | int | tuple[int, ...]],
    name: str | None = None,
    *,
    wait: bool = False,
) -> CompiledFunction:
    """Compile any Python function of a model and vectors.

    It is traced here, once, and is a formula from then on: what changes later of the values that ``fn`` reads (a
    global, an array, an attribute) makes no difference to it. Make such a value an input, or compile again.

    Args:
        fn: called once as ``fn(model, *vectors)`` with NumPy object arrays of traced scalars; may call any method of
            the model, use ``lw.math.sin`` and the like or NumPy arithmetic, and return a scalar, an array, or a tuple
            or dict of them. It must not branch on values (use ``lw.math.where``).
        model: the first argument of ``fn``.
        inputs: for each argument of ``fn``, in their order, its kind: ``"q"``, ``"v"``, ``"p"`` (the model's run-time
            parameters), ``"f_ext"``, ``"scalar"``, or a length or shape.
        name: name of the function in messages and emitted code; that of ``fn`` if not given.
        wait: whether its first call waits until its code, and that of its derivatives, is optimised. If not, quickly
            made code answers until then, two or three times slower, with the same numbers.

    Example:
        >>> f = lw.compile(lambda m, q, v: m.kinetic_energy(q, v), model, inputs={"q": "q", "v": "v"})  # doctest: +SKIP
        >>> f(q, v)  # doctest: +SKIP
    """
    from linkwise.algorithms.catalogue import INPUTS

    shapes: list[tuple[str, tuple[int, ...]]] = []
    for argument, kind in inputs.items():
        if kind == "scalar":
            shapes.append((argument, ()))
        elif isinstance(kind, str):
            if kind not in ("q", "v", "p", "f_ext"):
                raise InputError(
                    f"input {argument!r} has an unknown kind",
                    got=repr(kind),
                    allowed='"q", "v", "p", "f_ext", "scalar", a length or a shape',
                )
            shapes.append((argument, INPUTS[kind].shape(model)))
        else:
            shapes.append((argument, (kind,) if isinstance(kind, int) else tuple(kind)))

    title = getattr(fn, "__name__", "function").strip("<>") if name is None else name
    if not callable(fn):
        raise InputError(f"{title} is not a function", got=repr(fn)[:80], allowed="a function of the model and arrays")
    for what, word in (("the name", title), *(("the name of an input", argument) for argument in inputs)):
        if not isinstance(word, str) or not word or not word.isprintable():
            raise InputError(
                f"{what} of a compiled function cannot be written down",
                got=repr(word),
                allowed="a string of one line, without control characters",
                do="choose another; name= overrides the function's own",
            )

    def text(*flat: Sequence[Any]) -> Any:
        if "settled" not in vars(made) or model._rolls or any(is_exact(x) for array in flat for x in array):
            return fn(model, *(scalar_array(values, shape) for (_, shape), values in zip(shapes, flat, strict=True)))
        outputs = run_again(made.settled, flat)  # what it computes was settled when it was traced
        arrays = [results_like(spec.shape, array) for spec, array in zip(made.program.outputs, outputs, strict=True)]
        return made.as_result(arrays)

    made = CompiledFunction(title, text, shapes, charts=_charts(model, inputs))
    made.waits = wait
    made.origin = lambda: (_with_formulas, _formulas_of(made, model, inputs))
    _check_call(fn, title, list(inputs))
    try:
        checked_once(fn, f"the function {title}", lambda: made.settled)
    except LinkwiseError:
        raise
    except Exception as error:  # whatever a user's function raises
        raise InputError(
            f"{title} cannot be compiled",
            got=f"{type(error).__name__}: {error}",
            allowed="a function of the model and of arrays that does not branch on values",
            do="lw.math.where instead of `if`; NumPy or lw.math.sin instead of math.sin",
        ) from error
    return made


def _charts(model: Model, kinds: Mapping[str, Any]) -> dict[str, Chart]:
    return {argument: model._chart for argument, kind in kinds.items() if kind == "q"}


def _formulas_of(made: CompiledFunction, model: Model, kinds: Mapping[str, Any]) -> tuple[Any, ...]:
    """Arguments of :func:`_with_formulas`."""
    outputs = [(spec.name, spec.shape) for spec in made.program.outputs]
    return made.name, made.settled, made.inputs, model, dict(kinds), outputs, made.result_type is None


def _with_formulas(
    name: str,
    settled: Block | Program | Recorded,
    inputs: Sequence[tuple[str, tuple[int, ...]]],
    model: Model,
    kinds: Mapping[str, Any],
    outputs: Sequence[tuple[str, tuple[int, ...]]],
    one: bool,
) -> CompiledFunction:
    """A function from what it computes: as it was traced, without the Python function that said so."""

    def text(*flat: Sequence[Any]) -> Any:
        found = run_again(settled, flat)
        arrays = {name: results_like(shape, array) for (name, shape), array in zip(outputs, found, strict=True)}
        return next(iter(arrays.values())) if one else arrays

    made = CompiledFunction(name, text, inputs, charts=_charts(model, kinds))
    made.origin = lambda: (_with_formulas, (name, settled, inputs, model, kinds, outputs, one))
    return made


def _check_call(fn: Callable[..., Any], title: str, names: Sequence[str]) -> None:
    """The function takes the model and as many arrays as there are inputs."""
    try:
        signature = inspect.signature(fn)
    except (TypeError, ValueError):  # some built-in functions have none
        return
    try:
        signature.bind(None, *names)
    except TypeError as error:
        raise InputError(
            f"{title} cannot be called with these inputs",
            got=f"{title}{signature}: {error}",
            allowed=f"{title}(model, {', '.join(names)})",
        ) from None


def checked_function(f: Any) -> CompiledFunction:
    """The same, if it is a compiled function."""
    if isinstance(f, CompiledFunction):
        return f
    raise InputError(
        "this is not a compiled function",
        got=repr(f)[:80],
        allowed="one of a model's functions, or lw.compile(…)",
        do="take its step, f.step, and repeat that there"
        if isinstance(getattr(f, "step", None), CompiledFunction)
        else 'model.function("forward_dynamics") instead of model.forward_dynamics',
    )
