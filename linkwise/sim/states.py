"""Where a simulation starts: one state or a batch of them, laid out in rows."""

from __future__ import annotations

import itertools
import math
from copy import copy
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from linkwise.errors import InputError
from linkwise.memoized import Memory, once
from linkwise.model.model import Model
from linkwise.sim.checks import checked_vector
from linkwise.sim.limits import is_linear


class States:
    """Starting states, broadcast against each other and laid out in rows; ``switches`` are the last of x in each.

    ``batch`` are the leading axes of whatever else differs from state to state.
    """

    def __init__(
        self,
        model: Model,
        elements: Any,
        q0: Any,
        v0: Any,
        p: Any,
        x0: Any,
        single: bool,
        switches: Any = (),
        batch: tuple[int, ...] = (),
    ) -> None:
        self.model = model
        self.dtype = np.dtype(np.float32 if single else np.float64)
        q = checked_vector("q0", q0, model.nq)
        v = checked_vector("v0", np.zeros(model.nv) if v0 is None else v0, model.nv)
        nominal = model.parameters.nominal
        given = checked_vector("p", nominal if p is None else p, len(nominal), or_more=True)
        x = np.array(initial_states(elements), float)
        x = checked_vector("x0", x if x0 is None else x0, len(x))
        try:
            self.shape = np.broadcast_shapes(q.shape[:-1], v.shape[:-1], given.shape[:-1], x.shape[:-1], batch)
        except ValueError:
            raise InputError(
                "the batches of q0, v0, p and x0 do not fit together, or do not fit the tables'",
                got=", ".join(str(shape) for shape in (*(a.shape[:-1] for a in (q, v, given, x)), batch)),
                allowed="equal leading axes, or none where one value serves all",
            ) from None
        self.count = math.prod(self.shape)
        # Quaternions of length one, angles in a joint's own range, once at the start: steps keep them so.
        place = q if only_adds(model) else model.integrate(q, np.zeros(model.nv))
        self.y = self._rows(place, v, x, np.asarray(switches, float))
        self.p = self._rows(given).astype(self.dtype, copy=False)  # a copy of p, which may change before it is asked
        alone = not self.shape  # in a batch only that state fails
        if alone and not (np.isfinite(self.y).all() and (p is None or np.isfinite(self.p).all())):
            parts = (("q0", q), ("v0", v), ("x0", x), ("p", given))
            raise InputError(
                "the start is not made of finite numbers",
                got=", ".join(f"{name} = {np.array2string(a, threshold=20)}" for name, a in parts if a.size),
                allowed="finite numbers; quaternions other than zero",
                do="model.start is a valid q0",
            )
        self.y = self.y.astype(self.dtype, copy=False)

    def _rows(self, *parts: NDArray[Any]) -> NDArray[Any]:
        """Vectors (..., n), side by side for each state (count, total); always new memory."""
        ends = list(itertools.accumulate((part.shape[-1] for part in parts), initial=0))
        rows = np.empty((*self.shape, ends[-1]))
        for part, (start, stop) in zip(parts, itertools.pairwise(ends), strict=True):
            rows[..., start:stop] = part
        return rows.reshape(self.count, ends[-1])

    def in_double(self) -> Self:
        """The same in double precision."""
        same = copy(self)
        same.dtype, same.y, same.p = np.dtype(np.float64), self.y.astype(float), self.p.astype(float)
        return same


def only_adds(model: Model) -> bool:
    """Whether moving is adding at every joint, so that a step of zero leaves any q as it is; kept with the model.

    Not a matter of counting: a joint with as many numbers in q as in v may have an ``integrate`` of its own.
    """
    return once(
        Memory.of(model).table("moving is adding"),
        "all joints",
        lambda: all(is_linear(joint.type) for joint in model.joints),
    )


def initial_states(elements: Any) -> list[float]:
    """The own states of all elements at the start: first those that flow, then those that are held."""
    given = [list(element.initial()) for element in elements]
    flowing = [value for own, element in zip(given, elements, strict=True) for value in own[: element.nx]]
    return flowing + [value for own, element in zip(given, elements, strict=True) for value in own[element.nx :]]


def all_single(*given: Any) -> bool:
    """Whether everything that was given is float32."""
    return all(getattr(array, "dtype", None) == np.float32 for array in given if array is not None)
