"""Divide and conquer (Featherstone 1999): articulated bodies with two handles, joined in pairs. O(log n) in parallel.

Named in Featherstone 2000 §3.5 and its conclusion ([12] there). A piece of the chain answers forces on its two ends by

    a₁ = Φ₁f₁ + Φ₁₂f₂ + b₁,    a₂ = Φ₂₁f₁ + Φ₂f₂ + b₂,

inverse articulated inertias Φ instead of inertias. Joining piece A (its end 2) to piece B (its end 1) by a joint S
eliminates the force between them: with V = (Φ₂ᴬ + Φ₁ᴮ)⁻¹ and e = Ṡq̇ + a₂ᴬ - a₁ᴮ (both at f = 0), f = V(Sq̈ + e), S*f
= τ. The pieces form a binary tree of depth log n: assembly runs up it, the joint forces and accelerations come down.
Absolute coordinates.

It is the least accurate of the family, as its author says too: V inverts sums of inverse inertias about one far
point, and loses their condition number (some 1e-11 where the others have 1e-14).

A base that does not move is a piece with Φ = 0. Serial chains, all joints, bodies with mass; rotors stand beside
S*VS.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from linkwise.algorithms.sweeps import Field
from linkwise.classics.dense import (
    Matrix,
    as_rows,
    congruent,
    dot,
    inverse,
    matrix_minus,
    matrix_plus,
    minus,
    plus,
    product,
    times,
    transposed,
    zeros,
)
from linkwise.classics.featherstone import absolute
from linkwise.classics.requirements import no_mimics, own_mass, serial
from linkwise.classics.terms import Flat, base_acceleration
from linkwise.mechanism.tree import Tree
from linkwise.spatial.scalar import Scalar

_NO_FORCE: list[Scalar] = [0.0] * 6


@dataclass(frozen=True)
class Joint:
    """S (6 × d), ḣq̇, the joint force and the rotors."""

    S: Matrix
    c: list[Scalar]
    tau: list[Scalar]
    armature: tuple[Scalar, ...]


@dataclass(frozen=True)
class Piece:
    """A part of the chain by its answer at its two ends; and, where it was joined from two, how."""

    Phi_1: Matrix
    Phi_12: Matrix
    Phi_2: Matrix
    b_1: list[Scalar]
    b_2: list[Scalar]
    joined: _Joined | None = None


@dataclass(frozen=True)
class _Joined:
    """The two halves, the joint between them, V and (S*VS)⁻¹."""

    A: Piece
    B: Piece
    joint: Joint
    V: Matrix
    VS: Matrix
    D_inverse: Matrix


def forward_dynamics(tree: Tree, q: Flat, v: Flat, tau: Flat) -> list[Scalar]:
    """q̈: assemble, then come down with no force on the tip."""
    serial(tree, "divide and conquer")
    no_mimics(tree, "divide and conquer")
    own_mass(tree, "divide and conquer")
    bodies = absolute(tree, q, v)
    joints = [
        Joint(
            transposed([list(h) for h in bodies[link].h], 6) if bodies[link].h else [[] for _ in range(6)],
            list(bodies[link].c),
            link.rates(tau),
            link.armature,
        )
        for link in tree
    ]
    base = list(base_acceleration(tree))
    pieces = [Piece(zeros(6, 6), zeros(6, 6), zeros(6, 6), base, base)]
    for link in tree:
        Phi = inverse(as_rows(bodies[link].I.articulated()))
        b = [-x for x in times(Phi, list(bodies[link].p))]
        pieces.append(Piece(Phi, Phi, Phi, b, b))
    whole = assemble(pieces, joints)
    return tree.generalized(Field(_come_down(whole, _NO_FORCE, _NO_FORCE)))


def assemble(pieces: Sequence[Piece], joints: Sequence[Joint]) -> Piece:
    """The pieces of a chain joined two by two; ``joints[i]`` is between ``pieces[i]`` and ``pieces[i + 1]``."""
    if len(pieces) == 1:
        return pieces[0]
    half = len(pieces) // 2
    return join(assemble(pieces[:half], joints[: half - 1]), assemble(pieces[half:], joints[half:]), joints[half - 1])


def join(A: Piece, B: Piece, joint: Joint) -> Piece:
    """One piece from two."""
    V = inverse(matrix_plus(A.Phi_2, B.Phi_1))
    VS = product(V, joint.S) if joint.tau else [[] for _ in range(6)]
    D = congruent(joint.S, V) if joint.tau else []
    for i, J in enumerate(joint.armature):
        D[i][i] = D[i][i] + J
    D_inverse = inverse(D)
    # W maps e to the force between the two with the joint free to give way.
    given = product(product(VS, D_inverse), transposed(VS)) if joint.tau else zeros(6, 6)
    W = matrix_minus(V, given)
    e = minus(plus(joint.c, A.b_2), B.b_1)
    f = plus(times(W, e), times(VS, times(D_inverse, joint.tau)) if joint.tau else _NO_FORCE)
    A21, B12 = transposed(A.Phi_12), B.Phi_12
    return Piece(
        Phi_1=matrix_minus(A.Phi_1, congruent(A21, W)),
        Phi_12=product(product(A.Phi_12, W), B12),
        Phi_2=matrix_minus(B.Phi_2, congruent(B12, W)),
        b_1=minus(A.b_1, times(A.Phi_12, f)),
        b_2=plus(B.b_2, times(transposed(B12), f)),
        joined=_Joined(A, B, joint, V, VS, D_inverse),
    )


def _come_down(piece: Piece, f_1: list[Scalar], f_2: list[Scalar]) -> list[list[Scalar]]:
    """q̈ of all joints inside a piece, in the order of the chain, from the forces on its two ends."""
    if piece.joined is None:
        return []
    A, B, joint = piece.joined.A, piece.joined.B, piece.joined.joint
    a_2 = plus(A.b_2, times(transposed(A.Phi_12), f_1))
    a_1 = plus(B.b_1, times(B.Phi_12, f_2))
    e = minus(plus(joint.c, a_2), a_1)
    columns = transposed(piece.joined.VS) if joint.tau else []
    qddot = times(piece.joined.D_inverse, minus(joint.tau, [dot(column, e) for column in columns]))
    across = plus(times(joint.S, qddot), e) if joint.tau else e
    f = times(piece.joined.V, across)
    return [*_come_down(A, f_1, [-x for x in f]), qddot, *_come_down(B, f, f_2)]
