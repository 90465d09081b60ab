"""States that runs start from: checked, broadcast against each other, and laid out in rows."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import ArrayLike

from linkwise.array_types import Array
from linkwise.dataclass import dataclass
from linkwise.errors import InputError, InputWarning, message
from linkwise.mechanism.body_checks import LEAST_DEGREES, warn_of_degrees

if TYPE_CHECKING:
    from linkwise.model.model import Model
    from linkwise.sim.elements import Element
    from linkwise.sim.motion import EquationsOfMotion

_LONG = 1e-6
"""Difference of a quaternion's length from one that is no rounding."""
_LOOKED_AT = 100
"""States of a batch in which degrees are looked for."""
_SINGLE = 2.0**29  # of float64's spacing is that of float32
_INSTANTS = 1000  # different times that an adaptive run must be able to tell


@dataclass(frozen=True, eq=False)
class Start:
    """All that starting states of one simulation have in common, whatever their numbers."""

    model: Model
    nominal: Array
    """The model's parameters where none are given."""
    x: Array
    """Own states of elements where none are given."""
    switches: Array
    """The last of x in each state."""
    batch: tuple[int, ...]
    """Leading axes of whatever else differs from state to state."""
    any_precision: bool
    """Whether states may be of float32."""
    only_adds: bool
    """Whether moving is adding at every joint, so that a step of zero leaves any q as it is.

    Not a matter of counting: a joint with as many numbers in q as in v may have an ``integrate`` of its own.
    """

    @classmethod
    def of(
        cls,
        model: Model,
        elements: Sequence[Element] = (),
        switches: ArrayLike = (),
        batch: tuple[int, ...] = (),
        any_precision: bool = False,
    ) -> Start:
        """Of a model with elements."""
        x, nominal = np.array(initial_states(elements), float), model.parameters.nominal
        only_adds = not any(joint.type.quasi_velocities for joint in model.joints)
        return cls(model, nominal, x, np.asarray(switches, float), batch, any_precision, only_adds)


class States:
    """Starting states, in float32 if all that is given is and it may be."""

    def __init__(
        self, start: Start, q0: ArrayLike | None, v0: ArrayLike | None, p: ArrayLike | None, x0: ArrayLike | None
    ) -> None:
        model = start.model
        if q0 is None:
            q0, v0 = model.start, model._start_velocity if v0 is None else v0
        single = start.any_precision and all(
            getattr(array, "dtype", None) == np.float32 for array in (q0, v0, p, x0) if array is not None
        )
        self.dtype = np.dtype(np.float32 if single else np.float64)
        q = checked_vector("q0", q0, model.nq)
        v = checked_vector("v0", np.zeros(model.nv) if v0 is None else v0, model.nv)
        given = start.nominal if p is None else checked_vector("p", p, len(start.nominal), or_more=True)
        x = start.x if x0 is None else checked_vector("x0", x0, len(start.x))
        try:
            self.shape = np.broadcast_shapes(q.shape[:-1], v.shape[:-1], given.shape[:-1], x.shape[:-1], start.batch)
        except ValueError:
            raise InputError(
                "the batches of q0, v0, p and x0 do not fit together, or do not fit the tables'",
                got=", ".join(str(shape) for shape in (*(a.shape[:-1] for a in (q, v, given, x)), start.batch)),
                allowed="equal leading axes, or none where one value serves all",
            ) from None
        self.count = math.prod(self.shape)
        # Quaternions of length one, angles in a joint's own range, once at the start: steps keep them so.
        place = q if start.only_adds else model.integrate(q, np.zeros(model.nv))
        self.y = self._rows(place, v, x, start.switches)
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

    def _rows(self, *parts: Array) -> Array:
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

    def spacing(self, t: float) -> float:
        """Distance between numbers of their precision near a time."""
        return math.ulp(t) if self.dtype == np.float64 else _SINGLE * math.ulp(t)

    def check_clock(self, t0: float, duration: float, dt: float | None, adaptive: bool) -> None:
        """Time passes with every step: steps are not lost in the rounding of t."""
        end = float(t0) + float(duration)
        if not math.isfinite(end):
            raise InputError("t0 + duration is too large", got=f"{t0:g} + {duration:g} s", allowed="a finite number")
        apart = self.spacing(max(abs(float(t0)), abs(end)))

        def where() -> str:
            return f"near t = {end:g} s, {self.dtype} numbers are {apart:.2g} s apart"

        if dt is not None and dt < apart:
            raise InputError(
                "time would stand still: a step is lost in the rounding of t",
                got=f"dt = {dt:g} s; {where()}",
                allowed=f"dt >= {apart:.2g} s",
                do="a t0 near zero, or a larger dt",
            )
        if adaptive and duration < _INSTANTS * apart:
            raise InputError(
                "time would stand still: too few numbers lie between t0 and t0 + duration",
                got=f"duration = {duration:g} s; {where()}",
                allowed=f"at least {_INSTANTS} of them",
                do="a t0 near zero",
            )


def initial_states(elements: Sequence[Element]) -> list[float]:
    """The own states of all elements at the start: first those that flow, then those that are held."""
    given = [list(element.initial()) for element in elements]
    flowing = [value for own, element in zip(given, elements, strict=True) for value in own[: element.nx]]
    return flowing + [value for own, element in zip(given, elements, strict=True) for value in own[element.nx :]]


def checked_vector(name: str, value: ArrayLike, size: int, or_more: bool = False) -> Array:
    """An array (..., size) of float64; with ``or_more`` the last axis may be longer."""
    try:
        if np.iscomplexobj(value) or np.ma.isMaskedArray(value):  # whose hidden numbers would count
            raise TypeError
        array = np.asarray(value, float)
    except (TypeError, ValueError):
        raise InputError(
            f"{name} is not made of real numbers",
            got=repr(value)[:80],
            allowed=f"(..., {size})",
            do=f"model.configurations[{value!r}], if it has one" if name == "q0" and isinstance(value, str) else None,
        ) from None
    if array.ndim == 0 or (array.shape[-1] < size if or_more else array.shape[-1] != size):
        raise InputError(
            f"{name} has the wrong shape",
            got=str(array.shape),
            allowed=f"(..., n) with n at least {size}, the model's" if or_more else f"(..., {size})",
        )
    return array


def warn_of_start(model: Model, q: Array) -> None:
    """Warn the user of angles that look like degrees, and of quaternions that are made shorter or longer."""
    warn_of_angles("q0", model, q, callers=3)
    for joint in model._independent if model.nq > model.nv else ():
        own = q[..., joint.q_slice]
        if joint.nq == joint.nv + 1:  # a ball, alone or in a free joint: the quaternion comes first
            off = np.abs(np.linalg.norm(own[..., :4], axis=-1) - 1.0)
            if off.max(initial=0.0) > _LONG:
                told = message(
                    f"q0 of joint {joint.name!r} has a quaternion that is not of length one; its direction counts",
                    allowed=f"w² + x² + y² + z² = 1 to within {_LONG:g}",
                    do="q / np.linalg.norm(q); is the order w, x, y, z?",
                )
                warnings.warn(told, InputWarning, stacklevel=3)


def warn_of_angles(what: str, model: Model, q: Array, callers: int) -> None:
    """One warning where coordinates (..., nq) of hinges look like degrees, with the first of them."""
    if not (np.abs(q) >= LEAST_DEGREES).any():
        return
    for joint in model._independent:
        angles = q[..., joint.q_slice].reshape(-1)[:_LOOKED_AT].tolist()
        if joint.type.turns and warn_of_degrees(f"{what} of joint {joint.name!r}", angles, callers=callers + 1):
            return


def check_start(motion: EquationsOfMotion, y: Array) -> None:
    """Nothing starts beyond a joint limit: its spring would fire the joint off."""
    beyond = {limit.joint.name: limit.bound for limit in motion.all_limits.exceeded(y)}
    if beyond:
        raise InputError(
            "q0 is beyond joint limits",
            got=", ".join(f"{name} (limit {bound:g})" for name, bound in beyond.items()),
            allowed="model.limits.lower <= q0 <= model.limits.upper",
            do='start inside, or pass limits="ignore" (--limits ignore)',
        )
