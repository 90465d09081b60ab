"""The reduced body put together: nodes, integrals, stiffness."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from linkwise.array_types import Array, FloatArray
from linkwise.flexible.body import FlexibleBody, FlexibleNode, frame_node
from linkwise.flexible.choice import Choice
from linkwise.flexible.integrals import (
    ModalIntegrals,
    Samples,
    modal_integrals,
    unpaired,
    without_rounding,
    zeroed,
)
from linkwise.flexible.reduction import ByKind, ReducedBasis, reduced
from linkwise.flexible.root_support import KeptNode
from linkwise.flexible.structure import Structure

__all__ = ["body_of"]


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
    skew = inertia[:3, 3:]
    h0 = 0.5 * np.array([skew[2, 1] - skew[1, 2], skew[0, 2] - skew[2, 0], skew[1, 0] - skew[0, 1]])
    return replace(
        integrals,
        mass=float(np.trace(inertia[3:, 3:]) / 3),
        h0=h0,
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
