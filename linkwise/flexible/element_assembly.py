"""The reduced body put together: nodes, integrals, stiffness; and the same in other modes, those of a body that spins.

Of the modes of a body that spins fewer do for fast spins than of those at rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np
from scipy import linalg

from linkwise.array_types import Array, FloatArray
from linkwise.errors import InputError, ModelError
from linkwise.flexible.body import FlexibleBody, FlexibleNode, frame_node
from linkwise.flexible.integrals import (
    ModalIntegrals,
    Samples,
    modal_integrals,
    unpaired,
    without_rounding,
    zeroed,
)
from linkwise.flexible.mode_choice import Choice, mode_count
from linkwise.flexible.reduction import ByKind, ReducedBasis, reduced
from linkwise.flexible.root_support import KeptNode
from linkwise.flexible.solving import blocks
from linkwise.flexible.structure import Structure, vector_of


def body_of(
    structure: Structure,
    root: KeptNode,
    choice: Choice,
    keep: Sequence[KeptNode],
    *,
    by_kind: ByKind | None = None,
    shapes: FloatArray | None = None,
) -> FlexibleBody:
    """Reduce a structure and integrate over it.

    Args:
        structure: the free model.
        root: where the body is held.
        choice: which modes to keep.
        keep: nodes that the body keeps, besides root and interfaces.
        by_kind: see `reduced`.
        shapes: see `reduced`.
    """
    result = reduced(structure, root, choice, keep, by_kind, shapes)
    given = structure.given_second_order(result.shapes) if choice.stiffening else None
    second = result.support.second_order(result.shapes) if choice.stiffening and given is None else None
    samples = structure.samples(result.shapes, second)
    about_root = Samples(samples.position - root.position, samples.shapes, samples.second, samples.weight)
    integrals = modal_integrals(about_root, None if given is None else given[0])
    if not structure.samples_are_exact:
        integrals = _with_mass_matrix(integrals, structure, root, result.shapes)
    chosen = [root, *(place for place in (*result.support.tied, *keep) if place is not root)]
    nodes = _nodes(structure, root, chosen, result, second, {} if given is None else dict(given[1]))
    floats = choice.held is not None
    return FlexibleBody(
        nodes=(frame_node(min(structure.numbers) - 1, len(result.stiffness)), *nodes) if floats else nodes,
        stiffness=result.stiffness,
        damping=result.damping,
        integrals=without_rounding(integrals),
        boundary=choice.boundary,
        stiffening=second is not None or given is not None,
        reduction=result.reduction,
        held=1 if floats else 0,
    )


def _with_mass_matrix(integrals: ModalIntegrals, structure: Structure, root: KeptNode, shapes: Array) -> ModalIntegrals:
    """Integrals of which those without η come from the mass matrix itself instead of lumped masses."""
    rigid = structure.rigid(root.position)
    inertia = rigid.T @ (structure.M @ rigid)
    coupling = rigid.T @ (structure.M @ shapes)
    modal = shapes.T @ (structure.M @ shapes)
    return replace(
        integrals,
        mass=float(np.trace(inertia[3:, 3:]) / 3),
        h0=vector_of(inertia[:3, 3:]),
        h1=coupling[3:],
        J0=0.5 * (inertia[:3, :3] + inertia[:3, :3].T),
        A0=coupling[:3],
        Me=0.5 * (modal + modal.T),
    )


def _nodes(
    structure: Structure,
    root: KeptNode,
    chosen: Sequence[KeptNode],
    result: ReducedBasis,
    second: Array | None,
    given: dict[object, Array],
) -> tuple[FlexibleNode, ...]:
    m = result.shapes.shape[1]
    nodes: list[FlexibleNode] = []
    following = max(structure.numbers) + 1
    seen: set[object] = set()
    for place in chosen:
        if place.key in seen:
            continue
        seen.add(place.key)
        if len(place.nodes) == 1:
            number = structure.numbers[int(place.nodes[0])]
        else:
            number, following = following, following + 1
        name = place.key if isinstance(place.key, str) else _name(structure, place)
        bent = np.zeros((3, m, m))
        if place is root:
            motion = result.support.root_motion(result.shapes)
            if second is not None:
                bent = unpaired(result.support.root_motion(second)[3:], m)
        else:
            rows = structure.motion_rows(place.nodes, place.position)
            motion = rows @ result.shapes
            bent = given.get(place.key, bent)
            if second is not None:
                bent = unpaired(rows[3:] @ second, m)
        nodes.append(
            FlexibleNode(
                number=number,
                name=name,
                position=place.position - root.position,
                Gamma=zeroed(motion[3:], np.abs(motion[3:]).max(axis=0, initial=0.0)),
                Lambda=zeroed(motion[:3], np.abs(motion[:3]).max(axis=0, initial=0.0)),
                Q=zeroed(bent, np.abs(bent).max(initial=0.0)),
            )
        )
    return tuple(nodes)


def _name(structure: Structure, place: KeptNode) -> str | None:
    if len(place.nodes) != 1:
        return None
    return next((name for name, index in structure.names.items() if index == place.nodes[0]), None)


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


def in_spinning_modes(body: FlexibleBody, rate: Sequence[float], modes: int) -> FlexibleBody:
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
