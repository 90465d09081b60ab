"""Dataclasses whose methods are written when they are first asked for, and values that are equal as these are.

Python's own :func:`dataclasses.dataclass` compiles up to six methods as a class is made, a quarter of a millisecond for
each of the hundreds of classes here, of which a program uses some. This one takes its options and gives the same class;
``__init__``, ``__repr__``, ``__eq__`` and ``__hash__`` are written, by Python's, at their first use.

:class:`Alike` is for values with an ``__init__`` of their own: parts of elements, by which compiled code is found
again.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import MISSING, Field, asdict, field, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

__all__ = [
    "MISSING", "Converted", "Field", "asdict", "dataclass", "default", "field", "fields", "is_dataclass", "replace"
]  # fmt: skip

Kept = TypeVar("Kept", covariant=True)
Given = TypeVar("Given", contravariant=True)


class Converted(Generic[Kept, Given]):
    """Annotation of a field that takes more than it keeps: ``Converted[Pose, ArrayLike]`` is a pose of tuples.

    ``__post_init__`` converts what is given. Type checkers read both types off two methods that exist for them alone,
    mypy only where the field has a :func:`default`.
    """

    if TYPE_CHECKING:

        def __get__(self, instance: object, owner: type | None = None) -> Kept: ...
        def __set__(self, instance: object, value: Given) -> None: ...


def default(value: Any) -> Any:
    """Default of a field that is converted: the value, of any type for those who check types."""
    return value


if TYPE_CHECKING:
    from dataclasses import dataclass
else:
    import dataclasses
    import threading
    from copy import copy

    _WRITTEN_WITH = {"__init__": "init", "__repr__": "repr", "__eq__": "eq", "__hash__": "eq"}
    """The option with which Python's dataclasses write a method."""

    _made_here = threading.local()

    class _Options:
        """The options of a frozen class.

        Where a class is derived from it, Python asks whether it is frozen, to refuse one that is not. Those made here
        say that they are not, so that Python leaves it to :func:`_freeze` to freeze them: their types are checked.
        """

        def __init__(self, options: Any) -> None:
            self.options = options

        def __getattr__(self, name: str) -> Any:
            return getattr(self.options, name)

        @property
        def frozen(self) -> bool:
            return not getattr(_made_here, "now", False)

    class _Later:
        """A method that, once it is written, takes its place in the class."""

        def __init__(self, cls: type, name: str, frozen: bool) -> None:
            self.cls, self.name, self.frozen = cls, name, frozen

        def __get__(self, instance: object, owner: type | None = None) -> Any:
            method = self.written()
            if vars(self.cls).get(self.name) is self:
                setattr(self.cls, self.name, method)
            return method.__get__(instance, owner)

        def written(self) -> Any:
            """The method of a class with the same fields, as Python writes it."""
            body = {"__module__": self.cls.__module__, "__doc__": self.cls.__doc__ or ""}
            if hasattr(self.cls, "__post_init__"):
                body["__post_init__"] = None
            options = {option: option == _WRITTEN_WITH[self.name] for option in ("init", "repr", "eq")}
            frozen = self.frozen and self.name in ("__init__", "__hash__")
            listed = [(each.name, each.type, copy(each)) for each in fields(self.cls)]
            twin = dataclasses.make_dataclass(self.cls.__name__, listed, namespace=body, frozen=frozen, **options)
            method = vars(twin)[self.name]
            method.__qualname__ = f"{self.cls.__qualname__}.{self.name}"
            return method

    def _freeze(cls: type) -> None:
        """Let nothing be assigned to the fields of a class, nor anything to its instances."""
        names = {each.name for each in fields(cls)}

        def refuse(self: Any, name: str, value: Any) -> None:
            if type(self) is cls or name in names:
                raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
            super(cls, self).__setattr__(name, value)

        def keep(self: Any, name: str) -> None:
            if type(self) is cls or name in names:
                raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
            super(cls, self).__delattr__(name)

        cls.__setattr__, cls.__delattr__ = refuse, keep
        cls.__dataclass_params__ = _Options(cls.__dataclass_params__)

    def _state(self: Any) -> list[Any]:
        return [getattr(self, each.name) for each in fields(self)]

    def _restore(self: Any, state: list[Any]) -> None:
        for each, value in zip(fields(self), state, strict=True):
            object.__setattr__(self, each.name, value)

    def dataclass(
        cls: type | None = None, *, init: bool = True, eq: bool = True, frozen: bool = False, slots: bool = False
    ) -> Any:
        """As :func:`dataclasses.dataclass`, with methods that are written when they are first asked for."""
        if cls is None:
            return lambda cls: dataclass(cls, init=init, eq=eq, frozen=frozen, slots=slots)
        own = vars(cls)
        hashed = "__hash__" in own and not ("__eq__" in own and own["__hash__"] is None)
        _made_here.now = True
        try:
            cls = dataclasses.dataclass(cls, init=False, repr=False, eq=False, slots=slots)
        finally:
            _made_here.now = False
        for name, asked in (("__init__", init), ("__repr__", True), ("__eq__", eq)):
            if asked and name not in own:
                setattr(cls, name, _Later(cls, name, frozen))
        if eq and not hashed:
            cls.__hash__ = _Later(cls, "__hash__", frozen) if frozen else None
        if frozen:
            _freeze(cls)
            if slots:  # which are put back by assignments
                cls.__getstate__, cls.__setstate__ = _state, _restore
        return cls


class Alike:
    """Value that is told from others of its class by its attributes alone; tables of numbers over time do not count."""

    @property
    def facts(self) -> tuple[Hashable, ...]:
        """Key that tells it from others."""
        return tuple((name, value) for name, value in vars(self).items() if not name.startswith("table"))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Alike) and type(self) is type(other) and self.facts == other.facts

    def __hash__(self) -> int:
        return hash((type(self), self.facts))
