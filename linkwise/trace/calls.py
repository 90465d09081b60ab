"""Traces that call programs with loops on the way: straight-line pieces, and calls between them.

While a text runs on the scalars of a :class:`CallingTracer`, a call of another program becomes an array of new inputs,
whose values that program will bring. Afterwards the trace is cut where results are waited for: everything that the
calls of one round need is one piece, so a text with one call becomes a piece, the call, and a piece.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from linkwise.dataclass import dataclass, replace
from linkwise.trace.block import ArraySpec, Block, Node, is_truth
from linkwise.trace.passes import extract, reached
from linkwise.trace.program import Buffer, Call, Program
from linkwise.trace.tracer import Number, Traced, Tracer


@dataclass
class _Called:
    """A call: its arguments as numbers of nodes, the arrays that hold its results, and what these are known after.

    Without a program the results are the arguments: a place to cut. They are known after so many rounds of calls, and
    in a pass of the loop that this array begins, the last that any of the arguments depends on (-1: none).
    """

    program: Program | None
    arguments: tuple[tuple[int, ...], ...]
    results: list[ArraySpec]
    round: int
    loop: int


WAYPOINT = "waypoint"
"""The name of the results of a call that is a waypoint."""

LARGE = 128
"""Numbers of an array that a loop takes as it is, instead of those of its numbers that it needs."""


class Captured(NamedTuple):
    """Numbers and whole arrays of the trace around it that the body of a loop needs."""

    numbers: list[Traced]
    arrays: list[int]


class CallingTracer(Tracer):
    """A tracer whose trace may call programs with loops.

    Args:
        large_models: whether functions of large models become calls; if not, only loops in the text itself do.
        holds: as for any tracer.
        waypoints: as for any tracer.
        products: whether long products of Jacobians become calls; they take memory.
    """

    def __init__(
        self, large_models: bool = True, holds: bool = False, waypoints: bool = False, products: bool = True
    ) -> None:
        super().__init__(holds, waypoints)
        self.products = products
        self.large_models = large_models
        self.calls: list[_Called] = []
        self._loop_arrays: set[int] = set()
        self._captured_before: list[Captured] = []
        self._same: dict[Hashable, list[list[Traced]]] = {}
        self.callers: dict[int, _Called] = {}
        self._rounds: list[int] = []
        self._loops: list[int] = []

    def call(self, program: Program, arguments: Sequence[Sequence[Number]]) -> list[list[Traced]]:
        """The results of a program for these arguments, one flat list for each output."""
        return self._add(program, arguments, [(spec.name, spec.shape) for spec in program.outputs])

    def stored(self, values: Sequence[Number]) -> list[Traced]:
        """Values as they are found in memory by whatever uses them."""
        return self._add(None, [values], [("stored", (len(values),))])[0]

    def waypoint(self, values: Sequence[Number]) -> list[Number]:
        """Values that Jacobians are multiplied together at, in a trace for these; constants stay."""
        places = [k for k, x in enumerate(values) if isinstance(x, Traced)]
        found = list(values)
        if self.waypoints and places:
            own = [values[k] for k in places]
            (kept,) = self._add(None, [own], [(WAYPOINT, (len(own),))])
            for k, x in zip(places, kept, strict=True):
                found[k] = x
        return found

    def _add(
        self,
        program: Program | None,
        arguments: Sequence[Sequence[Number]],
        results: Sequence[tuple[str, tuple[int, ...]]],
    ) -> list[list[Traced]]:
        numbers = tuple(tuple(self.number(x) for x in values) for values in arguments)
        key = (id(program), numbers)
        if key not in self._same:
            rounds, loops = self._known_after()
            number = 1 + max((rounds[x] for values in numbers for x in values), default=0)
            loop = max((loops[x] for values in numbers for x in values), default=-1)
            specs = [ArraySpec(f"call{len(self.calls)}:{name}", shape) for name, shape in results]
            self.calls.append(_Called(program, numbers, specs, number, loop))
            self.callers |= dict.fromkeys(range(len(self.inputs), len(self.inputs) + len(specs)), self.calls[-1])
            self._same[key] = [self.input(spec.name, spec.shape) for spec in specs]
        return self._same[key]

    def _known_after(self) -> tuple[list[int], list[int]]:
        """For each node, what its value is known after: so many rounds of calls, and an array that a loop begins with.

        The array is the last of those that it depends on, -1 if there is none.
        """
        rounds, loops = self._rounds, self._loops
        for node in self.nodes[len(rounds) :]:
            number, loop = 0, -1
            if node[0] == "input":
                call = self.callers.get(node[1])
                if call is not None:
                    number, loop = call.round, call.loop
                elif node[1] in self._loop_arrays:
                    loop = node[1]
            elif node[0] != "const":
                for a in node[1:]:
                    if rounds[a] > number:
                        number = rounds[a]
                    if loops[a] > loop:
                        loop = loops[a]
            rounds.append(number)
            loops.append(loop)
        return rounds, loops

    def composite(self, name: str, outputs: Sequence[tuple[str, tuple[int, ...], Iterable[Number]]]) -> Program:
        """Program of calls alone, all that is needed for these outputs, (name, shape, flat values) each."""
        inputs = [self.inputs[k] for k in self.own_inputs]
        specs = [ArraySpec(output, shape) for output, shape, _ in outputs]
        numbers = [tuple(self.number(x) for x in values) for _, _, values in outputs]
        return self._composite(name, inputs, specs, numbers, {})

    def _composite(
        self,
        name: str,
        inputs: Sequence[ArraySpec],
        outputs: Sequence[ArraySpec],
        numbers: Sequence[tuple[int, ...]],
        given: Mapping[int, tuple[str, int]],
    ) -> Program:
        taken = {spec.name for spec in inputs}
        names = [f"out:{spec.name}" if spec.name in taken else spec.name for spec in outputs]
        cut = _Cutter(self, dict(zip(names, numbers, strict=True)), given, {spec.name: spec.size for spec in inputs})
        buffers = [Buffer(spec.name, spec.size, load=True, shape=spec.shape) for spec in inputs]
        buffers += [Buffer(spec.name, spec.size) for spec in cut.own]
        for buffer, spec in zip(names, outputs, strict=True):
            buffers.append(Buffer(buffer, spec.size, store=True, shape=spec.shape))
        return Program(name, tuple(buffers), tuple(cut.pieces))

    @property
    def own_inputs(self) -> list[int]:
        """The arrays that are inputs of the whole: neither results of calls nor what loops begin a pass with."""
        return [k for k in range(len(self.inputs)) if k not in self.callers and k not in self._loop_arrays]

    # Loops in the text.
    def loop_input(self, name: str, size: int) -> list[Traced]:
        """Numbers that the body of a loop begins a pass with."""
        self._loop_arrays.add(len(self.inputs))
        return self.input(f"loop{len(self.inputs)}:{name}", (size,))

    def part(
        self,
        name: str,
        state: Sequence[Traced],
        outputs: Sequence[tuple[str, Sequence[Number]]],
        known: Captured | None = None,
        items: Sequence[Sequence[Traced]] = (),
    ) -> tuple[Block | Program, Captured]:
        """The code that leads from the inputs of a loop to some values, and what it needs of the trace around.

        It takes arrays ``state`` and ``captured``, then large arrays of the trace around as they are, then those of
        ``items``, which a pass begins with beside its state. What is captured may be ``known``, all that is needed and
        perhaps more.
        """
        own = [(self.nodes[x[0].number][1] if x else -1, len(x)) for x in (state, *items)]
        numbers = [tuple(self.number(x) for x in values) for _, values in outputs]
        if known is None:
            known = self._as_before(self._split(self._captured({array for array, _ in own}, numbers)))
        given = {x.number: ("captured", k) for k, x in enumerate(known.numbers)}
        for array in known.arrays:
            given |= {x.number: (self.inputs[array].name, k) for k, x in enumerate(self.of_array(array))}
        specs = [ArraySpec(output, (len(values),)) for output, values in outputs]
        first, *others = (ArraySpec(self.inputs[k].name if k >= 0 else "state", (size,)) for k, size in own)
        arrays = [ArraySpec(self.inputs[k].name, (self.inputs[k].size,)) for k in known.arrays]
        inputs = [first, ArraySpec("captured", (len(known.numbers),)), *arrays, *others]
        whole = self._composite(name, inputs, specs, numbers, given)
        if len(whole.statements) == 1 and len(whole.blocks) == 1 and isinstance(whole.codes[0], Block):
            return _taking(whole.codes[0], inputs), known
        return whole, known

    def of_array(self, array: int) -> list[Traced]:
        """The numbers of an array."""
        return [Traced(self, self.node(("input", array, k))) for k in range(self.inputs[array].size)]

    def given(self, captured: Captured) -> list[Sequence[Number]]:
        """Captured values, as arguments of a call."""
        return [captured.numbers, *(self.of_array(array) for array in captured.arrays)]

    def _split(self, numbers: Sequence[int]) -> Captured:
        """Numbers that are captured: large results of calls stay where they are, as whole arrays."""
        arrays: dict[int, None] = {}
        rest = []
        for number in numbers:
            node = self.nodes[number]
            if node[0] == "input" and node[1] in self.callers and self.inputs[node[1]].size >= LARGE:
                arrays[node[1]] = None
            else:
                rest.append(Traced(self, number))
        return Captured(rest, list(arrays))

    def _as_before(self, captured: Captured) -> Captured:
        """Captured values; or those of a loop before, if they are these and few more: they are in memory already."""
        own, loops = {x.number for x in captured.numbers}, self._known_after()[1]
        for other in self._captured_before:
            numbers = {x.number for x in other.numbers}
            fits = other.arrays == captured.arrays and own <= numbers and len(numbers) <= 2 * len(own)
            if fits and all(loops[x] < 0 for x in numbers):
                return other
        self._captured_before.append(captured)
        return captured

    def _captured(self, arrays: set[int], outputs: Sequence[tuple[int, ...]]) -> list[int]:
        """Values that do not depend on arrays of a loop, of which values that do, or outputs, are made directly.

        Of what its body computes, all that depends on later ones is inside of loops within it.
        """
        loops, first = self._known_after()[1], min((x for x in arrays if x >= 0), default=len(self.inputs))
        found: dict[int, None] = {}
        seen: set[int] = set()
        asked: set[int] = set()
        todo = [x for numbers in outputs for x in numbers]
        while todo:
            number = todo.pop()
            node = self.nodes[number]
            if number in seen or node[0] == "const":
                continue
            seen.add(number)
            call = self.callers.get(node[1]) if node[0] == "input" else None
            if loops[number] < first and not is_truth(node):  # truths are found again: memory holds numbers
                found[number] = None
            elif call is not None:
                if id(call) not in asked:
                    asked.add(id(call))
                    todo.extend(x for values in call.arguments for x in values)
            elif node[0] != "input":
                todo.extend(node[1:])
        return sorted(found)


def traced(name: str, function: Callable[..., Mapping[str, object]], inputs: Mapping[str, int]) -> Block | Program:
    """The code of a function of flat vectors, which returns named scalars and flat vectors.

    A block; where functions of a large model are called on the way, several of them with these calls in between.
    """
    tracer = CallingTracer()
    found = function(*(tracer.input(key, (size,)) for key, size in inputs.items()))
    outputs = [(key, (len(list_of(value)),), list_of(value)) for key, value in found.items()]
    return tracer.composite(name, outputs) if tracer.calls else tracer.finish(name, outputs)


def list_of(value: Any) -> list[Number]:
    """A scalar or a vector as a list."""
    return list(value) if isinstance(value, (list, tuple)) else [value]


def stored(values: Sequence[Number]) -> Sequence[Number]:
    """Values in memory, where the trace allows that: a sum over them then begins a piece of its own."""
    tracer = next((x.tracer for x in values if isinstance(x, Traced)), None)
    return tracer.stored(values) if isinstance(tracer, CallingTracer) else values


def waypoint(values: Sequence[Number]) -> list[Number]:
    """Values as a waypoint of Jacobians, where a trace has such."""
    tracer = next((x.tracer for x in values if isinstance(x, Traced)), None)
    return tracer.waypoint(values) if isinstance(tracer, CallingTracer) else list(values)


def is_waypoint(call: _Called) -> bool:
    """Whether a call is a place to multiply Jacobians at."""
    return call.results[0].name.endswith(f":{WAYPOINT}")


def _taking(block: Block, inputs: Sequence[ArraySpec]) -> Block:
    """Block with just these input arrays, read or not."""
    place = {spec.name: k for k, spec in enumerate(inputs)}
    new = [place[spec.name] for spec in block.inputs]
    nodes = tuple(("input", new[node[1]], node[2]) if node[0] == "input" else node for node in block.nodes)
    return replace(block, nodes=nodes, inputs=tuple(inputs))


class _Cutter:
    """Cuts a trace into pieces: one before each round of calls, one for the results.

    Args:
        tracer: the whole trace.
        outputs: numbers of the values that are wanted, by the array they go to.
        given: values that are found in an array, and not computed.
        sizes: of the arrays that are there.
    """

    def __init__(
        self,
        tracer: CallingTracer,
        outputs: Mapping[str, tuple[int, ...]],
        given: Mapping[int, tuple[str, int]],
        sizes: Mapping[str, int],
    ) -> None:
        self.tracer, self.nodes, self.given, self.sizes = tracer, tracer.nodes, given, sizes
        live = self._live_calls(outputs)
        self.own = [spec for call in live for spec in call.results]
        self.pieces: list[Call] = []
        self._names: dict[tuple[int, ...], str] = {}
        """The arrays that calls read, made before the first of these."""
        stages: list[tuple[dict[str, tuple[int, ...]], list[Call]]] = []
        for number in sorted({call.round for call in live}):
            stages.append(self._before_calls(number, [call for call in live if call.round == number]))
        stages.append((dict(outputs), []))
        kept = self._kept([arrays for arrays, _ in stages])
        found = dict(given)
        for number, (arrays, calls) in enumerate(stages):
            self._piece(number, arrays, kept[number], found)
            self.pieces += calls

    def _live_calls(self, outputs: Mapping[str, tuple[int, ...]]) -> list[_Called]:
        """The calls that the results need, in order."""
        needed: set[int] = set()

        def behind(number: int, node: Node) -> Sequence[int]:
            if number in self.given:
                return ()
            if node[0] != "input":
                return node[1:]
            call = self.tracer.callers.get(node[1])
            if call is None or id(call) in needed:
                return ()
            needed.add(id(call))
            return [x for values in call.arguments for x in values]

        reached(self.nodes, (x for numbers in outputs.values() for x in numbers), behind)
        return [call for call in self.tracer.calls if id(call) in needed]

    def _before_calls(self, number: int, calls: list[_Called]) -> tuple[dict[str, tuple[int, ...]], list[Call]]:
        """The arrays that these calls read and nobody has made before, and the calls."""
        arrays: dict[str, tuple[int, ...]] = {}
        names, pieces = self._names, []
        for call in calls:
            if call.program is None:
                arrays[call.results[0].name] = call.arguments[0]
                continue
            for numbers in call.arguments:
                if numbers not in names:
                    names[numbers] = self._whole_array(numbers) or f"round{number}:{len(arrays)}"
                    if not self._whole_array(numbers):
                        arrays[names[numbers]] = numbers
                        self.own.append(ArraySpec(names[numbers], (len(numbers),)))
            inputs = tuple(names[numbers] for numbers in call.arguments)
            pieces.append(Call(call.program, inputs, tuple(spec.name for spec in call.results)))
        return arrays, pieces

    def _whole_array(self, numbers: tuple[int, ...]) -> str | None:
        """The array that these values are, from its first to its last."""
        if numbers and numbers[0] in self.given:
            name = self.given[numbers[0]][0]
            there = [self.given.get(number) for number in numbers]
            return name if there == [(name, i) for i in range(self.sizes.get(name, -1))] else None
        first = self.nodes[numbers[0]] if numbers else ("const",)
        if first[0] != "input" or any(number in self.given for number in numbers):
            return None
        spec = self.tracer.inputs[first[1]]
        whole = [("input", first[1], i) for i in range(spec.size)]
        return spec.name if [self.nodes[x] for x in numbers] == whole else None

    def _kept(self, stages: Sequence[Mapping[str, tuple[int, ...]]]) -> list[list[int]]:
        """Values of each piece that later ones need."""
        home: dict[int, int] = {}
        kept: list[dict[int, None]] = [{} for _ in stages]
        for stage, arrays in enumerate(stages):
            todo = [x for numbers in arrays.values() for x in numbers]
            truths: set[int] = set()
            while todo:
                number = todo.pop()
                node = self.nodes[number]
                if node[0] in ("const", "input") or number in self.given:
                    continue
                if is_truth(node):  # found again from the numbers it compares: memory holds numbers
                    if number not in truths:
                        truths.add(number)
                        todo.extend(node[1:])
                elif number not in home:
                    home[number] = stage
                    todo.extend(node[1:])
                elif home[number] < stage:
                    kept[home[number]][number] = None
        return [list(numbers) for numbers in kept]

    def _piece(
        self, number: int, arrays: Mapping[str, tuple[int, ...]], kept: list[int], found: dict[int, tuple[str, int]]
    ) -> None:
        """A straight-line piece that makes these arrays; ``found`` is where earlier ones left what it needs."""
        places = {x: (name, i) for name, numbers in arrays.items() for i, x in enumerate(numbers)}
        others = [x for x in kept if x not in places]
        outputs = dict(arrays)
        if others:
            outputs[f"kept{number}"] = tuple(others)
            places |= {x: (f"kept{number}", i) for i, x in enumerate(others)}
            self.own.append(ArraySpec(f"kept{number}", (len(others),)))
        if outputs:
            sizes = {**self.sizes, **{spec.name: spec.size for spec in self.own}}
            tracer, wanted = self.tracer, list(outputs.items())
            made = extract(f"piece{number}", self.nodes, tracer.inputs, wanted, found, None, sizes, tracer.side_by_side)
            self.pieces.append(Call(made, tuple(spec.name for spec in made.inputs), tuple(outputs)))
        found |= {x: places[x] for x in kept}
