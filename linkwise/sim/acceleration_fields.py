"""Fields of acceleration as elements give them, taken around each body: for forces on its mass and its modes.

Fields that are given as linear in the place are carried from link to link. Functions of the place are asked for at the
mass centre of every body, and their gradient there comes from dual numbers: exact where they are linear; of others,
what is dropped is the second derivative over a body's own size.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from linkwise.algorithms.acceleration_field import FIELD, POTENTIAL
from linkwise.array_types import Array
from linkwise.errors import InputError
from linkwise.functions.scalar_arrays import scalar_array
from linkwise.memoized import cached_property
from linkwise.model.model import Model
from linkwise.sim.elements import Field, Vector
from linkwise.spatial.dual import derivative
from linkwise.spatial.scalar import Flat, Scalar, is_zero, plus


class FieldsAroundBodies:
    """Fields at the bodies of a model."""

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

    def field(self, q: Flat, given: Sequence[tuple[object, Field]], p: Array | None) -> Array:
        """The sum of fields (n_bodies, 12) around the bodies' origins, in their axes: a, then the rows of E.

        Args:
            q: configuration (nq).
            given: elements, for messages, and what they gave.
            p: the model's run-time parameters, or None.
        """
        linear: list[Scalar] = [0.0] * FIELD
        functions: list[Callable[[Flat], list[Scalar]]] = []
        for element, one in given:
            if callable(one):
                functions.append(partial(_at, one, element))
            else:
                linear = plus(linear, _of_linear(one, element))
        around = self._of_functions(q, functions, p) if functions else 0.0
        if isinstance(around, float) or not all(is_zero(x) for x in linear):
            around = around + self.model._run("linear_field", scalar_array(q), scalar_array(linear), p=p)
        return around

    def _of_functions(self, q: Flat, functions: Sequence[Callable[[Flat], list[Scalar]]], p: Array | None) -> Array:
        def summed(point: Flat) -> list[Scalar]:
            parts = [function(point) for function in functions]
            return [sum(own[1:], own[0]) for own in zip(*parts, strict=True)]

        rows = []
        for pose, centre in zip(self.model._run("poses", scalar_array(q), p=p), self.centres, strict=True):
            R, arm = pose[:3, :3], pose[:3, :3] @ np.array(centre, object)
            value, E = _with_gradient(summed, list(pose[:3, 3] + arm))
            a = np.array(value, object) - E @ arm
            rows.append([*(R.T @ a), *(R.T @ E @ R).reshape(-1)])
        return np.array(rows, object).reshape(len(rows), FIELD)

    def potential(self, q: Flat, given: Sequence[Callable[[Vector], Scalar]], p: Array | None) -> Array:
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


def _with_gradient(function: Callable[[Flat], list[Scalar]], point: Flat) -> tuple[list[Scalar], Array]:
    """Values (k) of a function of a point, and their gradients (k, 3)."""
    found = [derivative(function, point, unit) for unit in np.eye(3).tolist()]
    columns = [rates for _, rates in found]
    gradient = np.empty((len(columns[0]), 3), object)
    for j, column in enumerate(columns):
        gradient[:, j] = column
    return found[0][0], gradient


def _summed(given: Sequence[Callable[[Vector], Scalar]], point: Flat) -> Scalar:
    parts = [np.asarray(each(scalar_array(point)), dtype=object).reshape(-1)[0] for each in given]
    return sum(parts[1:], parts[0])


def _at(field: Callable[[Vector], Flat], element: object, point: Flat) -> list[Scalar]:
    """A field of an element at a point (3)."""
    return _numbers(field(scalar_array(point)), element)


def _of_linear(given: Flat, element: object) -> list[Scalar]:
    """Value at the world's origin (3), and gradient (9), of a field that is the same everywhere or linear."""
    if isinstance(given, tuple) and len(given) == 2:
        return [*_numbers(given[0], element), *_numbers(given[1], element, 9)]
    return [*_numbers(given, element), *([0.0] * 9)]


def _numbers(value: Vector, element: object, count: int = 3) -> list[Scalar]:
    numbers = list(np.asarray(value, dtype=object).reshape(-1))
    if len(numbers) != count:
        raise InputError(
            f"the acceleration of {element!r} is no {'vector' if count == 3 else 'vector and gradient'}",
            got=f"{len(numbers)} numbers",
            allowed="3 numbers in world axes, m/s²; these and their gradient (3, 3); or a function of a point (3)",
        )
    return [float(x) if isinstance(x, (int, np.floating, np.integer)) else x for x in numbers]
