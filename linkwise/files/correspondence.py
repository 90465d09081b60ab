"""Pairs of bodies and joints of two models that are the same, and places of both in one set of frames."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from linkwise.array_types import Array
from linkwise.mechanism.bodies_and_joints import JointInstance
from linkwise.model.model import Model


class Correspondence:
    """Two models whose joints were matched. Bodies and joints go by their numbers in the first, -1 for the world.

    The frames of a body may be chosen differently in both: with all joints at zero the two bodies lie in one place, and
    so it is known how one frame lies in the other. ``poses`` are those of all bodies of each then, ``size`` how far the
    first reaches.
    """

    def __init__(self, a: Model, b: Model, pairs: Sequence[tuple[JointInstance, JointInstance]]) -> None:
        self.a, self.b = a, b
        self._number = {y.index: x.index for x, y in pairs} | {-1: -1}
        self._joint = {y.name: x.name for x, y in pairs}
        self.poses = [m.poses(m.neutral()) if m.bodies else np.zeros((0, 4, 4)) for m in (a, b)]
        self.size = max((float(np.abs(X[:3, 3]).max()) for X in self.poses[0]), default=0.0) or 1.0

    def name(self, body: int) -> str:
        """Of a body, in the first model."""
        return "world" if body < 0 else str(self.a.bodies[body].name)

    def joint(self, number: int, model: Model) -> int:
        """The joint of the first model that this one of a model is."""
        return number if model is self.a else self._number[number]

    def joint_name(self, name: str, model: Model) -> str:
        """The same by name."""
        return name if model is self.a else self._joint.get(name, name)

    def place(self, model: Model, body: int, placement: ArrayLike, node: int = 0) -> tuple[int, Array]:
        """A place on a body of a model: that body, and the pose in the frame that the first model gives it."""
        X = np.array(placement, float)
        if body < 0:
            return -1, X
        flexible = model.bodies[body].flexible
        if flexible is not None:
            X = X.copy()
            X[:3, 3] += flexible.nodes[node].position
        if model is self.a:
            return body, X
        here = self._number[body]
        return here, np.linalg.inv(self.poses[0][here]) @ self.poses[1][body] @ X

    def frame(self, model: Model, name: str) -> tuple[int, Array]:
        """The same of a body or frame by name."""
        frame = model.frame(name)
        return self.place(model, frame.body, frame.placement, frame.node)


def shown(values: ArrayLike) -> str:
    """Numbers in parentheses; one alone without."""
    numbers = [f"{x:.5g}" for x in np.ravel(values)]
    return numbers[0] if len(numbers) == 1 else f"({', '.join(numbers)})"


def two_values(whose: str, fact: str, x: str, y: str) -> str:
    """Line that says what something is in the one model and in the other."""
    return f"{whose} {'are' if fact.endswith('s') and not fact.endswith('ss') else 'is'} {x} and {y}"
