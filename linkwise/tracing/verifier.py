"""Checks that a program is well formed; run between passes and before code is emitted in tests and debug runs."""

from __future__ import annotations

import math

import numpy as np

from linkwise.tracing.ops import OPS
from linkwise.tracing.program import Program
from linkwise.tracing.rolled_program import PARAMETERS, Angles, Loop, LoopBody, RolledProgram, Tasks

_Piece = tuple[tuple[str, int], int]  # space and first value, how many


def verify(program: Program) -> None:
    """Raise ``ValueError`` naming the first node that breaks a rule."""
    kinds: list[str] = []
    for number, (op, *arguments) in enumerate(program.nodes):
        where = f"node %{number} {(op, *arguments)} of {program.name}"
        if op == "const":
            if not isinstance(arguments[0], float) or math.isnan(arguments[0]):
                raise ValueError(f"{where}: a constant is a float, not NaN")
            kinds.append("R")
        elif op == "input":
            array, element = arguments
            if not (0 <= array < len(program.inputs) and 0 <= element < program.inputs[array].size):
                raise ValueError(f"{where}: reads outside the inputs {program.inputs}")
            kinds.append("R")
        elif op in OPS:
            if len(arguments) != OPS[op].arity:
                raise ValueError(f"{where}: takes {OPS[op].arity} arguments")
            if not all(0 <= a < number for a in arguments):
                raise ValueError(f"{where}: uses a value that is not computed yet")
            if "".join(kinds[a] for a in arguments) != OPS[op].arguments:
                raise ValueError(f"{where}: takes kinds {OPS[op].arguments}")
            kinds.append(OPS[op].result)
        else:
            raise ValueError(f"{where}: no such operation; there are {', '.join(OPS)}")
    for spec, result in zip(program.outputs, program.results, strict=True):
        if len(result) != spec.size:
            raise ValueError(f"output {spec.name} of {program.name} has {len(result)} values, shape {spec.shape}")
        if not all(0 <= n < len(kinds) for n in result):
            raise ValueError(f"output {spec.name} of {program.name} takes a value that is not there")
        if any(kinds[n] != "R" for n in result):
            raise ValueError(f"output {spec.name} of {program.name} holds a truth value")


def verify_rolled(program: RolledProgram) -> None:
    """Raise ``ValueError`` unless every body reads and writes inside the spaces, and reads only what was written.

    Places are data of the program (its table of offsets), so this is known for all links, and for what runs once
    between two loops, before anything runs.
    """
    _Spaces(program).run()


class _Spaces:
    """Which values of each space have been written, while the steps are gone through link by link."""

    def __init__(self, program: RolledProgram) -> None:
        self.program = program
        self.written = {name: np.zeros(size, bool) for name, size in program.spaces.items()}
        self.written[PARAMETERS] = np.ones(len(program.parameters), bool)
        self.written |= {f"in:{spec.name}": np.ones(spec.size, bool) for spec in program.inputs}
        self.written |= {f"out:{spec.name}": np.zeros(spec.size, bool) for spec in program.outputs}
        self.read_only = {PARAMETERS, *(f"in:{spec.name}" for spec in program.inputs)}

    def run(self) -> None:
        for constant in self.program.constants:
            self._write(constant.space, constant.offset, 1, "a constant")
        for step in self.program.steps:
            if isinstance(step, Loop):
                self._loop(step)
            elif isinstance(step, Angles):
                size = len(self.written[step.arguments])
                self._read(step.arguments, 0, size, "the angles")
                self._write(step.sines, 0, size, "the sines")
                self._write(step.cosines, 0, size, "the cosines")
            elif isinstance(step, Tasks):
                for one in step.bodies:
                    verify(one.program)
                for body, row in self.program.tasks(step):
                    self._link(row, body)
            else:
                verify(step.body.program)
                self._link(len(self.program.kinds) + step.row, step.body)
        for spec in self.program.outputs:
            missing = np.flatnonzero(~self.written[f"out:{spec.name}"])
            if len(missing):
                raise ValueError(f"output {spec.name} of {self.program.name}: value {missing[0]} is never written")

    def _loop(self, loop: Loop) -> None:
        for one in filter(None, loop.bodies):
            verify(one.program)
        order = range(len(self.program.kinds))
        for k in reversed(order) if loop.reverse else order:
            kind = int(self.program.kinds[k])
            if not 0 <= kind < len(loop.bodies):
                raise ValueError(f"link {k} of {self.program.name} is of kind {kind}; there are {len(loop.bodies)}")
            body = loop.bodies[kind]
            if body is not None:
                self._link(k, body)

    def _link(self, k: int, body: LoopBody) -> None:
        who = f"{body.program.name} of row {k}"
        rows, columns = self.program.offsets.shape
        stretches = (*body.inputs, *body.outputs)
        if not (0 <= k < rows and all(0 <= stretch.column < columns for stretch in stretches)):
            raise ValueError(f"{who} in {self.program.name} is not in the table of {rows} rows, {columns} columns")
        starts = [int(self.program.offsets[k, stretch.column]) for stretch in stretches]
        places = [(s.space, start) for s, start in zip(stretches, starts, strict=True)]
        read = sorted({node[1:] for node in body.program.nodes if node[0] == "input"})
        for array, element in read:
            self._read(places[array][0], places[array][1] + element, 1, who)
        written = list(zip(places[len(body.inputs) :], (spec.size for spec in body.program.outputs), strict=True))
        for (space, start), size in written:
            self._write(space, start, size, who)
        self._apart(body, [((places[a][0], places[a][1] + e), 1) for a, e in read], written, who)

    def _apart(self, body: LoopBody, read: list[_Piece], written: list[_Piece], who: str) -> None:
        """Bodies none of whose inputs is one of its outputs are compiled as if all of these lay apart."""
        ends = [{(s.space, s.column) for s in side} for side in (body.inputs, body.outputs)]
        if ends[0] & ends[1]:
            return
        taken: set[tuple[str, int]] = {place for place, _ in read}
        for (space, start), size in written:
            values = {(space, i) for i in range(start, start + size)}
            if values & taken:
                raise ValueError(
                    f"{who} in {self.program.name} writes {space}[{min(values & taken)[1]}], which it also reads or "
                    "writes in another place"
                )
            taken |= values

    def _inside(self, space: str, start: int, size: int, who: str) -> None:
        if space not in self.written:
            raise ValueError(f"{who} in {self.program.name}: no such space {space!r}; there are {sorted(self.written)}")
        room = len(self.written[space])
        if size and not 0 <= start <= start + size <= room:
            raise ValueError(
                f"{who} in {self.program.name}: {space}[{start}:{start + size}] is outside its {room} values"
            )

    def _read(self, space: str, start: int, size: int, who: str) -> None:
        self._inside(space, start, size, who)
        if not self.written[space][start : start + size].all():
            raise ValueError(f"{who} in {self.program.name} reads {space}[{start}] before it is written")

    def _write(self, space: str, start: int, size: int, who: str) -> None:
        self._inside(space, start, size, who)
        if space in self.read_only:
            raise ValueError(f"{who} in {self.program.name} writes to {space}, which is only for reading")
        self.written[space][start : start + size] = True
