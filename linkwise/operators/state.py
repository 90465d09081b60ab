"""`Operators`: the spatial operators of one state, or of a batch of states."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from linkwise.algorithms.catalogue import Trees
from linkwise.algorithms.kinematics import Place
from linkwise.array_types import Array
from linkwise.checks import check_choice
from linkwise.errors import InputError
from linkwise.joints import Joint
from linkwise.mechanism.mechanism import Mechanism
from linkwise.mechanism.tree import Tree
from linkwise.memoized import cached_property
from linkwise.operators.array_blocks import ArrayBlocks
from linkwise.operators.atoms import (
    ClosureAdmittance,
    PickOff,
    WrittenOut,
)
from linkwise.operators.blocks import Space
from linkwise.operators.closure_points import ClosingEquations, Point, closing, places
from linkwise.operators.engine import Engine
from linkwise.operators.letters import needs
from linkwise.operators.linearized_operators import LinearizedOperators, LinkRates
from linkwise.operators.links import Lanes
from linkwise.operators.operator import Operator
from linkwise.operators.partition import Partition, partition
from linkwise.operators.scalar_blocks import ScalarBlocks
from linkwise.operators.stacked_vectors import Given, Vector
from linkwise.spatial.flattening import flatten
from linkwise.spatial.scalar import Scalar

Frames = Literal["body", "link"]


class Operators(LinearizedOperators):
    """The operators of the papers for one state (or a batch), under the papers' names.

    With n links and N = nv freedoms: H is N × 6n, G and K are 6n × N, D is N × N with one nv_k × nv_k block for each
    joint, all others are 6n × 6n; where a link's motions have more than six numbers, 6n is the sum of the widths.
    Links are numbered base to tip; block (parent(k), k) of E_φ is φ(parent(k), k).

    Rotor inertias (:attr:`armature`, J_r) add to the joints' inertia: 𝓜 = HφMφ*H* + J_r and D = HPH* + J_r. Then τ̄ is
    no projection any more and P = M + E_ψPE_φ* replaces M + E_ψPE_ψ*; all other identities stay as they are.
    """

    def __init__(
        self,
        engine: Engine,
        find: Callable[[str], Place],
        has_velocity: bool,
        close: Callable[[], ClosingEquations] | None = None,
        rates: LinkRates | None = None,
    ) -> None:
        super().__init__(engine, has_velocity, rates)
        engine.owner = self
        self._find = find
        self._close = close

    # Points.
    def B(self, points: Point | Sequence[Point] | None = None) -> Operator:
        """B, 6n × 6c: forces at c points, summed on their links (Rodriguez 1989 eq. 2.13).

        Args:
            points: names of bodies or frames, each alone or as ``(name, (x, y, z))`` for a place in that frame. Forces
                and motions at a point are in the axes of its frame. The points of closure if left out.
        """
        if points is None:
            return PickOff(self.engine, self.closing.places, self.closing.points)
        labels, found = places(points, self._find)
        return PickOff(self.engine, found, Space(f"points {labels}", (6,) * len(found), of_points=True))

    def J(self, points: Point | Sequence[Point] | None = None) -> Operator:
        """J = B*φ*H*, 6c × N: the points' velocities from joint rates (Rodriguez 1989 eq. 2.14), in their frames."""
        return self.B(points).T @ self.phi.T @ self.H.T

    # Closed systems.
    @cached_property
    def A(self) -> Operator:
        """A, m × 6c: what the m equations of the closures ask of the motions at the c points of closure.

        Their rates are A J v, with J = ``ops.J()`` at those points (Rodriguez 1989 eq. 2.16). Points of closure are
        the two frames of each closure, b before a, less those on the world; of a coupling, for each of its joints, the
        frames of the link and of its parent, since a joint's rate is the motion between these two.
        """
        closing = self.closing
        return WrittenOut(self.engine, "A", self.engine.blocks.written(closing.A), closing.constraints, closing.points)

    @cached_property
    def Lambda(self) -> Operator:
        """Λ = B*ΩB, 6c × 6c: accelerations of the points of closure from forces at them (Rodriguez 1989 eq. 3.10).

        AΛA*, m × m, is that of the constraints, J_c𝓜⁻¹J_c*. Its inverse is solved as a matrix; where constraints are
        redundant it gives the multipliers of least norm.
        """
        return ClosureAdmittance(self.Omega, self.B())

    def partition(self, secondary: Sequence[str]) -> Partition:
        """The closed system in two parts, with A_P, A_S, Λ_P and Λ_S (Rodriguez 1989 §2.3).

        Args:
            secondary: names of bodies on the base; they and all that hangs on them are the part that may change.
        """
        return partition(self, secondary)

    @cached_property
    def U(self) -> Vector:
        """U, m: the closures' demand on accelerations by velocities and time: A J v̇ = U (Rodriguez 1989 eq. 2.17)."""
        if not self._has_velocity:
            raise needs("U", "velocity")
        closing = self.closing
        column = self.engine.blocks.written([[x] for x in closing.U])[..., 0]
        return Given(self.engine, closing.constraints, column, "U")

    @property
    def has_closures(self) -> bool:
        """Whether anything closes the mechanism."""
        return self._close is not None

    @cached_property
    def closing(self) -> ClosingEquations:
        """The points of closure, and the rows A and U that close there."""
        if self._close is None:
            raise InputError(
                "the model has no closures, and so no points of closure",
                do="give points: ops.B(points), ops.J(points); or a model with closures",
            )
        return self._close()


def operators(
    trees: Trees,
    q: ArrayLike,
    v: ArrayLike | None = None,
    vdot: ArrayLike | None = None,
    *,
    frames: Frames = "body",
    t: ArrayLike | None = None,
) -> Operators:
    """The operators of a mechanism at q (..., nq), v, v̇ (..., nv) and t (...); see ``Model.operators``."""
    check_choice("frames", frames, ("body", "link"))
    tree = trees.in_body_frames if frames == "body" else trees.fast
    _refuse_mimics(trees.mechanism)
    if v is None and vdot is not None:
        raise InputError("operators of an acceleration need the velocity, too", got="v = None", do="give v")
    q, v, vdot = _state(tree, q, v, vdot)
    symbolic = any(x is not None and np.asarray(x).dtype == object for x in (q, v, vdot, t)) or (
        trees.p is not None and _has_symbols(tree)
    )
    if symbolic and q.ndim > 1:
        raise InputError("operators of symbols are made for one state", got=f"q {q.shape}", allowed=f"({tree.nq})")
    blocks: ScalarBlocks | ArrayBlocks
    if symbolic:
        blocks = ScalarBlocks.of(tree, _scalars(q), None if v is None else _scalars(v))
    else:
        blocks = ArrayBlocks.of(tree, q, v)

    of = _scalars if symbolic else _columns

    def close() -> ClosingEquations:
        time = 0.0 if t is None else of(np.broadcast_to(t, q.shape[:-1])[..., None])[0]
        return closing(tree, of(q), None if v is None else of(v), trees.constraints(tree), time)

    closes = close if trees.mechanism.closures else None
    moves = None
    if v is not None and not tree.has_modes:
        moves = LinkRates(tree, of(q), of(v), None if vdot is None else of(vdot))
    return Operators(Engine(blocks), lambda name: trees.place(tree, name), v is not None, closes, moves)


def _refuse_mimics(mechanism: Mechanism) -> None:
    followers = [joint.name for joint in mechanism.joints if joint.mimic is not None]
    if followers:
        raise InputError(
            "the operators need independent joints, and some of this model follow others",
            got=f"mimic joints {', '.join(map(repr, followers[:8]))}",
            allowed="a model without mimic joints: a shared coordinate couples branches, and 𝓜 has no tree factors",
            do="lock them: lw.load(file, locked=[…])",
        )


def _state(
    tree: Tree, q: ArrayLike, v: ArrayLike | None, vdot: ArrayLike | None
) -> tuple[Array, Array | None, Array | None]:
    """Arrays of one batch shape; object arrays stay what they are, numbers become floats."""
    arrays = []
    for name, value, size in (("q", q, tree.nq), ("v", v, tree.nv), ("vdot", vdot, tree.nv)):
        if value is None:
            continue
        array = np.asarray(value)
        if array.dtype not in (np.float32, object):
            array = array.astype(float)
        if array.shape[-1:] != (size,):
            allowed = f"(..., {size})"
            raise InputError(f"{name} has the wrong shape for operators", got=str(array.shape), allowed=allowed)
        arrays.append(array)
    if len({a.dtype for a in arrays} - {np.dtype(object)}) > 1:
        arrays = [a.astype(float) if a.dtype != object else a for a in arrays]
    try:
        batch = np.broadcast_shapes(*(a.shape[:-1] for a in arrays))
    except ValueError:
        raise InputError(
            "the batches of q, v and vdot do not fit together", got=", ".join(str(a.shape) for a in arrays)
        ) from None
    arrays = [np.broadcast_to(a, (*batch, a.shape[-1])) for a in arrays]
    return arrays[0], arrays[1] if v is not None else None, arrays[2] if vdot is not None else None


def _has_symbols(tree: Tree) -> bool:
    """Whether run-time parameters made the tree symbolic."""
    values = (x for link in tree for x in flatten((link, tree.gravity))[0])
    return not all(isinstance(x, (float, int, np.floating, Joint)) for x in values)


def _scalars(array: Array) -> list[Scalar]:
    return [float(x) if isinstance(x, (int, np.floating, np.integer)) else x for x in array]


def _columns(array: Array) -> list[Scalar]:
    """Each number of a state, for all states at once."""
    return [Lanes(column) for column in array.reshape(math.prod(array.shape[:-1]), array.shape[-1]).T]
