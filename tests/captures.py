"""Ways in which a function can capture a number that changes.

Each makes, of a body ``body(k, ...)``, the function without k, and something that sets k.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

import numpy as np

Body = Callable[..., Any]
Captured = tuple[Callable[..., Any], Callable[[Any], Any]]

GAIN: Any = 0.0


def by_global(body: Body) -> Captured:
    def function(*given: Any) -> Any:
        return body(GAIN, *given)

    return function, lambda k: globals().update(GAIN=k)


def by_closure_cell(body: Body) -> Captured:
    gain: Any = 0.0

    def function(*given: Any) -> Any:
        return body(gain, *given)

    def change(k: Any) -> None:
        nonlocal gain
        gain = k

    return function, change


def by_array(body: Body) -> Captured:
    gains = np.zeros(3)
    return lambda *given: body(gains[1], *given), lambda k: gains.__setitem__(1, k)


def by_list(body: Body) -> Captured:
    gains = [[0.0]]
    return lambda *given: body(gains[0][0], *given), lambda k: gains[0].__setitem__(0, k)


def by_dict(body: Body) -> Captured:
    gains = {"k": 0.0}
    return lambda *given: body(gains["k"], *given), lambda k: gains.update(k=k)


def by_attribute(body: Body) -> Captured:
    settings = types.SimpleNamespace(deep=types.SimpleNamespace(er=types.SimpleNamespace(k=0.0)))
    return lambda *given: body(settings.deep.er.k, *given), lambda k: setattr(settings.deep.er, "k", k)


def by_class_attribute(body: Body) -> Captured:
    class Settings:
        k = 0.0

    return lambda *given: body(Settings.k, *given), lambda k: setattr(Settings, "k", k)


def by_module(body: Body) -> Captured:
    module = types.ModuleType("settings_of_a_test")
    module.k = 0.0
    return lambda *given: body(module.k, *given), lambda k: setattr(module, "k", k)


def by_default(body: Body) -> Captured:
    def function(*given: Any, k: Any = 0.0) -> Any:
        return body(k, *given)

    return function, lambda k: function.__kwdefaults__.update(k=k)


def by_partial(body: Body) -> Captured:
    gains = np.zeros(1)
    return functools.partial(lambda gains, *given: body(gains[0], *given), gains), lambda k: gains.fill(k)


def by_keyword_of_a_partial(body: Body) -> Captured:
    function = functools.partial(lambda *given, k: body(k, *given), k=0.0)
    return function, lambda k: function.keywords.update(k=k)


class Caller:
    """Equal to all of its kind, which must be of no account."""

    def __init__(self, body: Body) -> None:
        self.body, self.k = body, 0.0

    def __call__(self, *given: Any) -> Any:
        return self.body(self.k, *given)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Caller)

    def __hash__(self) -> int:
        return 1


def by_callable_object(body: Body) -> Captured:
    made = Caller(body)
    return made, lambda k: setattr(made, "k", k)


def by_bound_method(body: Body) -> Captured:
    made = Caller(body)
    return made.__call__, lambda k: setattr(made, "k", k)


def by_inner_function(body: Body) -> Captured:
    cell = [0.0]

    def inner() -> Any:
        return cell[0]

    def middle() -> Any:
        return inner()

    return lambda *given: body(middle(), *given), lambda k: cell.__setitem__(0, k)


CAPTURES: dict[str, Callable[[Body], Captured]] = {
    name: each for name, each in globals().items() if name.startswith("by_")
}
