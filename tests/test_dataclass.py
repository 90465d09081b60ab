"""Dataclasses that are written late are those of Python."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import re
from pathlib import Path
from typing import Any, ClassVar

import pytest

from linkwise import dataclass as late


def _classes(decorate: Any, **options: Any) -> tuple[type, type]:
    @decorate(**options)
    class Base:
        """A base."""

        a: int
        b: list[int] = dataclasses.field(default_factory=list, compare=False)
        shared: ClassVar[int] = 3

        def __post_init__(self) -> None:
            object.__setattr__(self, "a", self.a + 1)

    @decorate(**options)
    class Derived(Base):
        """A derived one."""

        c: str = dataclasses.field(default="c", kw_only=True)
        d: float = dataclasses.field(default=2.0, repr=False)

    return Base, Derived


OPTIONS = [
    {},
    {"eq": False},
    {"frozen": True},
    {"frozen": True, "eq": False},
    {"slots": True},
    {"frozen": True, "slots": True},
]


def _outcome(action: Any) -> Any:
    try:
        return action()
    except (TypeError, AttributeError) as error:
        return type(error)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_as_pythons(options: dict[str, bool]) -> None:
    ours, theirs = (_classes(decorate, **options)[1] for decorate in (late.dataclass, dataclasses.dataclass))
    assert inspect.signature(ours) == inspect.signature(theirs)
    assert [f.name for f in dataclasses.fields(ours)] == [f.name for f in dataclasses.fields(theirs)]
    assert ours.__match_args__ == theirs.__match_args__  # type: ignore[attr-defined]
    assert hasattr(ours(1), "__dict__") == hasattr(theirs(1), "__dict__")

    def same(action: Any) -> None:
        assert _outcome(lambda: action(ours)) == _outcome(lambda: action(theirs))

    same(lambda kind: kind())
    same(lambda kind: repr(kind(1, [2], 3.0, c="x")).replace("_classes.<locals>.", ""))
    same(lambda kind: (kind(1).b, kind(1).d, kind(1).a))
    same(lambda kind: (kind(1) == kind(1), kind(1) == kind(1, [4]), kind(1) == kind(2), kind(1) == 1))
    same(lambda kind: hash(kind(1)) == hash(kind(1, [4])))
    same(lambda kind: setattr(kind(1), "a", 2))
    if not options.get("slots"):  # there Python 3.11 fails with a TypeError of its own
        same(lambda kind: setattr(kind(1), "other", 2))
    same(lambda kind: delattr(kind(1), "a"))
    same(lambda kind: dataclasses.asdict(dataclasses.replace(kind(1), d=4.0)))
    same(lambda kind: kind.__init__.__qualname__)
    same(lambda kind: kind.__init__.__annotations__)


@late.dataclass(frozen=True, slots=True)
class Point:
    """A point."""

    x: float
    y: float = 0.0


def test_frozen_slots_are_pickled_and_copied() -> None:
    point = Point(1.0, 2.0)
    assert pickle.loads(pickle.dumps(point)) == copy.deepcopy(point) == copy.copy(point) == point


def test_own_methods_stay() -> None:
    @late.dataclass(frozen=True)
    class Own:
        """Own methods."""

        x: int

        def __init__(self, x: str) -> None:
            object.__setattr__(self, "x", int(x))

        def __repr__(self) -> str:
            return "own"

        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 7

    assert Own("12").x == 12
    assert repr(Own("1")) == "own"
    assert Own("1") == Own("2")
    assert hash(Own("3")) == 7


def test_others_may_derive_with_pythons() -> None:
    @dataclasses.dataclass(frozen=True)
    class Further(Point):
        z: float = 1.0

    assert Further(1.0, z=3.0) == Further(1.0, 0.0, 3.0)
    with pytest.raises(dataclasses.FrozenInstanceError):
        Further(1.0).x = 2.0  # type: ignore[misc]
    with pytest.raises(TypeError, match="frozen"):

        @dataclasses.dataclass
        class Thawed(Point):  # type: ignore[misc]
            w: float = 0.0


def test_methods_are_written_when_first_asked_for() -> None:
    @late.dataclass
    class Fresh:
        """A class nobody has used."""

        x: int

    assert not inspect.isfunction(vars(Fresh)["__init__"])
    Fresh(1)
    assert inspect.isfunction(vars(Fresh)["__init__"])
    assert not inspect.isfunction(vars(Fresh)["__repr__"])


def test_all_of_the_package_uses_them() -> None:
    package = Path(late.__file__).parent
    eager = re.compile(r"from dataclasses import .*\bdataclass\b")
    found = [path for path in package.rglob("*.py") if eager.search(path.read_text(encoding="utf-8"))]
    assert found == [Path(late.__file__)]  # for type checkers
