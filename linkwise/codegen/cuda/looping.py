"""Programs with loops, inside the kernel of a routine: functions whose working memory is the thread's own.

The definition (:func:`linkwise.tracing.program.interpret_rolled`) word for word: each loop a loop, one body for
each kind of link, and where its arrays lie is read from a table that is part of the text. This is for what a routine
does besides (a linear system, say) and for mechanisms of moderate size; a batch of one large mechanism has kernels of
its own, :mod:`linkwise.codegen.cuda.rolled`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from linkwise.codegen.c.ops import literal, rounded
from linkwise.codegen.cuda.body import Body, Constants, planned_body
from linkwise.tracing.block import Block
from linkwise.tracing.program import PARAMETERS, Angles, Loop, LoopBody, Once, Program, Step


class LoopingFunction:
    """A program with loops as a function of pointers."""

    is_long = False  # its instructions are few, whatever the number of links

    def __init__(self, name: str, program: Program, constants: Constants, bits: int) -> None:
        self.name, self.program, self.constants, self.bits = name, program, constants, bits
        self.bodies = {id(body): f"{name}_{k}" for k, body in enumerate(program.bodies)}
        self.spaces = {space: f"s{k}" for k, space in enumerate(program.spaces)}
        self.spaces[PARAMETERS] = f"{name}_parameters"
        self.spaces |= {f"in:{spec.name}": f"lw_in{k}" for k, spec in enumerate(program.inputs)}
        self.spaces |= {f"out:{spec.name}": f"lw_out{k}" for k, spec in enumerate(program.outputs)}

    @property
    def memory(self) -> int:
        """Numbers of its own."""
        return sum(self.program.spaces.values())

    def lines(self) -> Iterator[str]:
        """Tables, bodies, and the function."""
        program, done = self.program, set()
        yield from _table("int", f"{self.name}_kinds", [str(int(kind)) for kind in program.kinds])
        yield from _table("int", f"{self.name}_offsets", [str(int(place)) for place in program.offsets.reshape(-1)])
        if any(stretch.space == PARAMETERS for body in program.bodies for stretch in body.inputs):
            numbers = [literal(rounded(float(x), self.bits), self.bits) for x in program.parameters]
            yield from _table("REAL", f"{self.name}_parameters", numbers)
        for body in program.bodies:
            if id(body) not in done:
                done.add(id(body))
                yield from self._body(self.bodies[id(body)], body.program)
        inputs = [f"const REAL *lw_in{k}" for k in range(len(program.inputs))]
        outputs = [f"REAL *lw_out{k}" for k in range(len(program.outputs))]
        yield f"__device__ __noinline__ void {self.name}({', '.join([*inputs, *outputs])})"
        yield "{"
        for space, size in program.spaces.items():
            yield f"    REAL {self.spaces[space]}[{max(1, size)}];"
        for constant in program.constants:
            value = literal(rounded(constant.value, self.bits), self.bits)
            yield f"    {self.spaces[constant.space]}[{constant.offset}] = {value};"
        for step in program.steps:
            yield from self._step(step)
        yield "}"
        yield ""

    def _step(self, step: Step) -> Iterator[str]:
        columns = self.program.offsets.shape[1]
        if isinstance(step, Angles):
            angle, sine, cosine = (self.spaces[name] for name in (step.arguments, step.sines, step.cosines))
            yield "#pragma unroll 1"
            yield f"    for (int k = 0; k < {self._size(step.arguments)}; ++k)"
            yield f"        lw_sincos_any({angle}[k], {sine}[k], {cosine}[k]);"
        elif isinstance(step, Once):
            row = (len(self.program.kinds) + step.row) * columns
            yield f"    {{ const int *at = {self.name}_offsets + {row}; {self._call(step.body)} }}"
        elif isinstance(step, Loop):
            n = len(self.program.kinds)
            order = f"int k = {n - 1}; k >= 0; --k" if step.reverse else f"int k = 0; k < {n}; ++k"
            yield from self._loop(order, f"{self.name}_kinds[k]", step.bodies)
        else:
            first = len(self.program.kinds) + step.first
            yield from self._loop(f"int k = {first}; k < {first + step.count}; ++k", f"at[{step.kind}]", step.bodies)

    def _loop(self, order: str, kind: str, bodies: Sequence[LoopBody | None]) -> Iterator[str]:
        yield "#pragma unroll 1"
        yield f"    for ({order}) {{"
        yield f"        const int *at = {self.name}_offsets + k * {self.program.offsets.shape[1]};"
        yield f"        switch ({kind}) {{"
        for number, body in enumerate(bodies):
            if body is not None:
                yield f"        case {number}: {self._call(body)} break;"
        yield "        }"
        yield "    }"

    def _size(self, space: str) -> int:
        sizes = {f"in:{spec.name}": spec.size for spec in self.program.inputs}
        return {**sizes, **self.program.spaces}[space]

    def _call(self, body: LoopBody) -> str:
        places = [f"{self.spaces[s.space]} + at[{s.column}]" for s in (*body.inputs, *body.outputs)]
        return f"{self.bodies[id(body)]}({', '.join(places)});"

    def _body(self, name: str, program: Block) -> Iterator[str]:
        """Its results are stored in the end: they may lie where its inputs do."""
        given, steps = planned_body(program)

        def slot(k: int) -> str:
            _, array, element = program.nodes[given[k]]
            return f"lw_in{array}[{element}]"

        def kept(array: int, element: int, value: str) -> str:
            return f"const REAL lw_made{array}_{element} = {value};"

        lines = Body(program, steps, self.constants, slot, kept).lines
        inputs = [f"const REAL *lw_in{k}" for k in range(len(program.inputs))]
        outputs = [f"REAL *lw_out{k}" for k in range(len(program.outputs))]
        yield f"LW_INLINE void {name}({', '.join([*inputs, *outputs])})"
        yield "{"
        yield from (f"    {line}" for line in lines)
        for array, spec in enumerate(program.outputs):
            yield from (f"    lw_out{array}[{e}] = lw_made{array}_{e};" for e in range(spec.size))
        yield "}"
        yield ""


def _table(kind: str, name: str, values: Sequence[str]) -> Iterator[str]:
    if values:  # C knows no empty ones
        yield f"__device__ const {kind} {name}[] = {{{', '.join(values)}}};"
