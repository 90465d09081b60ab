"""Expressions of a file to their values, without Python's own evaluation.

A file may come from anyone, and no filter on ``eval`` is safe. So an expression is read into Python's syntax tree,
which runs nothing, and the tree is walked here: numbers, strings, lists, tuples and dicts, arithmetic, comparisons,
``and``, ``or``, ``not``, ``a if b else c``, indices, names, and calls of the functions in the tables of
:mod:`linkwise.files.xacro_functions`. Everything else is refused by name. A value is plain data, never an object with
attributes: ``a.b`` is a member of a namespace or an entry of a dict, ``a.b(...)`` a function of a table.

Cost is bounded too: steps are counted (:class:`Allowance`), and texts, lists and whole numbers have a largest size,
which is checked before what would exceed it is computed.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from functools import lru_cache

from linkwise.dataclass import dataclass
from linkwise.errors import ModelFileError
from linkwise.files.xacro_functions import (
    GRAMMAR,
    LONGEST_TEXT,
    MAP,
    METHODS,
    MOST_ITEMS,
    FileCall,
    Names,
    Value,
    bounded,
    checked_text,
    plain,
    power,
    refuse,
    shortened,
    too_large,
)

_LONGEST = 4_000
"""Characters of an expression. Those of robots have at most a few hundred."""
_DEEPEST = 100
_BRACKETS = 40


@dataclass
class Allowance:
    """Steps that are left for all expressions of a file together."""

    left: int = 3_000_000

    def spend(self, steps: int = 1) -> None:
        """Count some steps, and refuse to go on where none are left."""
        self.left -= steps
        if self.left < 0:
            raise ModelFileError(
                "the file takes too many steps to expand",
                allowed="some million steps",
                do="expand it with the program xacro, if you trust it: xacro a.urdf.xacro > a.urdf",
            )

    def weigh(self, value: object) -> int:
        """Count the items of a value, with all in them; lists within lists cannot grow beyond measure."""
        weight, stack = 0, [value]
        while stack:
            each = stack.pop()
            weight += 1
            if isinstance(each, str):
                weight += len(each) // 4
            elif isinstance(each, (list, tuple)):
                stack.extend(each)
            elif isinstance(each, dict):
                stack.extend(each)
                stack.extend(each.values())
            if weight + len(stack) > MOST_ITEMS:
                too_large("a list or text is too large", f"more than {MOST_ITEMS} items", f"{MOST_ITEMS} items")
        self.spend(weight)
        return weight


def evaluate(text: str, names: Names, allowance: Allowance) -> Value:
    """The value of an expression.

    Raises:
        ModelFileError: it is no expression, uses something that is refused, or costs too much. The error has no place;
            the caller knows it.
    """
    allowance.spend(len(text) // 2)
    try:
        return _Evaluation(names, allowance).value(_parsed(text.strip()))
    except ModelFileError as error:
        if error.got is None and error.file is None:
            raise ModelFileError(
                error.what, got=repr(shortened(text)), allowed=error.allowed or GRAMMAR, do=error.do
            ) from None
        raise


def shown_value(value: Value, allowance: Allowance) -> str:
    """The text of a value, as it stands in the expanded file."""
    allowance.weigh(value)
    return checked_text(str(value))


@lru_cache(1024)
def _parsed(text: str) -> ast.expr:
    if len(text) > _LONGEST or _nesting(text) > _BRACKETS:
        raise ModelFileError("the expression is too long or too deep", allowed=f"{_LONGEST} characters")
    try:
        tree = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ModelFileError("this is not an expression", do="check its brackets and quotes") from None
    level: list[ast.AST] = [tree]
    for _ in range(_DEEPEST):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        if not level:
            return tree
    raise ModelFileError("the expression is too long or too deep", allowed=f"{_DEEPEST} levels")


def _nesting(text: str) -> int:
    """The largest number of brackets that are open, before Python's parser meets them."""
    depth = deepest = 0
    for char in text:
        if char in "([{":
            depth += 1
            deepest = max(deepest, depth)
        elif char in ")]}":
            depth -= 1
    return deepest


class _Evaluation:
    """A walk over the tree of one expression."""

    def __init__(self, names: Names, allowance: Allowance) -> None:
        self.names, self.allowance = names, allowance

    def value(self, node: ast.expr) -> Value:
        """The data that a node stands for."""
        self.allowance.spend()
        match node:
            case ast.Constant(value=None | bool() | int() | float() | str() as constant):
                return self.checked(constant)
            case ast.Name() | ast.Attribute():
                found = self.found(node)
                if isinstance(found, (FileCall, Names)):
                    raise ModelFileError(f"{ast.unparse(node)!r} is a function or a namespace, not a value")
                return plain(found)
            case ast.List(elts=items):
                return self.checked([self.value(item) for item in items])
            case ast.Tuple(elts=items):
                return self.checked(tuple(self.value(item) for item in items))
            case ast.Dict(keys=keys, values=values):
                return self.checked({self.key(key): self.value(item) for key, item in zip(keys, values, strict=True)})
            case ast.BinOp(left=left, op=op, right=right):
                return self.arithmetic(op, self.value(left), self.value(right))
            case ast.UnaryOp(op=sign, operand=operand):
                return self.called(_UNARY[type(sign)], self.value(operand))
            case ast.BoolOp(op=joint, values=parts):
                for part in parts[:-1]:
                    first = self.value(part)
                    if bool(first) is isinstance(joint, ast.Or):
                        return first
                return self.value(parts[-1])
            case ast.Compare(left=left, ops=comparisons, comparators=others):
                return self.compared(self.value(left), comparisons, others)
            case ast.IfExp(test=test, body=body, orelse=other):
                return self.value(body if self.value(test) else other)
            case ast.Subscript(value=whole, slice=ast.Slice(lower=lower, upper=upper, step=step)):
                ends = [None if end is None else self.value(end) for end in (lower, upper, step)]
                return self.called(operator.getitem, self.value(whole), slice(*ends))
            case ast.Subscript(value=whole, slice=index):
                return self.called(operator.getitem, self.value(whole), self.value(index), weighed=False)
            case ast.Call(func=function, args=arguments, keywords=keywords):
                return self.call(function, arguments, keywords)
        return refuse(_CALLED.get(type(node)) or type(node).__name__)

    def found(self, node: ast.expr) -> object:
        """A value, function or namespace, by its name."""
        if isinstance(node, ast.Name):
            try:
                return self.names.find(node.id)
            except KeyError:
                raise ModelFileError(
                    f"an expression uses the name {node.id!r}, which has no meaning here",
                    do=f'define it before: <xacro:property name="{node.id}" value="..."/>',
                ) from None
        if not isinstance(node, ast.Attribute):
            return self.value(node)
        if node.attr.startswith("_"):
            refuse(f"the attribute {node.attr!r}")
        whole = self.found(node.value)
        try:
            if isinstance(whole, Names):
                return whole.find(node.attr)
            if isinstance(whole, dict):
                return whole[node.attr]
        except KeyError:
            raise ModelFileError(f"{ast.unparse(node.value)!r} has no entry {node.attr!r}") from None
        return refuse(f"the attribute {node.attr!r}")

    def key(self, node: ast.expr | None) -> Value:
        if node is None:
            return refuse("** in a dict")
        key = self.value(node)
        return refuse("a key that is a list or a dict") if isinstance(key, (list, dict)) else key

    def call(self, function: ast.expr, arguments: list[ast.expr], keywords: list[ast.keyword]) -> Value:
        """The result of one of our functions, or of a method of plain data."""
        whole = self.found(function.value) if isinstance(function, ast.Attribute) else self.names
        if not isinstance(whole, (Names, FileCall)):
            assert isinstance(function, ast.Attribute)  # or it were the names
            method = METHODS.get((type(whole), function.attr))
            if method is None:
                refuse(f"the method {function.attr!r}")
            known, first = method, [plain(whole)]
        else:
            found = self.found(function) if isinstance(function, (ast.Name, ast.Attribute)) else None
            if not isinstance(found, FileCall):
                refuse(f"the call of {shortened(ast.unparse(function))!r}")
            known, first = found, []
        if keywords and not (known.named and all(each.arg for each in keywords)):
            refuse("an argument by name")
        if known is MAP:
            return self.mapped(arguments)
        given = [*first, *(self.value(each) for each in arguments)]
        return self.called(known.call, *given, named={str(each.arg): self.value(each.value) for each in keywords})

    def mapped(self, arguments: list[ast.expr]) -> Value:
        function = self.found(arguments[0]) if arguments else None
        if not isinstance(function, FileCall) or function is MAP:
            refuse("map of anything but a function of the tables")
        lists = [self.called(list, self.value(each)) for each in arguments[1:]]
        return self.checked([self.called(function.call, *items) for items in zip(*lists, strict=False)])

    def arithmetic(self, op: ast.operator, left: Value, right: Value) -> Value:
        if isinstance(op, ast.Mod) and isinstance(left, str):
            refuse("the formatting of a text with %")
        if isinstance(op, ast.Mult):
            for many, times in ((left, right), (right, left)):
                if isinstance(many, (str, list, tuple)) and isinstance(times, int):
                    self.repeated(many, times)
        function = _ARITHMETIC.get(type(op))
        return refuse(f"the operator {type(op).__name__}") if function is None else self.called(function, left, right)

    def repeated(self, many: str | list[Value] | tuple[Value, ...], times: int) -> None:
        most = LONGEST_TEXT if isinstance(many, str) else MOST_ITEMS
        if times > 0 and times * max(self.allowance.weigh(many), len(many)) > most:
            too_large("a list or text is too large", f"{len(many)} items, {times} times", f"{most} items")

    def compared(self, left: Value, comparisons: list[ast.cmpop], others: list[ast.expr]) -> Value:
        for op, node in zip(comparisons, others, strict=True):
            right = self.value(node)
            if not self.called(_COMPARISONS[type(op)], left, right):
                return False
            left = right
        return True

    def called(
        self,
        function: Callable[..., object],
        *arguments: object,
        named: Mapping[str, Value] | None = None,
        weighed: bool = True,
    ) -> Value:
        """The result of a function of a table, its arguments weighed and its complaints in our words."""
        for argument in arguments if weighed else ():
            if isinstance(argument, (str, list, tuple, dict)):
                self.allowance.weigh(argument)
        try:
            result = function(*arguments, **(named or {}))
        except (TypeError, ValueError, ArithmeticError, LookupError) as error:
            said = f"there is no entry {error}" if isinstance(error, KeyError) else str(error)
            raise ModelFileError(f"the expression has no value: {shortened(said)}") from None
        return self.checked(result) if weighed else plain(result)

    def checked(self, value: object) -> Value:
        """A new value, if it is plain data and of a sensible size."""
        bounded(value)
        if isinstance(value, str):
            checked_text(value)
        elif isinstance(value, (list, tuple, dict)):
            self.allowance.weigh(value)
        return plain(value)


_ARITHMETIC: dict[type[ast.operator], Callable[..., object]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: power,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
}
_UNARY: dict[type[ast.unaryop], Callable[..., object]] = {
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
    ast.Not: operator.not_,
    ast.Invert: operator.invert,
}
_COMPARISONS: dict[type[ast.cmpop], Callable[..., object]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda item, whole: item in whole,
    ast.NotIn: lambda item, whole: item not in whole,
}
_CALLED: dict[type[ast.expr], str] = {
    ast.Lambda: "a lambda",
    ast.ListComp: "a comprehension",
    ast.SetComp: "a comprehension",
    ast.DictComp: "a comprehension",
    ast.GeneratorExp: "a comprehension",
    ast.NamedExpr: "an assignment (:=)",
    ast.JoinedStr: "an f-string",
    ast.Set: "a set",
    ast.Starred: "a starred argument",
    ast.Constant: "a constant that is no number and no text",
    ast.Await: "await",
    ast.Yield: "yield",
    ast.YieldFrom: "yield",
}
