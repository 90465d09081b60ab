"""Many steps of a program: the moves of numbers between two of them, and the program of all steps."""

from __future__ import annotations

from functools import cache

from linkwise.dataclass import dataclass, field
from linkwise.trace.block import Block
from linkwise.trace.program import Buffer, Call, Copy, Program, Read, Record, Statement, WhileAny
from linkwise.trace.tracer import Tracer


@dataclass(frozen=True)
class Rollout:
    """Course of many steps, from the outputs of one to the inputs of the next.

    Args:
        feedback: outputs that become inputs of the next step: output number to input number.
        sequences: inputs that have a row for each step, ``(steps, count, size)``, or ``(steps, size)`` of kind "one".
        record: whether outputs are stored after each step, ``(steps, count, size)``, or after the last only.
    """

    feedback: tuple[tuple[int, int], ...] = ()
    sequences: tuple[int, ...] = ()
    record: bool = False


@dataclass(frozen=True, eq=False)
class Repetition(Program):
    """A routine that repeats one program.

    Its rows: :attr:`CLOCK`, numbers of the first step and behind the last; ``given``, the inputs that are no sequences,
    those that are fed back being stored; ``made``, the outputs of the last step, if not recorded. Its series: the
    sequences. Its records: the outputs, if recorded.
    """

    step: Block | Program = field(kw_only=True)
    rollout: Rollout = field(kw_only=True)

    CLOCK = "clock"

    @staticmethod
    def given(number: int) -> str:
        """Name of the buffer, or of the series, of an input."""
        return f"given{number}"

    @staticmethod
    def made(number: int) -> str:
        """Name of the buffer, or of the record, of an output."""
        return f"made{number}"


def repeated(step: Block | Program, rollout: Rollout) -> Repetition:
    """The routine of many steps."""
    fed = {given for _, given in rollout.feedback}
    inputs = [Repetition.given(k) for k in range(len(step.inputs))]
    outputs = [Repetition.made(k) for k in range(len(step.outputs))]
    buffers = [
        Buffer(name, spec.size, load=k not in rollout.sequences, store=k in fed)
        for k, (name, spec) in enumerate(zip(inputs, step.inputs, strict=True))
    ]
    buffers += [
        Buffer(name, spec.size, store=not rollout.record) for name, spec in zip(outputs, step.outputs, strict=True)
    ]
    buffers.append(Buffer(Repetition.CLOCK, 2, load=True))
    buffers += [Buffer(name, 1) for name in ("number", "number_next", "running")]
    records = list(zip(outputs, (spec.size for spec in step.outputs), strict=True)) if rollout.record else []
    body: tuple[Statement, ...] = (
        *(Read(inputs[k], "number", inputs[k]) for k in rollout.sequences),
        Call(step, tuple(inputs), tuple(outputs)),
        *(Copy(outputs[output], inputs[given]) for output, given in rollout.feedback),
        *(Record(name, name, "number", "running") for name, _ in records),
        Call(_counting("onward", False), ("number", Repetition.CLOCK), ("number_next", "running")),
        Copy("number_next", "number"),
    )
    return Repetition(
        f"steps_of_{step.name}",
        tuple(buffers),
        (Call(_counting("begin", True), (Repetition.CLOCK,), ("number", "running")), WhileAny("running", body)),
        records=tuple(records),
        series=tuple((inputs[k], step.inputs[k].size) for k in rollout.sequences),
        step=step,
        rollout=rollout,
    )


@cache
def _counting(name: str, first: bool) -> Block:
    """The number of a step, and whether there is one."""
    tracer = Tracer()
    before = None if first else tracer.input("number", (1,))[0]
    begin, end = tracer.input("clock", (2,))
    number = begin if before is None else before + 1.0
    return tracer.finish(name, [("number_next", (1,), [number]), ("running", (1,), [(number < end).where(1.0, 0.0)])])
