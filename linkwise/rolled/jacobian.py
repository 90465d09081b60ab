"""Jacobians of many links: the joint forces that unit forces at the place amount to, one row in each lane."""

from __future__ import annotations

from typing import Any

import numpy as np

from linkwise.arrays import Batch
from linkwise.model.mechanism import Frame
from linkwise.rolled.many_links import CombinedFunction
from linkwise.tracing.program import ArraySpec


class JacobianRows(CombinedFunction):
    """``jacobian`` by J* f = external force, for the six unit forces. O(n). ``frame`` is the place."""

    def __init__(self, *arguments: Any, frame: Frame, **others: Any) -> None:
        super().__init__(*arguments, **others)
        self._frame = frame

    def _evaluate(self, batch: Batch, out: Any, threads: int | None) -> Any:
        results = batch.outputs([ArraySpec("out", (6, self._size))], out)
        flat = results[0][0].reshape(batch.size, 6, self._size)
        flat[...] = 0.0
        if self._frame.body >= 0:
            for state, J in zip(zip(*batch.flat_inputs(), strict=True), flat, strict=True):
                J[...] = self._rows(state[0], state[1] if len(state) > 1 else None, threads)
        return batch.finish(results, out)[0]

    def _rows(self, q: Any, point: Any, threads: int | None) -> Any:
        poses = self._function("poses").general(q)
        body = poses[self._frame.body]
        R = body[:3, :3]
        place = np.array(self._frame.placement)
        at = place[:3, 3] if point is None else place[:3, 3] + place[:3, :3] @ point
        f_ext = np.zeros((6, len(poses), 6), q.dtype)
        for i, unit in enumerate(np.eye(6)):  # a moment or a force along a world axis, seen in the body's frame
            moment, force = R.T @ unit[:3], R.T @ unit[3:]
            f_ext[i, self._frame.body] = np.concatenate((moment + np.cross(at, force), force))
        return self._function("external_force").general(q, f_ext, threads=threads)
