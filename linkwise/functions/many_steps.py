"""Many steps of a compiled function in one call: results take the place of inputs, step after step.

All steps are one :class:`~linkwise.trace.program.Program`, as the loops of ``lw.simulate`` are: on the processor it
runs without leaving machine code, on a GPU it is one kernel and the state stays on the chip. For simulation with
events, error control and outputs at given times there is ``lw.simulate``; this is for what needs only a step and its
repetition, many thousand times side by side: sampling controllers, training, ensembles.

Derivatives are made from those of one step. Forward mode is a rollout again, of a step that carries its directions
along. Reverse mode runs the steps, keeps the states between them, and goes back through them with the step's product of
weights.

Between steps a configuration is differentiated number by number, since it is an output there and has no tangent space
of its own; at the caller's side its directions are velocities, as for any compiled function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from linkwise import targets
from linkwise.array_types import Array, Precision
from linkwise.errors import InputError, UnknownNameError
from linkwise.functions.call_arrays import host_arrays
from linkwise.functions.frozen import ANY_SCALAR
from linkwise.functions.function import CompiledFunction, check_names, checked_function, checked_threads
from linkwise.functions.function_derivatives import (
    ValueAndGradient,
    componentwise,
    to_numbers,
    to_tangents,
    tuple_of,
)
from linkwise.memoized import cached_property, once
from linkwise.spatial.scalar import Flat
from linkwise.targets.device import Device
from linkwise.targets.llvm.device import PROCESSOR, StepsBatch, device_of
from linkwise.targets.steps import Repetition, Rollout, repeated
from linkwise.trace.derivatives import Tangent
from linkwise.trace.recorded import code_tangents, code_values


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

    def __init__(self, step: CompiledFunction, steps: object, sequences: str | Sequence[str], record: bool) -> None:
        checked_function(step)
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

    def __call__(self, *arrays: object, out: object = None, threads: int | None = None, **named: object) -> Any:
        """Run all steps. Inputs in their order or by name, ``out`` and ``threads`` as for any compiled function."""
        if named:
            arrays = self.step.in_order(arrays, named)
        device, split = device_of(arrays), checked_threads(threads)
        if device is PROCESSOR:
            arrays = tuple(host_arrays(self.name, self.inputs, arrays))
        values = device.call(self, arrays, out, split)
        kind = self.step.result_type
        return values[0] if kind is None else kind._make(values)

    def source(self, dtype: DTypeLike = np.float64, target: str = "cuda") -> str:
        """The generated code of all steps, as text."""
        return targets.target(target).routine_source(self.routine, targets.real(dtype))

    @property
    def routine(self) -> Repetition:
        """All steps, as what runs on the processor and on a GPU; kept with the step."""
        return once(self.step.routines, self.rollout, lambda: repeated(self.step.program, self.rollout))

    def kernel(self, dtype: Precision, device: Device = PROCESSOR, few_states: bool = False) -> Any:
        """All steps, compiled for a device; kept with the step."""
        key = (self.rollout, device.name, dtype, few_states and device is PROCESSOR)
        return once(self.step.routines, key, lambda: device.kernel(self.routine, dtype, few_states))

    # Derivatives; see linkwise.functions.steps_derivatives.
    def jvp(self, *names: str) -> Callable[..., Any]:
        """The derivative of all steps along a direction, in forward mode.

        Takes the inputs, then a direction for each name (all inputs, if none); a sequence has one for each step. The
        direction of a configuration is a velocity. Returns what the rollout returns.
        """
        return StepsForward(self, names)

    def vjp(self, *names: str) -> Callable[..., Any]:
        """Weights times the derivative of all steps, in reverse mode.

        Takes the inputs, then a weight for each output (one for each step, if they are recorded). Returns one array for
        each name (all inputs, if none): (..., n) for what is fed back or stays, (steps, ..., n) for sequences.
        Derivatives by a configuration are in its tangent space. States between the steps are kept, none of the work.
        """
        return StepsBackward(self, names)

    def value_and_gradient(self, *names: str, of: str | None = None) -> Callable[..., Any]:
        """A number at the end of all steps and its gradients: takes the inputs, returns ``(value, gradient)``.

        Args:
            names: inputs to differentiate by; with several, ``(value, d_first, d_second, …)``.
            of: the output that is differentiated, a single number: a cost that the step adds to, say. The only such
                output if left out. If steps are recorded, the sum over all of them.
        """
        return StepsGradient(self, names, of)

    def on_host(self, arrays: Sequence[object]) -> StepsBatch:
        """The checked arguments, for what runs the steps by itself."""
        return StepsBatch(self.name, self.inputs, host_arrays(self.name, self.inputs, arrays), self.rollout, self.steps)

    def __repr__(self) -> str:
        return f"<{self.steps} steps of {self.step!r}>"


def sequence_of(values: Array, part: slice) -> Array:
    """The rows (steps, count, size) that some states get from a sequence."""
    own = values if values.shape[1] == 1 else values[:, part]
    return np.ascontiguousarray(np.broadcast_to(own, (len(own), part.stop - part.start, own.shape[2])))


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


_KEPT_NUMBERS = 1 << 22  # of states between steps, for the states that go back together


class _StepsDerivative:
    """Base of both modes: the inputs, and their tangent spaces."""

    def __init__(self, steps: RolloutFunction, names: Sequence[str]) -> None:
        self.steps, self.step = steps, steps.step
        check_names(self.step, names)
        known = [name for name, _ in self.step.inputs]
        self.names = tuple(names) or tuple(known)
        self.places = tuple(known.index(name) for name in self.names)
        self.fed = {i: k for k, i in steps.feedback}
        # Inputs that have a derivative on the way: those asked for, and all that come back.
        self.carried = sorted({*self.places, *self.fed})

    @cached_property
    def plain(self) -> CompiledFunction:
        """The step, differentiated number by number."""
        return componentwise(self.step)


class StepsForward(_StepsDerivative):
    """Directions carried along; made by ``rollout(…).jvp``."""

    def __call__(self, *arrays: ArrayLike, threads: int | None = None) -> Any:
        """Takes the inputs, then a direction for each name."""
        cut = len(self.step.inputs)
        wanted = cut + len(self.names)
        if len(arrays) != wanted:
            raise InputError(
                f"the derivative of {self.step.name} takes {wanted} arrays",
                got=str(len(arrays)),
                allowed=", ".join((*(n for n, _ in self.step.inputs), *(f"d_{n}" for n in self.names))),
            )
        given = dict(zip(self.names, arrays[cut:], strict=True))
        directions = []
        for k in self.carried:
            name, shape = self.step.inputs[k]
            direction = given.get(name, np.zeros(shape))
            chart = self.step.charts.get(name)
            if chart is not None and name in given:
                direction = to_numbers(chart, *shape).general(arrays[k], direction)
            directions.append(direction)
        found = self._rollout(*arrays[:cut], *directions, threads=threads)
        moved = found[len(found) // 2 :]
        return self.step.as_result(moved)

    @cached_property
    def _rollout(self) -> RolloutFunction:
        program, whole, inputs = self.plain.program, self.plain.differentiable, self.step.inputs
        carried, names = self.carried, [name for name, _ in inputs]
        feeds = dict(self.steps.feedback)
        outputs = [names[feeds[k]] if k in feeds else spec.name for k, spec in enumerate(program.outputs)]

        def text(*flat: Flat) -> dict[str, Array]:
            there = flat[: len(inputs)]
            directions: list[list[Tangent]] = [[{} for _ in array] for array in there]
            for k, d in zip(carried, flat[len(inputs) :], strict=True):
                directions[k] = [{0: x} for x in d]
            found = code_values(whole, there, ANY_SCALAR)
            moved = code_tangents(whole, there, directions, ANY_SCALAR)
            results: dict[str, Array] = {}
            for name, spec, numbers in zip(outputs, program.outputs, found, strict=True):
                results[name] = np.array(numbers, object).reshape(spec.shape)
            for name, spec, array in zip(outputs, program.outputs, moved, strict=True):
                results[f"d_{name}"] = np.array([x.get(0, 0.0) for x in array], object).reshape(spec.shape)
            return results

        wide = [*inputs, *((f"d_{names[k]}", inputs[k][1]) for k in carried)]
        step = CompiledFunction(f"{self.step.name}_along", text, wide)
        sequences = [names[k] for k in self.steps.sequences]
        sequences += [f"d_{name}" for name in sequences if names.index(name) in carried]
        return RolloutFunction(step, self.steps.steps, sequences, self.steps.record)


class StepsBackward(_StepsDerivative):
    """Weights carried back; made by ``rollout(…).vjp``."""

    @cached_property
    def _back(self) -> CompiledFunction:
        """Weights of what is asked for or comes back, from the inputs of a step and the weights of its outputs."""
        return self.plain.vjp(*(self.step.inputs[k][0] for k in self.carried))

    def __call__(self, *arrays: ArrayLike, threads: int | None = None) -> Any:
        """Takes the inputs, then a weight for each output."""
        cut, outputs = len(self.step.inputs), self.step.program.outputs
        wanted = cut + len(outputs)
        if len(arrays) != wanted:
            raise InputError(
                f"the weighted derivative of {self.step.name} takes {wanted} arrays",
                got=str(len(arrays)),
                allowed=", ".join((*(n for n, _ in self.step.inputs), *(f"w_{a.name}" for a in outputs))),
            )
        return self._named(self.run(arrays[:cut], arrays[cut:], checked_threads(threads))[1])

    def _named(self, gradients: list[Array]) -> Any:
        return gradients[0] if len(self.names) == 1 else tuple_of(self.names)(*gradients)

    def run(
        self, arrays: Sequence[ArrayLike], weights: Sequence[ArrayLike], threads: int
    ) -> tuple[list[Array], list[Array]]:
        """The last outputs (or all, if recorded), flat, and the gradients of the names, in the caller's shapes."""
        steps, specs = self.steps.steps, self.step.program.outputs
        batch = self.steps.on_host(arrays)
        kept = (steps,) if self.steps.record else ()
        flat_weights = []
        for weight, spec in zip(weights, specs, strict=True):
            whole = np.broadcast_to(np.asarray(weight, batch.dtype), (*kept, *batch.shape, *spec.shape))
            flat_weights.append(np.ascontiguousarray(whole).reshape((*kept, batch.size, spec.size)))
        outputs = [np.empty((*kept, batch.size, spec.size), batch.dtype) for spec in specs]
        sizes = {k: int(np.prod(self.step.inputs[k][1], dtype=int)) for k in self.carried}
        gradients = {
            k: np.zeros(((steps,) if k in self.steps.sequences else ()) + (batch.size, sizes[k]), batch.dtype)
            for k in self.carried
        }
        state = sum(sizes[k] for k in self.fed)
        piece = max(1, _KEPT_NUMBERS // max(1, steps * state))
        for start in range(0, batch.size, piece):
            part = slice(start, min(batch.size, start + piece))
            self._piece(part, batch.rows, batch.series, flat_weights, outputs, gradients, threads)
        found = [self._shaped(arrays, k, gradients[k], batch.shape) for k in self.places]
        return [a.reshape((*kept, *batch.shape, *spec.shape)) for a, spec in zip(outputs, specs, strict=True)], found

    def _shaped(self, arrays: Sequence[ArrayLike], k: int, gradient: Array, batch: tuple[int, ...]) -> Array:
        """A gradient in the caller's shape; by a configuration, in its tangent space."""
        name, shape = self.step.inputs[k]
        lead = (self.steps.steps, *batch) if k in self.steps.sequences else batch
        whole = gradient.reshape((*lead, *shape))
        chart = self.step.charts.get(name)
        if chart is None:
            return whole
        return np.asarray(to_tangents(chart, *shape).general(np.asarray(arrays[k], whole.dtype), whole))

    def _piece(
        self,
        part: slice,
        rows: list[Array],
        series: dict[int, Array],
        weights: list[Array],
        outputs: list[Array],
        gradients: dict[int, Array],
        threads: int,
    ) -> None:
        """Some states, forth and back."""
        steps, record, dtype, count = self.steps.steps, self.steps.record, outputs[0].dtype, part.stop - part.start
        forth, back = self.step.kernel(dtype), self._back.kernel(dtype)
        inputs = [np.ascontiguousarray(row[part]) for row in rows]
        between = {i: np.empty((steps, *inputs[i].shape), dtype) for i in self.fed}
        sequences = {k: sequence_of(values, part) for k, values in series.items()}
        nothing = [np.zeros_like(w[part]) for w in weights]
        for step in range(steps):
            for i, known in between.items():
                known[step] = inputs[i]
            for k, numbers in sequences.items():
                inputs[k] = numbers[step]
            found = [np.empty((count, a.shape[-1]), dtype) for a in outputs]
            forth.evaluate(inputs, found, count, threads)
            for i, k in self.fed.items():
                inputs[i] = found[k]
            if record or step == steps - 1:
                for whole, value in zip(outputs, found, strict=True):
                    (whole[step] if record else whole)[part] = value
        carried = {i: np.zeros((count, known.shape[-1]), dtype) for i, known in between.items()}
        for step in reversed(range(steps)):
            for i, known in between.items():
                inputs[i] = known[step]
            for k, numbers in sequences.items():
                inputs[k] = numbers[step]
            own = [w[step, part] if record else w[part] for w in weights] if record or step == steps - 1 else [*nothing]
            for i, k in self.fed.items():
                own[k] = own[k] + carried[i]
            found = [np.empty((count, gradients[k].shape[-1]), dtype) for k in self.carried]
            back.evaluate([*inputs, *(np.ascontiguousarray(w) for w in own)], found, count, threads)
            for k, value in zip(self.carried, found, strict=True):
                if k in self.fed:
                    carried[k] = value
                elif k in self.steps.sequences:
                    gradients[k][step, part] = value
                else:
                    gradients[k][part] += value
        for i, value in carried.items():
            gradients[i][part] = value


class StepsGradient:
    """A number and its gradients; made by ``rollout(…).value_and_gradient``."""

    def __init__(self, steps: RolloutFunction, names: Sequence[str], of: str | None) -> None:
        if not names:
            raise InputError("value_and_gradient needs the name of an input")
        self.back = StepsBackward(steps, names)
        outputs = steps.step.program.outputs
        single = [spec.name for spec in outputs if spec.size == 1]
        if of is None and len(single) != 1:
            raise InputError(
                f"{steps.step.name} does not return one number among its outputs",
                got=", ".join(f"{spec.name} {spec.shape}" for spec in outputs),
                do='let the step add up a cost, {"q": …, "v": …, "cost": cost + …}, or say which one: of="cost"',
            )
        chosen = single[0] if of is None else of
        if chosen not in single:
            raise UnknownNameError(f"output of {steps.step.name} that is one number", chosen, single)
        self.place = next(k for k, spec in enumerate(outputs) if spec.name == chosen)
        self.outputs = outputs

    def __call__(self, *arrays: ArrayLike, threads: int | None = None, **named: ArrayLike) -> Any:
        """Takes the inputs, in their order or by name."""
        if named:
            arrays = self.back.step.in_order(arrays, named)
        weights = [
            np.ones(spec.shape) if k == self.place else np.zeros(spec.shape) for k, spec in enumerate(self.outputs)
        ]
        outputs, gradients = self.back.run(arrays, weights, checked_threads(threads))
        value = outputs[self.place]
        if self.back.steps.record:
            value = value.sum(axis=0)
        if len(gradients) == 1:
            return ValueAndGradient(value, gradients[0])
        fields = ["value", *(f"d_{name}" for name in self.back.names)]
        return tuple_of(fields)(value, *gradients)
