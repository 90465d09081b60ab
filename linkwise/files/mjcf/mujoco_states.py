"""States of MuJoCo to ours and back.

They differ at free joints only. MuJoCo has qpos = [place, quaternion] and qvel = [velocity in world axes, angular
velocity in body axes]; we have q = [quaternion, place] and v = [ω, velocity], both in body axes. So a force there is
another one here: :func:`to_mujoco` of velocities is linear, and its transpose takes MuJoCo's forces to ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from linkwise.array_types import FloatArray
from linkwise.errors import InputError
from linkwise.model.model import Model
from linkwise.spatial.quaternions import rotation_matrix


class State(NamedTuple):
    """A configuration and a velocity."""

    q: FloatArray
    v: FloatArray


def from_mujoco(model: Model, qpos: ArrayLike, qvel: ArrayLike | None = None) -> State:
    """Our q (..., nq) and v (..., nv) from MuJoCo's qpos and qvel of the same model.

    Args:
        model: a model read from an MJCF file, with no joints locked.
        qpos: (..., nq).
        qvel: (..., nv); at rest if not given.
    """
    there, moving = _arrays(model, qpos, qvel)
    q, v = there.copy(), moving.copy()
    for a, b in _free(model):
        q[..., a : a + 4], q[..., a + 4 : a + 7] = there[..., a + 3 : a + 7], there[..., a : a + 3]
        R = _rotation(q[..., a : a + 4])
        v[..., b : b + 3] = moving[..., b + 3 : b + 6]
        v[..., b + 3 : b + 6] = np.einsum("...ji,...j->...i", R, moving[..., b : b + 3])
    return State(q, v)


def to_mujoco(model: Model, q: ArrayLike, v: ArrayLike | None = None) -> State:
    """MuJoCo's qpos (..., nq) and qvel (..., nv) from our q and v; the other way round from :func:`from_mujoco`."""
    here, moving = _arrays(model, q, v)
    qpos, qvel = here.copy(), moving.copy()
    for a, b in _free(model):
        qpos[..., a : a + 3], qpos[..., a + 3 : a + 7] = here[..., a + 4 : a + 7], here[..., a : a + 4]
        R = _rotation(here[..., a : a + 4])
        qvel[..., b : b + 3] = np.einsum("...ij,...j->...i", R, moving[..., b + 3 : b + 6])
        qvel[..., b + 3 : b + 6] = moving[..., b : b + 3]
    return State(qpos, qvel)


def _arrays(model: Model, q: ArrayLike, v: ArrayLike | None) -> tuple[FloatArray, FloatArray]:
    places = np.asarray(q, float)
    moving = np.zeros((*places.shape[:-1], model.nv)) if v is None else np.asarray(v, float)
    if places.shape[-1:] != (model.nq,) or moving.shape != (*places.shape[:-1], model.nv):
        raise InputError(
            "the state does not fit the model",
            got=f"shapes {places.shape} and {moving.shape}",
            allowed=f"(..., nq = {model.nq}) and (..., nv = {model.nv})",
            do="load the file without locked joints, whose coordinates MuJoCo has and we have not",
        )
    return places, moving


def _free(model: Model) -> Iterator[tuple[int, int]]:
    for joint in model.joints:
        if "free" in joint.type.words.get("mjcf", ()):
            yield joint.q_slice.start, joint.v_slice.start


def _rotation(quat_wxyz: FloatArray) -> FloatArray:
    return np.moveaxis(np.array(rotation_matrix(list(np.moveaxis(quat_wxyz, -1, 0))).m), (0, 1), (-2, -1))
