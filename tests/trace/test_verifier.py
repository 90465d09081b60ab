"""The verifier finds what is wrong with a program, and says where."""

from __future__ import annotations

import math
from typing import Any

import pytest

from linkwise.trace.block import OPS, ArraySpec, Block
from linkwise.trace.verifier import verify

X = ("input", 0, 0)


def program(nodes: list[Any], results: Any = ((0,),)) -> Block:
    return Block("f", tuple(nodes), (ArraySpec("x", (2,)),), (ArraySpec("y", ()),), results)


def test_good_programs_pass() -> None:
    verify(program([X]))
    verify(program([X, ("const", 1.0), ("lt", 0, 1), ("select", 2, 0, 1)], ((3,),)))
    verify(Block("nothing", (), (), (), ()))


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ([("const", math.nan)], "a constant is a float, not NaN"),
        ([("const", 1)], "a constant is a float, not NaN"),
        ([("input", 1, 0)], "reads outside the inputs"),
        ([("input", 0, 2)], "reads outside the inputs"),
        ([("input", 0, -1)], "reads outside the inputs"),
        ([X, ("add", 0)], "takes 2 arguments"),
        ([X, ("add", 0, 1)], "uses a value that is not computed yet"),
        ([X, ("add", 0, 2)], "uses a value that is not computed yet"),
        ([X, ("add", 0, -1)], "uses a value that is not computed yet"),
        ([X, ("lt", 0, 0), ("add", 0, 1)], "takes kinds RR"),
        ([X, ("select", 0, 0, 0)], "takes kinds BRR"),
        ([X, ("sinh", 0)], "no such operation; there are add, sub, mul"),
    ],
)
def test_bad_nodes(nodes: list[Any], message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        verify(program(nodes))
    assert f"node %{len(nodes) - 1}" in str(caught.value)
    assert "of f" in str(caught.value)


def test_bad_results() -> None:
    with pytest.raises(ValueError, match=r"output y of f has 2 values, shape \(\)"):
        verify(program([X], ((0, 0),)))
    with pytest.raises(ValueError, match="output y of f holds a truth value"):
        verify(program([X, ("lt", 0, 0)], ((1,),)))


@pytest.mark.parametrize("name", sorted(OPS))
def test_operations_say_what_they_take(name: str) -> None:
    op = OPS[name]
    arguments = [2.0 if kind == "R" else True for kind in op.arguments]
    result = op.define(*arguments)
    assert isinstance(result, bool if op.result == "B" else float)
    assert op.arity == len(op.arguments)
    if op.commutes:
        assert op.arity == 2
        a, b = (3.0, 5.0) if op.arguments == "RR" else (True, False)
        assert op.define(a, b) == op.define(b, a)
