"""Serial arms from tables of Denavit and Hartenberg, in the three conventions people use.

A row has a (m), α (rad), d (m) and θ (rad); the one that the joint moves is an offset added to its coordinate.

==============  ===========================================  =====================================================
``standard``    Rz(θ) Tz(d) Tx(a) Rx(α)                      frame i sits at the far end of link i
``modified``    Rx(α) Tx(a) Rz(θ) Tz(d)                      frame i sits on joint i's axis (Craig)
``saha``        Rz(θ) Tz(b) Tx(a) Rx(α)                      frame i + 1 is fixed to link i (Saha 1999 appendix A);
instead of
                                                             the mass centre its distance from the next joint is given
==============  ===========================================  =====================================================

A body's frame here sits on its joint's axis, so in the first and the last convention the table's frame of link i is
another one: it is named ``dh1``, ``dh2``, … and usable wherever a body name is.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from linkwise.array_types import Array
from linkwise.errors import InputError
from linkwise.joints import Joint, Prismatic, Revolute
from linkwise.mechanism.builder import Builder
from linkwise.mechanism.placement import transform

CONVENTIONS = ("standard", "modified", "saha")
_JOINTS: dict[str, type[Joint]] = {"R": Revolute, "P": Prismatic}


def add_dh_chain(
    builder: Builder,
    table: ArrayLike,
    convention: str,
    *,
    joints: Sequence[str] | None,
    masses: ArrayLike | None,
    coms: ArrayLike | None,
    inertias: ArrayLike | None,
    armature: ArrayLike,
    base: ArrayLike | None,
    tool: ArrayLike | None,
) -> None:
    """Add the links of a table to a builder: ``link1``, ``link2``, and so on, on ``joint1``, ``joint2``."""
    if convention not in CONVENTIONS:
        raise InputError(
            "there is no such convention for DH tables",
            got=repr(convention),
            allowed=", ".join(map(repr, CONVENTIONS)),
            do='see linkwise.mechanism.dh; most textbooks use "standard", Craig\'s uses "modified"',
        )
    rows = _array(table, "the DH table", ("n", 4), "one row (a, alpha, d, theta) for each joint, in m and rad")
    n = len(rows)
    letters = _letters(joints, n)
    m = np.zeros(n) if masses is None else _array(masses, "masses", (n,), "one mass for each row, in kg")
    centers = np.zeros((n, 3)) if coms is None else _array(coms, "coms", (n, 3), "three numbers for each row, in m")
    moments = np.zeros((n, 3, 3)) if inertias is None else _inertias(inertias, n)
    if masses is None and (coms is not None or inertias is not None):
        raise InputError("mass centres and inertias need masses", got="masses=None", do="give masses=[…], in kg")
    rotors = np.broadcast_to(_array(armature, "armature", None, "one number, or one for each row"), (n,))
    placement = np.eye(4) if base is None else np.array(base, float)
    parent = "world"
    for i, (row, letter) in enumerate(zip(rows, letters, strict=True)):
        before, frame = _modified(row) if convention == "modified" else _standard(row, letter)
        com = -centers[i] if convention == "saha" else centers[i]
        R = frame[:3, :3]
        name = f"link{i + 1}"
        builder.add_body(
            name,
            parent,
            _JOINTS[letter](),
            placement @ before,
            float(m[i]),
            frame[:3, 3] + R @ com,
            R @ moments[i] @ R.T,
            joint_name=f"joint{i + 1}",
            armature=float(rotors[i]),
        )
        builder.add_frame(f"dh{i + 1}", name, frame)
        parent, placement = name, frame
    if tool is not None:
        builder.add_frame("tool", parent, placement @ np.array(tool, float))


def _standard(row: Array, letter: str) -> tuple[Array, Array]:
    """From the last frame to the joint, and from the body's frame to the table's: Rz(θ) Tz(d) · Tx(a) Rx(α).

    A revolute joint turns before the shift d, which then belongs to the body; a prismatic one shifts after it.
    """
    a, alpha, d, theta = (float(x) for x in row)
    at_joint, on_body = (0.0, d) if letter == "R" else (d, 0.0)
    before = transform(rpy=(0.0, 0.0, theta)) @ transform(xyz=(0.0, 0.0, at_joint))
    return before, transform(xyz=(a, 0.0, on_body), rpy=(alpha, 0.0, 0.0))


def _modified(row: Array) -> tuple[Array, Array]:
    """Rx(α) Tx(a) Rz(θ) Tz(d), all of it before the joint; the table's frame is the body's."""
    a, alpha, d, theta = (float(x) for x in row)
    turned = transform(rpy=(alpha, 0.0, 0.0))
    return turned @ transform(xyz=(a, 0.0, d), rpy=(0.0, 0.0, theta)), np.eye(4)


def _letters(joints: Sequence[str] | None, n: int) -> list[str]:
    letters = ["R"] * n if joints is None else [str(letter).upper() for letter in joints]
    if len(letters) != n or any(letter not in _JOINTS for letter in letters):
        raise InputError(
            "joints does not fit the DH table",
            got=repr(joints),
            allowed=f'{n} letters, "R" (revolute) or "P" (prismatic), e.g. {"RRPRRR"[:n]!r}',
        )
    return letters


def _inertias(value: ArrayLike, n: int) -> Array:
    """(n, 3, 3) from 3×3 matrices or from their diagonals."""
    allowed = "3x3 (or its diagonal) for each row, about the mass centre, in kg m²"
    array = _array(value, "inertias", None, allowed)
    if array.shape == (n, 3):
        return np.stack([np.diag(diagonal) for diagonal in array])
    if array.shape != (n, 3, 3):
        raise InputError("inertias has the wrong shape", got=str(array.shape), allowed=allowed)
    return array


def _array(value: ArrayLike, what: str, shape: tuple[int | str, ...] | None, allowed: str) -> Array:
    try:
        array = np.array(value, float)
    except (TypeError, ValueError):
        raise InputError(f"{what} is not made of numbers", got=repr(value), allowed=allowed) from None
    if shape is not None:
        fits = array.ndim == len(shape) and all(
            k == s for k, s in zip(array.shape, shape, strict=True) if isinstance(s, int)
        )
        if not fits or array.size == 0:
            raise InputError(f"{what} has the wrong shape", got=str(array.shape), allowed=allowed)
    if not np.isfinite(array).all():
        raise InputError(f"{what} has numbers that are not finite", got=str(array.tolist()), allowed=allowed)
    return array
