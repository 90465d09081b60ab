"""Many steps of a compiled function in one call: results take the place of inputs, step after step.

All steps are one :class:`~linkwise.trace.program.Program`, as the loops of ``lw.simulate`` are: on the processor it
runs without leaving machine code, on a GPU it is one kernel and the state stays on the chip. For simulation with
events, error control and outputs at given times there is ``lw.simulate``; this is for what needs only a step and its
repetition, many thousand times side by side: sampling controllers, training, ensembles.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from linkwise import targets
from linkwise.errors import InputError, UnknownNameError
from linkwise.functions.call_arrays import CallBatch
from linkwise.functions.function import CompiledFunction, checked_threads
from linkwise.memoized import once
from linkwise.targets import recycled
from linkwise.targets.processor import PROCESSOR
from linkwise.targets.steps import Repetition, Rollout, repeated

_AT_ONCE = 0.1  # s for which machine code runs before Python may look at an interrupt
_COUNTED = 1 << 23  # steps that are counted exactly in any precision


def rollout(
    step: CompiledFunction, steps: int, *, sequences: str | Sequence[str] = (), record: bool = False
) -> RolloutFunction:
    """A function that repeats a step, and can be differentiated: ``.value_and_gradient``, ``.vjp``, ``.jvp``.

    Args:
        step: takes the state and whatever else, and returns the next state. An output with the name of an input becomes
            that input of the next step; a single output without a name becomes the first input.
        steps: how often, at least once.
        sequences: names of inputs that differ at every step: arrays (steps, ..., n), the steps before any batch axes.
        record: return every step's outputs, (steps, ..., n), instead of the last ones.

    Example:
        >>> def euler(model, q, v, tau):  # doctest: +SKIP
        ...     v = v + 0.001 * model.forward_dynamics(q, v, tau)
        ...     return {"q": q + 0.001 * v, "v": v}
        >>> step = lw.compile(euler, model, inputs={"q": "q", "v": "v", "tau": "v"})  # doctest: +SKIP
        >>> q1, v1 = lw.rollout(step, 1000)(q0, v0, tau)  # doctest: +SKIP
    """
    return RolloutFunction(step, steps, sequences, record)


class RolloutFunction:
    """Repeats a step; called with the step's inputs, returns what the step returns. Made by :func:`rollout`."""

    def __init__(self, step: CompiledFunction, steps: Any, sequences: str | Sequence[str], record: bool) -> None:
        if not isinstance(step, CompiledFunction):
            raise InputError(
                "the step of a rollout is not a compiled function",
                got=getattr(step, "__name__", type(step).__name__),
                do="lw.compile it",
            )
        if isinstance(steps, bool) or not isinstance(steps, (int, np.integer)) or not 1 <= steps < 2**31:
            raise InputError("steps is not a positive whole number", got=repr(steps), allowed="1, 2, 3, …")
        self.step, self.steps, self.record = step, int(steps), bool(record)
        names = [array.name for array in step.program.inputs]
        sequences = (sequences,) if isinstance(sequences, str) else tuple(sequences)
        for name in sequences:
            if name not in names:
                raise UnknownNameError("input", name, names)
        self.sequences = tuple(k for k, name in enumerate(names) if name in sequences)
        self.feedback = _feedback(step)
        both = [names[i] for _, i in self.feedback if i in self.sequences]
        if both:
            raise InputError(
                f"an input of {step.name} is both fed back and a sequence",
                got=", ".join(both),
                allowed="one of the two",
            )

    def __call__(self, *arrays: Any, out: Any = None, threads: int | None = None, **named: Any) -> Any:
        """Run all steps. Inputs in their order or by name, ``out`` and ``threads`` as for any compiled function."""
        if named:
            arrays = self.step.in_order(arrays, named)
        place = targets.place_of(arrays)
        if place is not None:
            known = self.step.device_programs
            values = place.call(self.step.program, known, self.step.name, arrays, out, (self.steps, self.routine))
        else:
            values = self._on_host(arrays, out, checked_threads(threads))
        kind = self.step.result_type
        return values[0] if kind is None else kind._make(values)

    def source(self, dtype: Any = np.float64, target: str = "cuda") -> str:
        """The generated code of all steps, as text."""
        return targets.target(target).routine_source(self.routine, targets.real(dtype))

    @property
    def routine(self) -> Repetition:
        """All steps, as what runs on the processor and on a GPU; kept with the step."""
        rollout = Rollout(self.feedback, self.sequences, self.record)
        return once(self.step.routines, rollout, lambda: repeated(self.step.program, rollout))

    # Derivatives; see linkwise.functions.steps_derivatives.
    def jvp(self, *names: str) -> Callable[..., Any]:
        """The derivative of all steps along a direction, in forward mode.

        Takes the inputs, then a direction for each name (all inputs, if none); a sequence has one for each step. The
        direction of a configuration is a velocity. Returns what the rollout returns.
        """
        from linkwise.functions.steps_derivatives import StepsForward

        return StepsForward(self, names)

    def vjp(self, *names: str) -> Callable[..., Any]:
        """Weights times the derivative of all steps, in reverse mode.

        Takes the inputs, then a weight for each output (one for each step, if they are recorded). Returns one array for
        each name (all inputs, if none): (..., n) for what is fed back or stays, (steps, ..., n) for sequences.
        Derivatives by a configuration are in its tangent space. States between the steps are kept, none of the work.
        """
        from linkwise.functions.steps_derivatives import StepsBackward

        return StepsBackward(self, names)

    def value_and_gradient(self, *names: str, of: str | None = None) -> Callable[..., Any]:
        """A number at the end of all steps and its gradients: takes the inputs, returns ``(value, gradient)``.

        Args:
            names: inputs to differentiate by; with several, ``(value, d_first, d_second, …)``.
            of: the output that is differentiated, a single number: a cost that the step adds to, say. The only such
                output if left out. If steps are recorded, the sum over all of them.
        """
        from linkwise.functions.steps_derivatives import StepsGradient

        return StepsGradient(self, names, of)

    def prepared(self, arrays: Sequence[Any]) -> tuple[CallBatch, list[Any], dict[int, Any]]:
        """The checked arguments: their batch, rows (count, size) of each, and those of sequences, step by step."""
        program, steps = self.step.program, self.steps
        given = [np.asarray(a) for a in arrays]
        for k in self.sequences:
            spec = program.inputs[k]
            if k < len(given) and (given[k].ndim <= len(spec.shape) or len(given[k]) != steps):
                raise InputError(
                    f"{spec.name} of {self.step.name} does not have one row for each step",
                    got=str(given[k].shape),
                    allowed=f"({steps}, ..., {', '.join(map(str, spec.shape))}): the steps first, then the batch",
                )
        # One step's row stands for a sequence while shapes and precision are found.
        batch = CallBatch(
            self.step.name, self.step.inputs, [a[0] if k in self.sequences else a for k, a in enumerate(given)]
        )
        rows = [
            flat.copy() if k in {i for _, i in self.feedback} else flat for k, flat in enumerate(batch.flat_inputs())
        ]
        return batch, rows, {k: self._series(batch, k, given[k]) for k in self.sequences}

    def _on_host(self, arrays: Sequence[Any], out: Any, threads: int) -> list[Any]:
        program, steps, routine = self.step.program, self.steps, self.routine
        batch, rows, series = self.prepared(arrays)
        single_states = batch.size < 3
        runner = once(
            self.step.routines,
            (routine.rollout, batch.dtype, single_states),
            lambda: PROCESSOR.runner(routine, batch.dtype, single_states),
        )
        kept = (steps,) if self.record else ()
        shapes = [(*kept, *batch.shape, *spec.shape) for spec in program.outputs]
        filled = batch.checked_out(shapes, out)
        results = [recycled.empty((*kept, batch.size, spec.size), batch.dtype) for spec in program.outputs]
        passed = {routine.given(k): row for k, row in enumerate(rows) if k not in self.sequences}
        made = {routine.made(k): result for k, result in enumerate(results)}
        # States first, as a routine sees them; in memory the steps are.
        read = {routine.given(k): np.swapaxes(values, 0, 1) for k, values in series.items()}
        recorded = {name: np.swapaxes(values, 0, 1) for name, values in made.items()} if self.record else {}
        at_once = int(_AT_ONCE * threads / PROCESSOR.seconds(routine.operations, batch.size))
        at_once = min(max(1, at_once), _COUNTED)
        for start in range(0, steps, at_once) if batch.size else ():
            part = slice(start, min(steps, start + at_once))
            clock = np.tile(np.array([0, part.stop - part.start], batch.dtype), (batch.size, 1))
            runner.run(
                {**passed, **({} if self.record else made), routine.CLOCK: clock},
                {name: values[:, part] for name, values in read.items()},
                {name: values[:, part] for name, values in recorded.items()},
                batch.size,
                threads,
            )
        shaped = [a.reshape(shape) for a, shape in zip(results, shapes, strict=True)]
        for target, value in zip(filled, shaped, strict=True):
            if target is not None:
                target[...] = value
        return [value if target is None else target for target, value in zip(filled, shaped, strict=True)]

    def _series(self, batch: CallBatch, k: int, array: Any) -> Any:
        core, size = self.step.program.inputs[k].shape, self.step.program.inputs[k].size
        if np.prod(array.shape[1 : array.ndim - len(core)], dtype=int) == 1:  # the same for all states
            return np.ascontiguousarray(array, batch.dtype).reshape(self.steps, 1, size)
        missing = len(batch.shape) + len(core) + 1 - array.ndim
        array = array.reshape(self.steps, *(1,) * missing, *array.shape[1:])
        whole = np.broadcast_to(array, (self.steps, *batch.shape, *core))
        return np.ascontiguousarray(whole, batch.dtype).reshape(self.steps, batch.size, size)

    def __repr__(self) -> str:
        return f"<{self.steps} steps of {self.step!r}>"


def one_step_of(values: Any, step: int, part: slice) -> Any:
    """The rows (count, size) that some states get from a sequence at one step."""
    row = values[step] if values.shape[1] == 1 else values[step, part]
    return np.ascontiguousarray(np.broadcast_to(row, (part.stop - part.start, row.shape[1])))


def _feedback(step: CompiledFunction) -> tuple[tuple[int, int], ...]:
    """Pairs of an output and the input that it becomes."""
    inputs, outputs = step.program.inputs, step.program.outputs
    names = {array.name: k for k, array in enumerate(inputs)}
    pairs = [(k, names[array.name]) for k, array in enumerate(outputs) if array.name in names]
    if not pairs and step.result_type is None and inputs:
        pairs = [(0, 0)]
    if not pairs:
        raise InputError(
            f"no output of {step.name} has the name of an input, so there is nothing to repeat",
            got=f"inputs {', '.join(names)}; outputs {', '.join(a.name for a in outputs)}",
            do='return a dict or named tuple: {"q": …, "v": …}',
        )
    for k, i in pairs:
        if outputs[k].shape != inputs[i].shape:
            raise InputError(
                f"output {outputs[k].name!r} of {step.name} cannot become input {inputs[i].name!r} of the next step",
                got=f"shape {outputs[k].shape}",
                allowed=f"shape {inputs[i].shape}",
            )
    return tuple(pairs)
