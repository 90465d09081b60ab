"""A thin writer of LLVM's textual IR.

Text is faster to make and to read than an object model of it: LLVM parses ten thousand lines in
twenty milliseconds. :class:`LaneShape` names the types of one kind of lane, :class:`FunctionText` collects
the lines of one function, and :class:`LaneValue` lets formulas be written as formulas.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from linkwise.dataclass import dataclass


def real_bits(value: float, bits: int) -> str:
    """A real constant, exactly. LLVM writes a float as the double of the same value."""
    if bits == 32:
        try:
            value = struct.unpack("<f", struct.pack("<f", value))[0]
        except OverflowError:
            value = math.copysign(math.inf, value)
    if math.isnan(value):
        return "0x7FF8000000000000"
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


@dataclass(frozen=True)
class LaneShape:
    """Lanes of one width: ``bits`` per real number, ``lanes`` of them (1: plain scalars)."""

    bits: int
    lanes: int

    def _wide(self, element: str) -> str:
        return element if self.lanes == 1 else f"<{self.lanes} x {element}>"

    @property
    def element(self) -> str:
        """Type of the real number in one lane."""
        return "double" if self.bits == 64 else "float"

    @property
    def real(self) -> str:
        """Type of real values."""
        return self._wide(self.element)

    @property
    def integer(self) -> str:
        """Type of integers as wide as the reals."""
        return self._wide(f"i{self.bits}")

    @property
    def truth(self) -> str:
        """Type of truth values."""
        return self._wide("i1")

    @property
    def size(self) -> int:
        """Bytes of one value."""
        return self.lanes * self.bits // 8

    @property
    def mangled(self) -> str:
        """Name of the type in intrinsics."""
        return (f"v{self.lanes}" if self.lanes > 1 else "") + f"f{self.bits}"

    def _splat(self, element: str) -> str:
        return element.split(" ", 1)[1] if self.lanes == 1 else f"splat ({element})"

    def constant(self, value: float) -> str:
        """A real constant in all lanes."""
        return self._splat(f"{self.element} {real_bits(value, self.bits)}")

    def integer_constant(self, value: int) -> str:
        """An integer constant in all lanes."""
        return self._splat(f"i{self.bits} {value}")


class FunctionText:
    """The lines of one function, with fresh names on demand."""

    def __init__(self, head: str) -> None:
        self.head = head
        self.lines: list[str] = []
        self.declared: set[str] = set()
        self._count = 0
        self._block = ""

    def name(self) -> str:
        """A name not used before."""
        self._count += 1
        return f"%t{self._count}"

    def emit(self, text: str) -> str:
        """An instruction with a result; its name."""
        name = self.name()
        self.lines.append(f"  {name} = {text}")
        return name

    def do(self, text: str) -> None:
        """An instruction without a result."""
        self.lines.append(f"  {text}")

    def label(self, name: str) -> None:
        """Begin a basic block, unless it has just begun."""
        if not self.lines or self.lines[-1] != f"{name}:":
            self.lines.append(f"{name}:")
        self._block = name

    def declare(self, text: str) -> None:
        """Note that something outside is used."""
        self.declared.add(text)

    def constant(self, shape: LaneShape, value: float) -> str:
        """A real constant as an operand."""
        return shape.constant(value)

    def call(self, result: str, name: str, arguments: Sequence[tuple[str, str]], flags: str = "") -> str:
        """A call of an intrinsic or an outside function, declared on the way."""
        self.declare(f"declare {result} @{name}({', '.join(kind for kind, _ in arguments)})")
        passed = ", ".join(f"{kind} {value}" for kind, value in arguments)
        return self.emit(f"call {flags}{result} @{name}({passed})")

    def address(self, kind: str, base: str, index: str | int) -> str:
        """Address of the element ``index`` of an array."""
        return self.emit(f"getelementptr {kind}, ptr {base}, i64 {index}")

    def load(self, kind: str, pointer: str, align: int) -> str:
        """Read memory."""
        return self.emit(f"load {kind}, ptr {pointer}, align {align}")

    def store(self, kind: str, value: str, pointer: str, align: int) -> None:
        """Write memory."""
        self.do(f"store {kind} {value}, ptr {pointer}, align {align}")

    def spread(self, shape: LaneShape, base: str, index: str | int, kept: str = "") -> str:
        """One number of an array for all lanes; folds into the operand of the instruction that uses it.

        ``kept``: ``volatile`` for one that LLVM is to read anew wherever it is used.
        """
        place = base if index == 0 else self.address(shape.element, base, index)
        one = self.load(f"{kept}{shape.element}", place, shape.bits // 8)
        if shape.lanes == 1:
            return one
        first = self.emit(f"insertelement {shape.real} poison, {shape.element} {one}, i64 0")
        return self.emit(
            f"shufflevector {shape.real} {first}, {shape.real} poison, <{shape.lanes} x i32> zeroinitializer"
        )

    @contextmanager
    def counted(
        self,
        count: str | int,
        index: str = "%i",
        step: int = 1,
        *,
        some: bool = False,
        block: str = "loop",
        again: str | None = None,
        after: str = "done",
    ) -> Iterator[None]:
        """A loop behind the block that is being written: ``index`` from 0 on, below ``count``.

        What is written inside is one block, or several of which ``again`` is the last: all others lead there, and it
        counts. That of a loop around may be what comes ``after`` this one.

        Args:
            count: where it ends.
            index: the name of the counter.
            step: how far it goes each time.
            some: there is always a first pass.
            block: the name of the first block inside.
            again: the name of the last one, if it is another.
            after: the name of the block that follows.
        """
        before = self._block
        if some:
            self.do(f"br label %{block}")
        else:
            self.do(f"{index}.some = icmp sgt i64 {count}, 0")
            self.do(f"br i1 {index}.some, label %{block}, label %{after}")
        self.label(block)
        self.do(f"{index} = phi i64 [ 0, %{before} ], [ {index}.next, %{again or block} ]")
        yield
        if again is not None:
            self.label(again)
        self.do(f"{index}.next = add i64 {index}, {step}")
        self.do(f"{index}.more = icmp slt i64 {index}.next, {count}")
        self.do(f"br i1 {index}.more, label %{block}, label %{after}")
        self.label(after)

    def text(self) -> str:
        """The whole definition."""
        return "\n".join([f"{self.head} {{", *self.lines, "}", ""])


def masked_load(f: FunctionText, shape: LaneShape, place: str, mask: str) -> str:
    """Lanes outside the mask are zero and their memory is not touched."""
    kind = shape.real
    f.declare(f"declare {kind} @llvm.masked.load.{shape.mangled}.p0(ptr, i32 immarg, {shape.truth}, {kind})")
    return f.emit(
        f"call {kind} @llvm.masked.load.{shape.mangled}.p0(ptr {place}, i32 {shape.bits // 8}, "
        f"{shape.truth} {mask}, {kind} zeroinitializer)"
    )


def masked_store(f: FunctionText, shape: LaneShape, value: str, place: str, mask: str) -> None:
    """Memory of lanes outside the mask is not touched."""
    kind = shape.real
    f.declare(f"declare void @llvm.masked.store.{shape.mangled}.p0({kind}, ptr, i32 immarg, {shape.truth})")
    f.do(
        f"call void @llvm.masked.store.{shape.mangled}.p0({kind} {value}, ptr {place}, i32 {shape.bits // 8}, "
        f"{shape.truth} {mask})"
    )


def module_text(functions: Iterable[FunctionText], attributes: Iterable[str] = ()) -> str:
    """One module: declarations first, each once, none for what the module defines itself."""
    functions = list(functions)
    defined = {function.head.split("@", 1)[1].split("(", 1)[0] for function in functions}
    declared = sorted({line for function in functions for line in function.declared})
    outside = [line for line in declared if line.split("@", 1)[1].split("(", 1)[0] not in defined]
    return "\n".join([*outside, "", *(function.text() for function in functions), *attributes])


class LaneValue:
    """A value being written, with arithmetic.

    Every operation carries ``contract`` only: a product and a sum may become one fused operation,
    but nothing is reassociated, so what is written is what is rounded.
    """

    def __init__(self, function: FunctionText, shape: LaneShape, name: str, kind: str = "real") -> None:
        self.function, self.shape, self.name, self.kind = function, shape, name, kind

    def _new(self, text: str, kind: str) -> LaneValue:
        return LaneValue(self.function, self.shape, self.function.emit(text), kind)

    @property
    def type(self) -> str:
        """LLVM's type of this value."""
        return {"real": self.shape.real, "integer": self.shape.integer, "truth": self.shape.truth}[self.kind]

    def lift(self, other: LaneValue | float) -> str:
        """The name of another value, or a constant of this one's kind."""
        if isinstance(other, LaneValue):
            return other.name
        if self.kind == "integer":
            return self.shape.integer_constant(int(other))
        return self.function.constant(self.shape, other)

    def constant(self, value: float) -> LaneValue:
        """A real constant of the same shape."""
        return LaneValue(self.function, self.shape, self.function.constant(self.shape, value))

    def _real(self, op: str, other: LaneValue | float, swap: bool = False) -> LaneValue:
        a, b = self.name, self.lift(other)
        if swap:
            a, b = b, a
        op = f"f{op} contract" if self.kind == "real" else op
        return self._new(f"{op} {self.type} {a}, {b}", self.kind)

    def __add__(self, other: LaneValue | float) -> LaneValue:
        return self._real("add", other)

    def __radd__(self, other: float) -> LaneValue:
        return self._real("add", other)

    def __sub__(self, other: LaneValue | float) -> LaneValue:
        return self._real("sub", other)

    def __rsub__(self, other: float) -> LaneValue:
        return self._real("sub", other, swap=True)

    def __mul__(self, other: LaneValue | float) -> LaneValue:
        return self._real("mul", other)

    def __rmul__(self, other: float) -> LaneValue:
        return self._real("mul", other)

    def __truediv__(self, other: LaneValue | float) -> LaneValue:
        return self._real("div", other)

    def __neg__(self) -> LaneValue:
        return self._new(f"fneg {self.type} {self.name}", "real")

    def __abs__(self) -> LaneValue:
        name = self.function.call(self.type, f"llvm.fabs.{self.shape.mangled}", [(self.type, self.name)])
        return LaneValue(self.function, self.shape, name)

    def __and__(self, other: LaneValue | int) -> LaneValue:
        return self._new(f"and {self.type} {self.name}, {self.lift(other)}", self.kind)

    def __or__(self, other: LaneValue | int) -> LaneValue:
        return self._new(f"or {self.type} {self.name}, {self.lift(other)}", self.kind)

    def __xor__(self, other: LaneValue | int) -> LaneValue:
        return self._new(f"xor {self.type} {self.name}, {self.lift(other)}", self.kind)

    def __lshift__(self, count: int) -> LaneValue:
        return self._new(f"shl {self.type} {self.name}, {self.lift(count)}", self.kind)

    def __rshift__(self, count: int) -> LaneValue:
        return self._new(f"ashr {self.type} {self.name}, {self.lift(count)}", self.kind)

    def compare(self, relation: str, other: LaneValue | float) -> LaneValue:
        """``relation`` is LLVM's: ``olt`` ordered less, ``uno`` either is NaN, ``slt`` for integers."""
        op = "fcmp" if self.kind == "real" else "icmp"
        return self._new(f"{op} {relation} {self.type} {self.name}, {self.lift(other)}", "truth")

    def choose(self, yes: LaneValue, no: LaneValue | float) -> LaneValue:
        """``yes`` where this truth value holds, else ``no``."""
        kind = yes.type
        picked = f"select {self.shape.truth} {self.name}, {kind} {yes.name}, {kind} {yes.lift(no)}"
        return yes._new(picked, yes.kind)

    def as_integer(self) -> LaneValue:
        """Bits of the value, read as an integer."""
        return self._new(f"bitcast {self.shape.real} {self.name} to {self.shape.integer}", "integer")

    def as_real(self) -> LaneValue:
        """Bits of the value, read as a real number."""
        return self._new(f"bitcast {self.shape.integer} {self.name} to {self.shape.real}", "real")

    def convert(self) -> LaneValue:
        """An integer's value as a real number."""
        return self._new(f"sitofp {self.shape.integer} {self.name} to {self.shape.real}", "real")

    def any(self) -> str:
        """Whether any lane of a truth value holds, as one ``i1``."""
        if self.shape.lanes == 1:
            return self.name
        return self.function.call("i1", f"llvm.vector.reduce.or.v{self.shape.lanes}i1", [(self.type, self.name)])
