"""Functions of users inside elements and events: of (t, q, v, p), or of (t, q, v, p, x) with all elements' states.

The states x stand in the order of ``Trajectory.x``. They travel with p, so that elements, which have states of their
own in x, hand them on without knowing.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from linkwise.functions.scalar_arrays import ScalarArray


class WithStates(ScalarArray):
    """Parameters of a run, with the states of all elements."""

    states: Any = None


class NumbersWithStates(np.ndarray):
    """The same, of numbers."""

    states: Any = None


def with_states(p: Any, states: Any) -> Any:
    """Parameters that know the states of all elements."""
    made = p.view(WithStates if p.dtype == object else NumbersWithStates)
    made.states = states
    return made


def states_in(p: Any) -> Any:
    """The states of all elements; none where they are not known."""
    found = getattr(p, "states", None)
    return np.empty(0) if found is None else found


def takes_states(function: Any) -> bool:
    """Whether a function of (t, q, v, p) asks for the states of all elements as a fifth argument."""
    try:
        inspect.signature(function).bind(0.0, (), (), (), ())
    except (TypeError, ValueError):
        return False
    kinds = [each.kind for each in inspect.signature(function).parameters.values()]
    required = [each for each in inspect.signature(function).parameters.values() if each.default is each.empty]
    return inspect.Parameter.VAR_POSITIONAL not in kinds and len(required) == 5


def law(function: Callable[..., Any], t: Any, q: Any, v: Any, p: Any) -> Any:
    """Value of a function of the user."""
    return function(t, q, v, p, states_in(p)) if takes_states(function) else function(t, q, v, p)
