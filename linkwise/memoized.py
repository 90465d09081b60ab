"""Values that are made when first asked for, once, by whichever thread comes first.

Making one may take seconds, and may ask for others on the way: to trace a function that evaluates another is to compile
that other first. So every value has a place of its own to wait at, and a thread that would wait for one which, in the
end, waits for this very thread makes the value itself: it is then made twice, and the first to be ready is kept.

What is made stays. So Python does not search it for cycles meanwhile: a third of the time in which the largest
functions are traced and differentiated, to find nothing.

A model keeps what it has worked out in a memory of its own. It is frozen: what it *is* are its fields, which are
compared, pickled and copied. What has been compiled for it is none of that, and is made again where a copy is used. All
of it is kept here, and goes when the model goes.
"""

from __future__ import annotations

import functools
import gc
import itertools
import os
import threading
from collections.abc import Callable, Hashable, Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any, Self, TypeVar, overload

T = TypeVar("T")


class _Making:
    """A value on its way. Its gate is shut until the making has ended, well or not."""

    def __init__(self) -> None:
        self.thread = threading.get_ident()
        self.gate = threading.Lock()
        self.gate.acquire()

    @property
    def has_ended(self) -> bool:
        return not self.gate.locked()


# Held for a moment only; it may be taken again, since a finaliser or a signal's handler may ask for values anywhere.
_guard = threading.RLock()
_made: dict[tuple[int, Hashable], _Making] = {}
_awaited: dict[int, _Making] = {}  # by thread
_MISSING: Any = object()
_MANY_OBJECTS = 300_000  # which take some hundredths of a second to search


def _forget() -> None:
    """After a fork nobody finishes what the other threads of the parent had begun."""
    global _guard
    _guard = threading.RLock()
    _made.clear()
    _awaited.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def once(store: MutableMapping[Any, Any], key: Hashable, make: Callable[[], T]) -> T:
    """``store[key]``, made and kept there if it is missing; the same object for all who ask."""
    known: T = store.get(key, _MISSING)
    if known is not _MISSING:
        return known
    place, mine = (id(store), key), _Making()
    try:
        while (known := store.get(key, _MISSING)) is _MISSING:
            with _guard:
                other = _made.setdefault(place, mine)
                if other.has_ended:  # and was interrupted before it could be taken off the list
                    _made[place] = other = mine
                if other is not mine and not _waits_for_me(other):
                    _awaited[mine.thread] = other
                else:
                    other = mine
            if other is mine:
                with no_search_for_cycles():
                    known = store.setdefault(key, make())
                break
            try:
                with other.gate:
                    pass
            finally:
                _awaited.pop(mine.thread, None)
        return known
    finally:
        mine.gate.release()  # at once and in one step: no interrupt may come between and leave others waiting
        with _guard:
            if _made.get(place) is mine:
                del _made[place]


def others_make() -> bool:
    """Whether threads other than this one are making values."""
    with _guard:
        return any(making.thread != threading.get_ident() for making in _made.values())


@contextmanager
def no_search_for_cycles(kept: bool = False) -> Iterator[None]:
    """No garbage collection inside, if there was any.

    Where a great many objects were made, or some that are ``kept`` for good, they join those that have long been there,
    else the next search would begin with all of them.
    """
    searched = gc.isenabled()
    gc.disable()
    before = gc.get_count()[0]  # not zero for long where threads run freely: nothing but a search sets it back there
    try:
        yield
    finally:
        if searched:
            many = kept or gc.get_count()[0] - before > _MANY_OBJECTS
            if many and gc.get_freeze_count() == 0:  # else others rely on what is frozen
                gc.freeze()
                gc.unfreeze()
            gc.enable()


def _waits_for_me(making: _Making | None) -> bool:
    while making is not None and making.thread != threading.get_ident():
        making = _awaited.get(making.thread)
    return making is not None


class cached_property(functools.cached_property[T]):  # noqa: N801
    """A property that is worked out once for each object and kept in its ``__dict__``.

    That of ``functools`` has, in Python 3.11, one lock for the objects of a class all together.
    """

    @overload
    def __get__(self, instance: None, owner: type[Any] | None = None) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type[Any] | None = None) -> T: ...
    def __get__(self, instance: object | None, owner: type[Any] | None = None) -> Self | T:
        """The value of an object; the property itself for a class."""
        if instance is None:
            return self
        return once(vars(instance), self.attrname, lambda: self.func(instance))


_PLACE = "_memory"


class Memory:
    """Tables by name, for those who compile something for a model."""

    def __init__(self) -> None:
        self._tables: dict[str, dict[Any, Any]] = {}
        self._clock = itertools.count()

    @classmethod
    def of(cls, model: Any) -> Memory:
        """The memory of a model."""
        memory: Memory | None = vars(model).get(_PLACE)
        if memory is None:
            memory = vars(model).setdefault(_PLACE, cls())  # of two threads, the first one's
        return memory

    def table(self, name: str) -> dict[Any, Any]:
        """The table with this name, empty at first."""
        return self._tables.setdefault(name, {})

    def recent(self, name: str, key: Hashable, make: Callable[[], T], most: int) -> T:
        """An entry of a table that keeps those used last, made if it is not there; at most so many are kept.

        Any number of threads may ask at once: each step is one of a dict's own, so none is seen half done.
        """
        table, used = self.table(name), self.table(f"{name}: when used")
        value = once(table, key, make)
        used[key] = next(self._clock)
        while len(table) > most:
            oldest = min(list(table), key=lambda k: used.get(k, -1))
            table.pop(oldest, None)
            used.pop(oldest, None)
        return value


def shadow(model: Any, name: str, function: Callable[..., Any]) -> None:
    """Put a compiled function before the method of this name: a look-up on the model ends there, without a detour."""
    vars(model)[name] = function
