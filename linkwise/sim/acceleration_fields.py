"""Fields of acceleration as elements give them, taken around each body: for forces on its mass and its modes.

A field is asked for at the mass centre of every body, and its gradient there comes from dual numbers. Fields that are
linear in the place are exact so; of others, what is dropped is the second derivative over a body's own size.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from linkwise.algorithms.acceleration_field import FIELD, POTENTIAL
from linkwise.errors import InputError
from linkwise.functions.scalar_arrays import scalar_array
from linkwise.memoized import cached_property
from linkwise.model.model import Model
from linkwise.spatial.dual import derivative
from linkwise.spatial.scalar import Scalar

Flat = Sequence[Scalar]
Given = Any  # what Element.acceleration gives: 3 numbers, or a function of a point


class FieldsAroundBodies:
    """Where the bodies of a model are met by fields."""

    def __init__(self, model: Model) -> None:
        self.model = model

    @cached_property
    def centres(self) -> list[list[float]]:
        """The nominal mass centre of each body in its frame, undeformed; its origin where it has no mass."""
        q = self.model.neutral().tolist()
        found = []
        for link in self.model._trees.in_body_frames.links:
            inertia = link.M(q)
            rigid = getattr(inertia, "body", inertia)
            found.append([float(x) / float(rigid.m) if rigid.m else 0.0 for x in rigid.h])
        return found

    def field(self, q: Flat, given: Sequence[tuple[Any, Given]], p: Any) -> Any:
        """The sum of fields (n_bodies, 12) around the bodies' origins, in their axes: a, then the rows of E.

        Args:
            q: configuration (nq).
            given: elements, for messages, and what they gave.
            p: the model's run-time parameters, or None.
        """
        poses = self.model._run("poses", scalar_array(q), p=p)
        uniform: list[Scalar] = [0.0, 0.0, 0.0]
        functions: list[Callable[[Flat], list[Scalar]]] = []
        for element, one in given:
            if callable(one):
                functions.append(lambda point, one=one, of=element: _three(one(scalar_array(point)), of))  # type: ignore[misc]
            else:
                uniform = [a + b for a, b in zip(uniform, _three(one, element), strict=True)]

        def summed(point: Flat) -> list[Scalar]:
            parts = [function(point) for function in functions]
            return [sum(own[1:], own[0]) for own in zip(*parts, strict=True)]

        rows = []
        for pose, centre in zip(poses, self.centres, strict=True):
            R, arm = pose[:3, :3], pose[:3, :3] @ np.array(centre, object)
            a, E = np.array(uniform, object), np.zeros((3, 3), object) + 0.0
            if functions:
                value, E = _with_gradient(summed, list(pose[:3, 3] + arm))
                a = a + np.array(value, object) - E @ arm
            rows.append([*(R.T @ a), *(R.T @ E @ R).reshape(-1)])
        return np.array(rows, object).reshape(len(rows), FIELD)

    def potential(self, q: Flat, given: Sequence[Callable[[Any], Scalar]], p: Any) -> Any:
        """The sum of potentials (n_bodies, 10) around the bodies' origins, in their axes."""
        poses = self.model._run("poses", scalar_array(q), p=p)

        def slope(point: Flat) -> list[Scalar]:
            """U, then its gradient."""
            found = [derivative(lambda x: [_summed(given, x)], point, unit) for unit in np.eye(3).tolist()]
            return [found[0][0][0], *(rate[0] for _, rate in found)]

        rows = []
        for pose, centre in zip(poses, self.centres, strict=True):
            R, arm = pose[:3, :3], pose[:3, :3] @ np.array(centre, object)
            (U, *first), second = _with_gradient(slope, list(pose[:3, 3] + arm))
            H, u = second[1:], np.array(first, object)
            at_origin = U - u @ arm + (H @ arm) @ arm * 0.5
            own = R.T @ H @ R
            six = (own[i, j] for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)))
            rows.append([at_origin, *(R.T @ (u - H @ arm)), *six])
        return np.array(rows, object).reshape(len(rows), POTENTIAL)


def _with_gradient(function: Callable[[Flat], list[Scalar]], point: Flat) -> tuple[list[Scalar], Any]:
    """Values (k) of a function of a point, and their gradients (k, 3)."""
    found = [derivative(function, point, unit) for unit in np.eye(3).tolist()]
    columns = [rates for _, rates in found]
    gradient = np.empty((len(columns[0]), 3), object)
    for j, column in enumerate(columns):
        gradient[:, j] = column
    return found[0][0], gradient


def _summed(given: Sequence[Callable[[Any], Scalar]], point: Flat) -> Scalar:
    parts = [np.asarray(each(scalar_array(point)), dtype=object).reshape(-1)[0] for each in given]
    return sum(parts[1:], parts[0])


def _three(value: Any, element: Any) -> list[Scalar]:
    numbers = list(np.asarray(value, dtype=object).reshape(-1))
    if len(numbers) != 3:
        raise InputError(
            f"the acceleration of {element!r} is no vector",
            got=f"{len(numbers)} numbers",
            allowed="3 numbers in world axes, m/s², or a function of a point (3) that gives them",
        )
    return [float(x) if isinstance(x, (int, np.floating, np.integer)) else x for x in numbers]
