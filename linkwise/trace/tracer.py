"""Traced scalars: run ordinary Python on them and a program falls out.

Constants stay Python floats and are folded by Python itself, so a structural zero (a lever arm that
is zero, an axis that is a coordinate axis) never becomes a node. What does become a node is
hash-consed: the same operation on the same arguments is the same value. Only rewrites that are exact
in floating point are made (x·0 and x−x are taken as zero: a NaN or an infinity does not survive them).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from linkwise.array_types import NumPyScalar, is_several, of_each
from linkwise.errors import InputError
from linkwise.trace.block import OPS, ArraySpec, Block, Node
from linkwise.trace.passes import remove_dead

Number = Any  # float or Traced
Truth = Any  # bool or Traced: what a comparison says


class Tracer:
    """Collects the nodes of one program while Python runs on its traced scalars.

    Args:
        holds: whether ``hold`` becomes an operation, for what is differentiated; in what only runs it is nothing.
        waypoints: whether ``waypoint`` does, for Jacobians.
    """

    def __init__(self, holds: bool = False, waypoints: bool = False) -> None:
        self.holds, self.waypoints, self.was_held = holds, waypoints, False
        self.side_by_side = False
        """Whether columns of derivatives are carried through the text: :func:`~linkwise.trace.passes.remove_dead`."""
        self.nodes: list[Node] = []
        self.inputs: list[ArraySpec] = []
        self._known: dict[Node, int] = {}

    def input(self, name: str, shape: tuple[int, ...]) -> list[Traced]:
        """Declare an input array; its elements, flat, as traced scalars."""
        spec = ArraySpec(name, shape)
        array = len(self.inputs)
        self.inputs.append(spec)
        return [Traced(self, self.node(("input", array, i))) for i in range(spec.size)]

    def node(self, node: Node) -> int:
        """The number of this node, new or known."""
        number = self._known.get(node)
        if number is None:
            number = self._known[node] = len(self.nodes)
            self.nodes.append(node)
        return number

    def number(self, value: Number) -> int:
        """The number of a value: its own if traced, that of a constant otherwise."""
        if isinstance(value, Traced):
            if value.tracer is not self:
                raise InputError(
                    "a traced scalar of one program was used in another",
                    got=repr(value),
                    do="pass it as an argument, and keep no values between calls",
                )
            return value.number
        return self.node(("const", float(value) + 0.0))  # + 0.0 turns -0.0 into 0.0: the two hash alike

    def finish(self, name: str, outputs: Sequence[tuple[str, tuple[int, ...], Iterable[Number]]]) -> Block:
        """The program that computes ``outputs``: (name, shape, flat values) each."""
        specs, results = [], []
        for output_name, shape, values in outputs:
            specs.append(ArraySpec(output_name, shape))
            results.append(tuple(self.number(value) for value in values))
        whole = Block(name, tuple(self.nodes), tuple(self.inputs), tuple(specs), tuple(results))
        return remove_dead(whole, self.side_by_side)


class _OfTrace(NumPyScalar):
    """A node of a trace, which has no value yet."""

    __slots__ = ("number", "tracer")

    def __init__(self, tracer: Tracer, number: int) -> None:
        self.tracer = tracer
        self.number = number

    def __bool__(self) -> bool:
        raise TypeError(_NO_VALUE)


class Traced(_OfTrace):
    """A real number that a program will compute. Behaves like a float, except that it has no value yet."""

    __slots__ = ()

    @staticmethod
    def lift(x: Number, like: Traced) -> Traced:
        """``x`` as a value of the same program."""
        return Traced(like.tracer, like.tracer.number(x))

    # Arithmetic: the exact rewrites, then a node. Two values of one trace are the case that counts.
    def __add__(self, other: Number) -> Number:
        if isinstance(other, Traced):
            tracer, i, j = self.tracer, self.number, other.number
            if other.tracer is not tracer:
                tracer.number(other)  # which refuses
            nodes = tracer.nodes
            if nodes[j][0] == "neg":
                return Traced(tracer, tracer.node(("sub", i, nodes[j][1])))
            if nodes[i][0] == "neg":
                return Traced(tracer, tracer.node(("sub", j, nodes[i][1])))
            return Traced(tracer, tracer.node(("add", i, j) if i <= j else ("add", j, i)))
        if _is_foreign(other):
            return of_each(lambda x: self + x, other)
        if other == 0.0:
            return self
        return _emit(self.tracer, "add", self.number, self.tracer.number(other))

    __radd__ = __add__

    def __sub__(self, other: Number) -> Number:
        if isinstance(other, Traced):
            tracer, i, j = self.tracer, self.number, other.number
            if other.tracer is not tracer:
                tracer.number(other)  # which refuses
            if i == j:
                return 0.0
            nodes = tracer.nodes
            if nodes[j][0] == "neg":
                return self + Traced(tracer, nodes[j][1])
            if nodes[i][0] == "neg":
                return -(Traced(tracer, nodes[i][1]) + other)
            return Traced(tracer, tracer.node(("sub", i, j)))
        if _is_foreign(other):
            return of_each(lambda x: self - x, other)
        if other == 0.0:
            return self
        return _emit(self.tracer, "sub", self.number, self.tracer.number(other))

    def __rsub__(self, other: Number) -> Number:
        if _is_foreign(other):
            return of_each(lambda x: x - self, other)
        if other == 0.0:
            return -self
        node = self.tracer.nodes[self.number]
        if node[0] == "neg":
            return Traced(self.tracer, node[1]) + other
        return _emit(self.tracer, "sub", self.tracer.number(other), self.number)

    def __mul__(self, other: Number) -> Number:
        tracer, i = self.tracer, self.number
        nodes = tracer.nodes
        if isinstance(other, Traced):
            j = other.number
            if other.tracer is not tracer:
                tracer.number(other)  # which refuses
            if nodes[j][0] == "neg":
                return -(self * Traced(tracer, nodes[j][1]))
            if nodes[i][0] == "neg":
                return -(Traced(tracer, nodes[i][1]) * other)
            return Traced(tracer, tracer.node(("mul", i, j) if i <= j else ("mul", j, i)))
        if _is_foreign(other):
            return of_each(lambda x: self * x, other)
        if other == 0.0:
            return 0.0
        if other == 1.0:
            return self
        if other < 0.0:
            return -(self * -other)
        if nodes[i][0] == "neg":
            return -(Traced(tracer, nodes[i][1]) * other)
        return _emit(self.tracer, "mul", self.number, self.tracer.number(other))

    __rmul__ = __mul__

    def __truediv__(self, other: Number) -> Number:
        if _is_foreign(other):
            return of_each(lambda x: self / x, other)
        a = self.tracer.nodes[self.number]
        if a[0] == "neg":
            return -(Traced(self.tracer, a[1]) / other)
        if isinstance(other, Traced):
            if other.number == self.number:
                return 1.0
            b = self.tracer.nodes[other.number]
            if b[0] == "neg":
                return -(self / Traced(self.tracer, b[1]))
        elif other == 1.0:
            return self
        elif other == -1.0:
            return -self
        return _emit(self.tracer, "div", self.number, self.tracer.number(other))

    def __rtruediv__(self, other: Number) -> Number:
        if _is_foreign(other):
            return of_each(lambda x: x / self, other)
        if other == 0.0:
            return 0.0
        node = self.tracer.nodes[self.number]
        if node[0] == "neg":
            return -(other / Traced(self.tracer, node[1]))
        return _emit(self.tracer, "div", self.tracer.number(other), self.number)

    def __neg__(self) -> Number:
        node = self.tracer.nodes[self.number]
        if node[0] == "neg":
            return Traced(self.tracer, node[1])
        if node[0] == "sub":
            return _emit(self.tracer, "sub", node[2], node[1])
        return _emit(self.tracer, "neg", self.number)

    def __pos__(self) -> Traced:
        return self

    def __abs__(self) -> Number:
        return _emit(self.tracer, "abs", self.number)

    def __pow__(self, exponent: Number) -> Number:
        if isinstance(exponent, (int, float)):
            if exponent == 0.5:
                return self.sqrt()
            if float(exponent).is_integer():
                return _power(self, int(exponent))
        elif _is_foreign(exponent):
            return of_each(lambda x: self**x, exponent)
        # The derivative is that of a power, also at 0: `rules.slopes` knows this form.
        power = (self.log() * exponent).exp()
        if isinstance(exponent, Traced):
            return ((self == 0.0) & (exponent == 0.0)).where(1.0, power)  # else exp(-∞ · 0)
        return power

    def __rpow__(self, base: Number) -> Number:
        if _is_foreign(base):
            return of_each(lambda x: x**self, base)
        if base == 0.0:
            return (self < 0.0).where(math.inf, (self > 0.0).where(0.0, 1.0))
        return 1.0 if base == 1.0 else (self * math.log(base)).exp()

    # Functions, under the names NumPy looks for in object arrays.
    def sqrt(self) -> Number:
        return _emit(self.tracer, "sqrt", self.number)

    def sin(self) -> Number:
        node = self.tracer.nodes[self.number]
        if node[0] == "neg":
            return -_emit(self.tracer, "sin", node[1])
        return _emit(self.tracer, "sin", self.number)

    def cos(self) -> Number:
        node = self.tracer.nodes[self.number]
        return _emit(self.tracer, "cos", node[1] if node[0] == "neg" else self.number)

    def tan(self) -> Number:
        return self.sin() / self.cos()

    def exp(self) -> Number:
        return _emit(self.tracer, "exp", self.number)

    def log(self) -> Number:
        return _emit(self.tracer, "log", self.number)

    def tanh(self) -> Number:
        # Through exp(-2|x|), which cannot overflow, here or in a derivative; near zero, where it is inexact, a series.
        s = self * self
        series = self * (1.0 - s * (1 / 3 - s * (2 / 15 - s * (17 / 315 - s * (62 / 2835 - s * (1382 / 155925))))))
        falling = (abs(self) * -2.0).exp()
        size = (1.0 - falling) / (1.0 + falling)
        return (s < 0.00390625).where(series, (self < 0.0).where(-size, size))

    def sinh(self) -> Number:
        # Near zero, where the difference of exponentials is inexact, a series.
        s = self * self
        higher = 1 / 5040 + s * (1 / 362880 + s * (1 / 39916800 + s * (1 / 6227020800)))
        series = self * (1.0 + s * (1 / 6 + s * (1 / 120 + s * higher)))
        return (s < 0.25).where(series, 0.5 * (self.exp() - (-self).exp()))

    def cosh(self) -> Number:
        return 0.5 * (self.exp() + (-self).exp())

    def arcsin(self) -> Number:
        return self.arctan2(((1.0 - self) * (1.0 + self)).sqrt())

    def arccos(self) -> Number:
        return ((1.0 - self) * (1.0 + self)).sqrt().arctan2(self)

    def arctan(self) -> Number:
        return self.arctan2(1.0)

    def arctan2(self, x: Number) -> Number:
        return _emit(self.tracer, "atan2", self.number, self.tracer.number(x))

    def hold(self) -> Traced:
        self.tracer.was_held = True
        return _emit(self.tracer, "hold", self.number) if self.tracer.holds else self

    @property
    def has_waypoints(self) -> bool:
        """Whether Jacobians are multiplied together at waypoints."""
        return self.tracer.waypoints

    def conjugate(self) -> Traced:
        return self

    # Comparisons give a truth value that only ``where`` can use.
    def __lt__(self, other: Number) -> Truth:
        return _compare(self.tracer, "lt", self, other)

    def __le__(self, other: Number) -> Truth:
        return _compare(self.tracer, "le", self, other)

    def __gt__(self, other: Number) -> Truth:
        return _compare(self.tracer, "lt", other, self)

    def __ge__(self, other: Number) -> Truth:
        return _compare(self.tracer, "le", other, self)

    def __eq__(self, other: object) -> Truth:  # a truth value of the program, as in NumPy
        return _compare(self.tracer, "eq", self, other)

    def __ne__(self, other: object) -> Truth:
        equal = _compare(self.tracer, "eq", self, other)
        return equal if equal is NotImplemented else ~equal

    def __hash__(self) -> int:
        return hash((id(self.tracer), self.number))

    def __float__(self) -> float:
        raise TypeError(_NO_VALUE)

    def __repr__(self) -> str:
        return f"<traced %{self.number} = {self.tracer.nodes[self.number]}>"


class TracedBool(_OfTrace):
    """A truth value that a program will compute; combine with ``& | ~`` and use in ``where``.

    In sums and products it is 1 or 0, as in NumPy: ``1.0 * (height > 0.2)``, ``sum(gap < 0.01 for gap in gaps)``.
    """

    __slots__ = ()

    def __and__(self, other: TracedBool | bool) -> TracedBool | bool:
        if isinstance(other, TracedBool):
            return TracedBool(self.tracer, self.tracer.node(("and", *sorted((self.number, other.number)))))
        return of_each(lambda x: self & x, other) if is_several(other) else self if other else False

    def __or__(self, other: TracedBool | bool) -> TracedBool | bool:
        if isinstance(other, TracedBool):
            return TracedBool(self.tracer, self.tracer.node(("or", *sorted((self.number, other.number)))))
        return of_each(lambda x: self | x, other) if is_several(other) else True if other else self

    __rand__ = __and__
    __ror__ = __or__

    def _number(self) -> Number:
        return self.where(1.0, 0.0)

    def __add__(self, other: Number | TracedBool) -> Number:
        return self._number() + other

    def __sub__(self, other: Number | TracedBool) -> Number:
        return self._number() - other

    def __rsub__(self, other: Number) -> Number:
        return other - self._number()

    def __mul__(self, other: Number | TracedBool) -> Number:
        return self._number() * other

    __radd__ = __add__
    __rmul__ = __mul__

    def __invert__(self) -> TracedBool:
        return TracedBool(self.tracer, self.tracer.node(("not", self.number)))

    def where(self, a: Number, b: Number) -> Number:
        """``a`` where true, ``b`` where false; of two numbers that were compared, one operation instead of two."""
        if isinstance(a, Traced) and isinstance(b, Traced) and a.number == b.number:
            return a
        t = self.tracer
        chosen = t.number(a), t.number(b)
        condition = t.nodes[self.number]
        if condition == ("lt", *chosen):
            return Traced(t, t.node(("min", *chosen)))
        if condition == ("lt", *chosen[::-1]):
            return Traced(t, t.node(("max", *chosen)))
        return Traced(t, t.node(("select", self.number, *chosen)))


_NO_VALUE = (
    "a traced scalar has no value while a program is being made: use lw.math.where(condition, a, b) instead of `if`, "
    "lists or np.zeros(n, object) for results, and keep float(), math.* and loops that depend on values out of "
    "compiled functions"
)


def minimum(a: Number, b: Number) -> Number:
    """The smaller of two numbers, traced or not."""
    return _extremum("min", a, b)


def maximum(a: Number, b: Number) -> Number:
    """The larger of two numbers, traced or not."""
    return _extremum("max", a, b)


def _extremum(op: str, a: Number, b: Number) -> Number:
    for value in (a, b):
        if isinstance(value, Traced):
            return _emit(value.tracer, op, value.tracer.number(a), value.tracer.number(b))
    return OPS[op].define(a, b)


def _emit(tracer: Tracer, op: str, *arguments: int) -> Traced:
    if len(arguments) == 2 and arguments[0] > arguments[1] and OPS[op].commutes:
        arguments = (arguments[1], arguments[0])
    return Traced(tracer, tracer.node((op, *arguments)))


def _compare(tracer: Tracer, op: str, a: Number, b: Number) -> Truth:
    for x, compare in ((a, lambda x: _compare(tracer, op, x, b)), (b, lambda x: _compare(tracer, op, a, x))):
        if not isinstance(x, Traced) and _is_foreign(x):
            return of_each(compare, x)
    return TracedBool(tracer, tracer.node((op, tracer.number(a), tracer.number(b))))


def _is_foreign(value: object) -> bool:
    """Whether a value is no number to us: an array, a dual of traced scalars. Its own operators must lead."""
    if value.__class__ is float:
        return False
    return getattr(value, "ndim", 0) > 0 or not hasattr(value, "__float__")


def _power(base: Number, exponent: int) -> Number:
    if exponent < 0:
        return _power(1.0 / base, -exponent)  # so that derivatives at 0 are infinite, and not 0 · ∞
    result: Number = 1.0
    while exponent:
        if exponent & 1:
            result = result * base
        base = base * base
        exponent >>= 1
    return result


def trace(
    name: str,
    function: Callable[..., Sequence[tuple[str, tuple[int, ...], Iterable[Number]]]],
    inputs: Sequence[tuple[str, tuple[int, ...]]],
) -> Block:
    """Run ``function`` once on traced inputs (flat lists) and return the program it describes."""
    tracer = Tracer()
    arguments = [tracer.input(input_name, shape) for input_name, shape in inputs]
    return tracer.finish(name, function(*arguments))
