"""Divide and conquer (Featherstone 1999): articulated bodies with handles, joined in pairs. O(log n) in parallel.

Named in Featherstone 2000 §3.5 and its conclusion ([12] there). A piece of the mechanism answers the forces x on its
handles, the joints and loops that lead out of it, by

    y_g = Σ Φ_gh x_h + b_g,

inverse articulated inertias Φ instead of inertias. At a joint y is the acceleration of the child, or minus that of the
parent, in the child's frame; at a loop, its equations on the piece's links. Two pieces that share a joint S are joined
by adding their answers and eliminating the joint's force: y = Sq̈ + c and S*x = τ give, with V = Φ⁻¹ and
D = S*VS (+ J_r),

    x = W(c - e) + VSD⁻¹τ,    W = V - VSD⁻¹S*V,    e = Σ Φ_h x_h + b,

and a loop is closed as soon as one piece has all its links: y = u gives x = Φ⁻¹(u - e), the x of least norm where Φ has
lost rank. Pieces form a binary tree, of depth log n where no body has too many children: assembly runs up it,
forces and accelerations come down.

It is the least accurate of the family, as its author says too: V inverts sums of inverse inertias, and loses their
condition number. A base that does not move is a piece with Φ = 0. All joints, bodies with mass.

DIFFERS FROM PAPER: link coordinates, not absolute ones, which lose digits with the distance from the origin.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from linkwise.algorithms.equations import Constraint
from linkwise.algorithms.factors import Multipliers
from linkwise.algorithms.sweeps import Field
from linkwise.classics.dense import as_rows, congruent, inverse, matrix_minus, negative
from linkwise.classics.requirements import no_mimics, own_mass
from linkwise.classics.terms import Loop, base_acceleration, loops, spatial_terms
from linkwise.dataclass import dataclass
from linkwise.mechanism.tree import Tree
from linkwise.spatial.matrices import identity, matrix_plus, product, times, transposed, zeros
from linkwise.spatial.scalar import Flat, Matrix, Scalar, dot, minus, plus
from linkwise.spatial.vectors import Force

Handle = tuple[str, int]
"""("joint", the index of its link) or ("loop", its number)."""
Values = dict[Handle, list[Scalar]]


@dataclass(frozen=True)
class PieceJoint:
    """S (6 × d), ṡq̇, the joint force and the rotors."""

    S: Matrix
    c: list[Scalar]
    tau: list[Scalar]
    armature: tuple[Scalar, ...]

    def eliminate(self, Phi: Matrix) -> Answer:
        """x by e at this joint, and q̈ with it."""
        V = inverse(Phi)
        if not self.tau:  # a weld
            return Answer(lambda X: product(V, X), lambda e: times(V, minus(self.c, e)), lambda e: [])
        VS = product(V, self.S)
        D = congruent(self.S, V)
        for i, J in enumerate(self.armature):
            D[i][i] = D[i][i] + J
        D_inverse, columns = inverse(D), transposed(VS)
        VSD = product(VS, D_inverse)
        W = matrix_minus(V, product(VSD, columns))

        def accelerate(e: list[Scalar]) -> list[Scalar]:
            gap = minus(self.c, e)
            return times(D_inverse, minus(self.tau, [dot(column, gap) for column in columns]))

        driven = plus(times(W, self.c), times(VSD, self.tau))
        return Answer(lambda X: product(W, X), lambda e: minus(driven, times(W, e)), accelerate)


@dataclass(frozen=True)
class Answer:
    """W X of any X; the force x by e; and the accelerations of the joint's own coordinates by e."""

    weigh: Callable[[Matrix], Matrix]
    force: Callable[[list[Scalar]], list[Scalar]]
    accelerate: Callable[[list[Scalar]], list[Scalar]]


def close(loop: Loop, Phi: Matrix, size: Scalar) -> Answer:
    """At a loop W is Φ⁻¹, never written out: where Φ has lost rank, only what is in its range may be solved for.

    ``size``: the trace of Φ before any joint was eliminated. What the joints leave of it may be rounding alone.
    """
    solve = Multipliers(Phi, floor=size / sum(row[i] for i, row in enumerate(Phi))).solve
    return Answer(
        lambda X: transposed([solve(column) for column in transposed(X)]),
        lambda e: solve(minus(loop.u, e)),
        lambda e: [],
    )


@dataclass(frozen=True)
class Piece:
    """A part of the mechanism by its answer at its handles; and, where it was made from others, how."""

    Phi: dict[tuple[Handle, Handle], Matrix]
    b: Values
    parts: tuple[Piece, ...] = ()
    gone: Handle | None = None
    answer: Answer | None = None

    def seen(self, x: Values) -> list[Scalar]:
        """e at the handle that was eliminated, from the forces on all others; of the piece before."""
        assert self.gone is not None
        whole = self.parts[0]
        e = whole.b[self.gone]
        for h, force in x.items():
            if (self.gone, h) in whole.Phi:
                e = plus(e, times(whole.Phi[self.gone, h], force))
        return e


def merged(A: Piece, B: Piece) -> Piece:
    """Two pieces as one: what they answer at a handle that both have adds up."""
    Phi, b = dict(A.Phi), dict(A.b)
    for pair, block in B.Phi.items():
        Phi[pair] = matrix_plus(Phi[pair], block) if pair in Phi else block
    for handle, value in B.b.items():
        b[handle] = plus(b[handle], value) if handle in b else value
    return Piece(Phi, b, (A, B))


def eliminated(whole: Piece, gone: Handle, answer: Answer) -> Piece:
    """The piece without one of its handles."""
    felt = {h: block for (g, h), block in whole.Phi.items() if g == gone and h != gone}
    Phi = {pair: block for pair, block in whole.Phi.items() if gone not in pair}
    x = answer.force(whole.b[gone])
    handles = list(felt)
    for i, g in enumerate(handles):
        weighted = transposed(answer.weigh(felt[g]))
        for h in handles[i:]:
            change = product(weighted, felt[h])
            Phi[g, h] = matrix_minus(Phi[g, h], change) if (g, h) in Phi else negative(change)
            Phi[h, g] = transposed(Phi[g, h])
    b = {
        h: plus(value, times(transposed(felt[h]), x)) if h in felt else value
        for h, value in whole.b.items()
        if h != gone
    }
    return Piece(Phi, b, (whole,), gone, answer)


def forward_dynamics(tree: Tree, q: Flat, v: Flat, tau: Flat, constraints: Sequence[Constraint] = ()) -> list[Scalar]:
    """q̈ of a tree, or with ``constraints`` of a mechanism with closed loops: assemble, then come down."""
    found: dict[int, list[Scalar]] = {}
    _come_down(assembled(tree, q, v, tau, constraints), {}, found)
    return tree.generalized(Field([found[link.index] for link in tree]))


def assembled(tree: Tree, q: Flat, v: Flat, tau: Flat, constraints: Sequence[Constraint] = ()) -> Piece:
    """The whole mechanism and its base as one piece, without handles."""
    no_mimics(tree, "divide and conquer")
    own_mass(tree, "divide and conquer")
    terms = spatial_terms(tree, q, v)
    closed = loops(tree, q, v, terms, constraints)
    joints = [
        PieceJoint(
            transposed([list(s) for s in link.S(q)], 6) if link.S(q) else [[] for _ in range(6)],
            list(terms[link].c),
            link.rates(tau),
            link.armature,
        )
        for link in tree
    ]
    base = list(base_acceleration(tree))
    ways: list[dict[Handle, Matrix]] = [{("joint", link.index): identity(6)} for link in tree]
    of_base: dict[Handle, Matrix] = {}
    for link in tree:
        phi = link.phi(q)
        down = transposed([[-x for x in phi @ Force.of(row)] for row in identity(6)])
        (of_base if link.parent < 0 else ways[link.parent])["joint", link.index] = down
    for number, loop in enumerate(closed):
        for index, forces in loop.forces.items():
            ways[index]["loop", number] = transposed([list(f) for f in forces])
    pieces = [_body(of_base, zeros(6, 6), base)]
    for link in tree:
        Phi = inverse(as_rows(link.inertia.articulated()))
        pieces.append(_body(ways[link.index], Phi, [-x for x in times(Phi, list(terms[link].p))]))
    neighbours = [(link.parent + 1, link.index + 1) for link in tree]

    def settle(piece: Piece, members: frozenset[int]) -> Piece:
        for number, loop in enumerate(closed):
            handle = ("loop", number)
            # A loop through the world is closed with the base: a body held twice has no Φ⁻¹ left for its joints.
            ends = {index + 1 for index in loop.forces} | (set() if len(loop.forces) > 1 else {0})
            if handle in piece.b and ends <= members:
                free = [pieces[index + 1].Phi[handle, handle] for index in loop.forces]
                size = sum(Phi[i][i] for Phi in free for i in range(len(Phi)))
                piece = eliminated(piece, handle, close(loop, piece.Phi[handle, handle], size))
        return piece

    def assemble(members: frozenset[int]) -> Piece:
        """The pieces of connected bodies joined at the joint that leaves two halves most alike."""
        if len(members) == 1:
            return settle(pieces[next(iter(members))], members)
        child, outer = _halved(members, neighbours)
        handle = ("joint", child - 1)
        whole = merged(assemble(members - outer), assemble(outer))
        return settle(eliminated(whole, handle, joints[child - 1].eliminate(whole.Phi[handle, handle])), members)

    return assemble(frozenset(range(len(pieces))))


def _body(ways: dict[Handle, Matrix], Phi: Matrix, b: list[Scalar]) -> Piece:
    """A body: its answer Φf + b, seen through the ways that forces reach it."""
    weighted = {h: product(Phi, F) for h, F in ways.items()}
    back = {g: transposed(F) for g, F in ways.items()}
    return Piece(
        {(g, h): product(back[g], weighted[h]) for g in ways for h in ways},
        {g: times(back[g], b) for g in ways},
    )


def _halved(members: frozenset[int], neighbours: Sequence[tuple[int, int]]) -> tuple[int, frozenset[int]]:
    """The body outside the joint that halves best, and all that hangs on it; bodies are numbered base to tip."""
    inside = [(parent, child) for parent, child in neighbours if parent in members and child in members]
    hanging = {k: {k} for k in members}
    for parent, child in reversed(inside):
        hanging[parent] |= hanging[child]
    child = min((child for _, child in inside), key=lambda child: abs(2 * len(hanging[child]) - len(members)))
    return child, frozenset(hanging[child])


def _come_down(piece: Piece, x: Values, found: dict[int, list[Scalar]]) -> None:
    """q̈ of all joints inside a piece, from the forces on its handles."""
    if piece.gone is not None and piece.answer is not None:
        e = piece.seen(x)
        kind, number = piece.gone
        if kind == "joint":
            found[number] = piece.answer.accelerate(e)
        x = {**x, piece.gone: piece.answer.force(e)}
    for part in piece.parts:
        _come_down(part, {h: force for h, force in x.items() if h in part.b}, found)
