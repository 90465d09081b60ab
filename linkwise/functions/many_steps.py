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
from linkwise.functions.call_arrays import host_arrays
from linkwise.functions.function import CompiledFunction, checked_threads
from linkwise.memoized import once
from linkwise.targets.device import Device
from linkwise.targets.llvm.device import PROCESSOR, StepsBatch, device_of
from linkwise.targets.steps import Repetition, Rollout, repeated


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
        self.name, self.inputs = step.name, step.inputs
        both = [names[i] for _, i in self.feedback if i in self.sequences]
        if both:
            raise InputError(
                f"an input of {step.name} is both fed back and a sequence",
                got=", ".join(both),
                allowed="one of the two",
            )
        self.rollout = Rollout(self.feedback, self.sequences, self.record)
        self.repeats: tuple[int, Rollout] | None = (self.steps, self.rollout)

    def __call__(self, *arrays: Any, out: Any = None, threads: int | None = None, **named: Any) -> Any:
        """Run all steps. Inputs in their order or by name, ``out`` and ``threads`` as for any compiled function."""
        if named:
            arrays = self.step.in_order(arrays, named)
        device, split = device_of(arrays), checked_threads(threads)
        if device is PROCESSOR:
            arrays = tuple(host_arrays(self.name, self.inputs, arrays))
        values = device.call(self, arrays, out, split)
        kind = self.step.result_type
        return values[0] if kind is None else kind._make(values)

    def source(self, dtype: Any = np.float64, target: str = "cuda") -> str:
        """The generated code of all steps, as text."""
        return targets.target(target).routine_source(self.routine, targets.real(dtype))

    @property
    def routine(self) -> Repetition:
        """All steps, as what runs on the processor and on a GPU; kept with the step."""
        return once(self.step.routines, self.rollout, lambda: repeated(self.step.program, self.rollout))

    def kernel(self, dtype: np.dtype[Any], device: Device = PROCESSOR, few_states: bool = False) -> Any:
        """All steps, compiled for a device; kept with the step."""
        key = (self.rollout, device.name, dtype, few_states and device is PROCESSOR)
        return once(self.step.routines, key, lambda: device.kernel(self.routine, dtype, few_states))

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

    def on_host(self, arrays: Sequence[Any]) -> StepsBatch:
        """The checked arguments, for what runs the steps by itself."""
        return StepsBatch(self.name, self.inputs, host_arrays(self.name, self.inputs, arrays), self.rollout, self.steps)

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
