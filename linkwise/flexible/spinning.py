"""Modes of a body that spins: fewer of them do for fast spins than of those at rest."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
from scipy import linalg

from linkwise.array_types import FloatArray
from linkwise.errors import InputError, ModelError
from linkwise.flexible.body import FlexibleBody
from linkwise.flexible.choice import mode_count
from linkwise.flexible.integrals import ModalIntegrals, without_rounding
from linkwise.flexible.solving import blocks

__all__ = ["in_basis", "in_spinning_modes"]

_MODAL_AXES = {"h1": 1, "X": 1, "J1": 1, "J2": 2, "A0": 1, "A1": 2, "Me": 2, "a": 2, "B": 2}
"""Number of the last axes of an integral that are modes."""


def in_basis(body: FlexibleBody, C: FloatArray) -> FlexibleBody:
    """The body in coordinates ζ with η = Cζ: every array contracted on its modal axes."""
    integrals = {
        each.name: _contracted(getattr(body.integrals, each.name), C, _MODAL_AXES.get(each.name, 0))
        for each in fields(ModalIntegrals)
    }
    nodes = tuple(
        replace(node, Gamma=node.Gamma @ C, Lambda=node.Lambda @ C, Q=_contracted(node.Q, C, 2)) for node in body.nodes
    )
    return replace(
        body,
        nodes=nodes,
        stiffness=C.T @ body.stiffness @ C,
        damping=C.T @ body.damping @ C,
        integrals=without_rounding(ModalIntegrals(**integrals)),
        reduction=None,
    )


def in_spinning_modes(body: FlexibleBody, rate: Any, modes: int) -> FlexibleBody:
    """`FlexibleBody.in_spinning_modes`."""
    omega = np.asarray(rate, dtype=float)
    if omega.shape != (3,) or not np.isfinite(omega).all():
        raise InputError("the spin is not a vector", got=repr(rate), allowed="(ωx, ωy, ωz), rad/s, in root axes")
    if not 0 <= mode_count(modes, "modes") <= body.modes:
        raise InputError("modes is not a number of modes of this body", got=repr(modes), allowed=f"0 to {body.modes}")
    K = body.stiffness - 0.5 * np.einsum("a,abij,b->ij", omega, body.integrals.J_second, omega)
    squared, C = np.zeros(body.modes), np.zeros((body.modes, body.modes))
    at = 0
    for family in blocks(K, body.integrals.Me):
        here = slice(at, at + len(family))
        squared[here], C[family, here] = linalg.eigh(
            K[np.ix_(family, family)], body.integrals.Me[np.ix_(family, family)]
        )
        at += len(family)
    chosen = np.argsort(squared, kind="stable")[:modes]
    if modes and squared[chosen[0]] <= 0:
        raise ModelError(
            "the body is not stable at this spin",
            got=f"{np.linalg.norm(omega):.4g} rad/s, lowest ω² {squared[chosen[0]]:.3g}",
            do="spin it slower" if body.stiffening else "find its second order: stiffening=True, or K_geo",
        )
    return in_basis(body, C[:, chosen])


def _contracted(value: Any, C: FloatArray, axes: int) -> Any:
    if axes == 0:
        return value
    value = value @ C
    return value if axes == 1 else np.swapaxes(np.swapaxes(value, -1, -2) @ C, -1, -2)
