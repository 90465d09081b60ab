"""One shape for what links hand on, where some deform and others do not: tails filled up with zeros to the longest.

Memory that many kinds of links share has one shape. What a link gets is cut again to the modes that it belongs to.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any

from linkwise.spatial.flexible import FlexibleForce, FlexibleInertia, FlexibleMotion, FlexibleMoving
from linkwise.spatial.inertia import ArticulatedInertia, RigidInertia
from linkwise.spatial.moving import RigidMotion
from linkwise.spatial.scalar import Value
from linkwise.spatial.vectors import Force, Motion

Change = Callable[[Any, int], Any]


def with_tails(thing: Any, modes: int) -> Any:
    """The same with tails of exactly so many modes: cut, filled up with zeros, or plain where there are to be none."""
    for kinds, change in _CHANGES:
        if isinstance(thing, kinds):
            return change(thing, modes)
    if isinstance(thing, (list, tuple)):
        make = getattr(type(thing), "_make", type(thing))
        return make([with_tails(part, modes) for part in thing])
    if isinstance(thing, Value):
        return type(thing).from_parts([with_tails(part, modes) for part in thing.parts()])
    if is_dataclass(thing) and not isinstance(thing, type):
        made = object.__new__(type(thing))
        for field in fields(thing):
            object.__setattr__(made, field.name, with_tails(getattr(thing, field.name), modes))
        return made
    return thing


def _tail(thing: Any, modes: int) -> list[Any]:
    own = list(getattr(thing, "tail", ()))
    return [*own, *[0.0] * (modes - len(own))][:modes]


def _force(f: Force, modes: int) -> Force:
    return FlexibleForce.with_tail(_tail(f, modes), f) if modes else Force(f.ang, f.lin)


def _motion(V: Motion, modes: int) -> Motion:
    return FlexibleMotion.with_tail(_tail(V, modes), V) if modes else Motion(V.ang, V.lin)


def _inertia(X: Any, modes: int) -> Any:
    body, rows, coupling = (X.body, X.tail, X.coupling) if isinstance(X, FlexibleInertia) else (X, (), ())
    if not modes:
        return body
    own = len(rows)
    return FlexibleInertia.symmetric(
        modes,
        lambda i, j: rows[i][j] if i < own and j < own else 0.0,
        [coupling[i] if i < own else Force.zero() for i in range(modes)],
        body,
    )


def _moving(motion: Any, modes: int) -> Any:
    root, rate, rate_dot = (
        (motion.root, motion.rate, motion.rate_dot) if isinstance(motion, FlexibleMoving) else (motion, (), ())
    )
    if not modes:
        return root
    filled = [tuple([*x, *[0.0] * (modes - len(x))][:modes]) for x in (rate, rate_dot)]
    return FlexibleMoving(root, *filled)


_CHANGES: tuple[tuple[Any, Change], ...] = (
    (Force, _force),
    (Motion, _motion),
    ((RigidInertia, ArticulatedInertia, FlexibleInertia), _inertia),
    ((RigidMotion, FlexibleMoving), _moving),
)
