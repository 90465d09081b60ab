"""`Operators`: the spatial operators of one state, or of a batch of states."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from linkwise.algorithms.catalogue import Trees
from linkwise.algorithms.kinematics import Place
from linkwise.errors import InputError
from linkwise.joints import Joint
from linkwise.mechanism.mechanism import Mechanism
from linkwise.mechanism.tree import Tree
from linkwise.memoized import cached_property
from linkwise.operators.array_blocks import ArrayBlocks
from linkwise.operators.atoms import (
    ClosureAdmittance,
    Diagonal,
    Omega,
    PickOff,
    Shift,
    Sweep,
    Tilde,
    WrittenOut,
)
from linkwise.operators.base import Operator
from linkwise.operators.blocks import Blocks, Space
from linkwise.operators.engine import Engine
from linkwise.operators.expressions import Identity
from linkwise.operators.lanes import Lanes
from linkwise.operators.partition import Partition, partition
from linkwise.operators.points import Closing, Point, closing, places
from linkwise.operators.rates import LinkRates, block_diagonal, crossed
from linkwise.operators.scalar_blocks import ScalarBlocks
from linkwise.operators.vectors import Given, Moving, Vector
from linkwise.spatial.flattening import flatten

Frames = Literal["body", "link"]


class Operators:
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
        close: Callable[[], Closing] | None = None,
        rates: LinkRates | None = None,
    ) -> None:
        self.engine = engine
        engine.owner = self
        self._find = find
        self._has_velocity = has_velocity
        self._close = close
        self._rates = rates

    # Composite bodies.
    @cached_property
    def E_phi(self) -> Operator:
        """E_φ, 6n × 6n: blocks φ(parent(k), k) (Jain 1991 eq. 19)."""
        return self._on_links(Shift, "E_phi")

    @cached_property
    def phi(self) -> Operator:
        """φ = (I - E_φ)⁻¹, 6n × 6n: forces summed towards the base (Jain 1991 eq. 20)."""
        return self._on_links(Sweep, "phi")

    @cached_property
    def phi_tilde(self) -> Operator:
        """φ~ = φ - I, 6n × 6n (Jain 1991 lemma 3.1)."""
        return self._on_links(Tilde, "phi_tilde")

    @cached_property
    def H(self) -> Operator:
        """H, N × 6n, block diagonal: H*(k) = S maps a joint's rates to its relative motion (Jain 1991 eq. 18)."""
        return Diagonal(self.engine, "H", self.engine.joints, self.engine.links, False)

    @cached_property
    def M(self) -> Operator:
        """M, 6n × 6n, block diagonal: the links' own inertias (Jain 1991 eq. 10)."""
        return self._diagonal("M")

    @cached_property
    def R(self) -> Operator:
        """R = M + E_φRE_φ*, 6n × 6n, block diagonal: inertias of composite bodies (Jain 1991 eq. 25)."""
        return self._diagonal("R")

    @cached_property
    def armature(self) -> Operator:
        """J_r, N × N, diagonal: rotor inertias seen at the joints."""
        return Diagonal(self.engine, "armature", self.engine.joints, self.engine.joints, True)

    @cached_property
    def mass_matrix(self) -> Operator:
        """𝓜 = HφMφ*H*, N × N, and J_r added where there are rotor inertias (Jain 1991 eq. 21)."""
        bare = self.H @ self.phi @ self.M @ self.phi.T @ self.H.T
        whole: Operator = bare + self.armature if self.has_armature else bare
        return whole

    # Articulated bodies.
    @cached_property
    def P(self) -> Operator:
        """P, 6n × 6n, block diagonal: inertias of articulated bodies (Jain 1991 eq. 40, 42)."""
        return self._diagonal("P")

    @cached_property
    def D(self) -> Operator:
        """D = HPH* (+ J_r), N × N, block diagonal: nv_k × nv_k for each joint (Jain 1991 eq. 53)."""
        return Diagonal(self.engine, "D", self.engine.joints, self.engine.joints, True)

    @cached_property
    def D_inverse_root(self) -> Operator:
        """D⁻½ with D⁻¹ = D⁻½*D⁻½, N × N, block diagonal, lower triangular (Rodriguez 1989 eq. 3.13)."""
        return Diagonal(self.engine, "D_inverse_root", self.engine.joints, self.engine.joints, False)

    @cached_property
    def G(self) -> Operator:
        """G = PH*D⁻¹, 6n × N, block diagonal: the Kalman gain (Jain 1991 eq. 53)."""
        return Diagonal(self.engine, "G", self.engine.links, self.engine.joints, False)

    @cached_property
    def K(self) -> Operator:
        """K = E_φG, 6n × N: the predictor gain (Jain 1991 eq. 53)."""
        return Shift(self.engine, "K", self.engine.links, self.engine.joints)

    @cached_property
    def tau(self) -> Operator:
        """τ = GH, 6n × 6n, block diagonal: the papers' projection (Jain 1991 eq. 53). Not a joint force."""
        return self._diagonal("tau", False)

    @cached_property
    def tau_bar(self) -> Operator:
        """τ̄ = I - GH, 6n × 6n, block diagonal: what of a force the joint passes on (Jain 1991 eq. 53)."""
        return self._diagonal("tau_bar", False)

    @cached_property
    def E_psi(self) -> Operator:
        """E_ψ = E_φτ̄, 6n × 6n (Jain 1991 eq. 53)."""
        return self._on_links(Shift, "E_psi")

    @cached_property
    def psi(self) -> Operator:
        """ψ = (I - E_ψ)⁻¹, 6n × 6n: forces summed towards the base across free joints (Jain 1991 eq. 54)."""
        return self._on_links(Sweep, "psi")

    @cached_property
    def psi_tilde(self) -> Operator:
        """ψ~ = ψ - I, 6n × 6n (Rodriguez 1989 lemma 5)."""
        return self._on_links(Tilde, "psi_tilde")

    @cached_property
    def Upsilon(self) -> Operator:
        """Υ, 6n × 6n, block diagonal: the links' own admittances, the diagonal blocks of Ω.

        Υ(k) = H*(k)D⁻¹(k)H(k) + ψ*(p,k)Υ(p)ψ(p,k), p the parent of k (Rodriguez 1989 eq. A.3).
        """
        return self._diagonal("Upsilon")

    @cached_property
    def Omega(self) -> Operator:
        """Ω = ψ*H*D⁻¹Hψ, 6n × 6n: accelerations of all links from forces on all links (Rodriguez 1989 eq. 3.10)."""
        return self._on_links(Omega, "Omega")

    # Identities, points.
    @cached_property
    def I(self) -> Operator:  # noqa: E743
        """I, of whatever size the expression around it asks for."""
        return Identity(self.engine)

    def identity(self, space: Literal["links", "joints"]) -> Operator:
        """I over the links (6n × 6n) or over the joints (N × N)."""
        return Identity(self.engine, {"links": self.engine.links, "joints": self.engine.joints}[space])

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
        jacobian: Operator = self.B(points).T @ self.phi.T @ self.H.T
        return jacobian

    # Linearised models.
    @cached_property
    def M_hat(self) -> Operator:
        """M̂ = ½(Ṁ - Q[MV]), 6n × 6n, block diagonal, M̂V = ṀV (Jain 1993 eq. 2.7)."""
        return self._rate("M_hat")

    @cached_property
    def R_hat(self) -> Operator:
        """R̂ = M̂ + E_φR̂E_φ*, 6n × 6n, block diagonal (Jain 1993 lemma 3.2)."""
        return self._rate("R_hat")

    @cached_property
    def P_hat(self) -> Operator:
        """P̂ = M̂ + E_ψP̂E_φ*, 6n × 6n, block diagonal (Jain 1993 eq. 4.11)."""
        return self._rate("P_hat")

    @cached_property
    def H_dot(self) -> Operator:
        """Ḣ, N × 6n, with Ḣ* = V×H* for axes that are fixed in their links (Jain 1993 eq. 2.13)."""
        return self._rate("H_dot")

    @cached_property
    def J_hat(self) -> Operator:
        """Ĵ with ĴE_φ* = E_ψ*Ĵ + τ̂*E_φ*, 6n × 6n, block diagonal, base to tip (Jain 1993 eq. 4.22)."""
        return self._rate("J_hat")

    def S(self, X: Vector) -> Operator:
        """S[X], 6n × 6n, blocks [[a~, b~], [0, a~]] for X = [a; b] on each link (Jain 1993 eq. 1.5): -S[X]* is X×."""
        return self._crossed("S", X)

    def Q(self, X: Vector) -> Operator:
        """Q[X], 6n × 6n, blocks [[a~, b~], [b~, 0]] for X = [a; b] on each link: Q[X]Y = -S[Y]X (Jain 1993 eq. 1.6)."""
        return self._crossed("Q", X)

    @cached_property
    def S_V(self) -> Operator:
        """S[V], 6n × 6n: Ṁ = S[V]M + MS[V]*, Ḣ* = -S[V]*H* (Jain 1993 eq. 2.6, 2.13)."""
        return self.S(self.V)

    @cached_property
    def S_joints(self) -> Operator:
        """S[H*β], 6n × 6n, of the relative velocities H*β = V - E_φ*V across the joints."""
        return self.S(self.V - self.E_phi.T @ self.V)

    @cached_property
    def Q_momenta(self) -> Operator:
        """Q[MV], 6n × 6n (Jain 1993 eq. 2.7)."""
        return self.Q(self.M @ self.V)

    @cached_property
    def Q_own_forces(self) -> Operator:
        """Q[x], 6n × 6n, of the force x = Mα + M̂V that each link by itself needs (Jain 1993 eq. 2.19)."""
        return self.Q(self.M @ self.alpha + self.M_hat @ self.V)

    @cached_property
    def Q_forces(self) -> Operator:
        """Q[f], 6n × 6n, of the forces f = φ(Mα + M̂V) across the joints (Jain 1993 eq. 2.19)."""
        return self.Q(self.phi @ (self.M @ self.alpha + self.M_hat @ self.V))

    @cached_property
    def H_tilde_f(self) -> Operator:
        """H̃f = -Q[f]H*, 6n × N: columns S[H*(k)]f(k), f the forces across the joints (Jain 1993 eq. 3.2, A.13)."""
        made: Operator = -(self.Q_forces @ self.H.T)
        return made

    @cached_property
    def H_ddot(self) -> Operator:
        """Ḧ, N × 6n, with Ḧ* = α×H* + V×Ḣ* (Jain 1993 eq. 2.14)."""
        made: Operator = -(self.H @ self.S(self.alpha) + self.H_dot @ self.S_V)
        return made

    @cached_property
    def A_D(self) -> Operator:
        """A_D = ∂T/∂θ' = 2Hφ[M̂φ*H* + Mφ*Ḣ*], N × N, for joints of one freedom (Jain 1993 lemma 3.1)."""
        self._one_freedom("A_D")
        made: Operator = 2.0 * (
            self.H @ self.phi @ (self.M_hat @ self.phi.T @ self.H.T + self.M @ self.phi.T @ self.H_dot.T)
        )
        return made

    @cached_property
    def B_D(self) -> Operator:
        """B_D = ∂T/∂θ = Hφ[H̃f + 2M̂φ*Ḣ* + Mφ*Ḧ*], N × N, for joints of one freedom (Jain 1993 lemma 3.1)."""
        self._one_freedom("B_D")
        moved = 2.0 * (self.M_hat @ self.phi.T @ self.H_dot.T) + self.M @ self.phi.T @ self.H_ddot.T
        made: Operator = self.H @ self.phi @ (self.H_tilde_f + moved)
        return made

    @cached_property
    def G_hat(self) -> Operator:
        """Ĝ = P̂*H*D⁻¹, 6n × N (Jain 1993 eq. 4.12, its star mended)."""
        gain: Operator = self.P_hat.T @ self.H.T @ self.D.inv()
        return gain

    @cached_property
    def K_hat(self) -> Operator:
        """K̂ = E_φĜ, 6n × N (Jain 1993 eq. 4.12)."""
        made: Operator = self.E_phi @ self.G_hat
        return made

    @cached_property
    def tau_hat(self) -> Operator:
        """τ̂ = ĜH, 6n × 6n (Jain 1993 eq. 4.22)."""
        made: Operator = self.G_hat @ self.H
        return made

    @cached_property
    def Y_A(self) -> Operator:
        """Y_A = 2[P̂H* + PḢ*], 6n × N (Jain 1993 eq. 4.14)."""
        made: Operator = 2.0 * (self.P_hat @ self.H.T + self.P @ self.H_dot.T)
        return made

    @cached_property
    def Y_B(self) -> Operator:
        """Y_B = 2P̂Ḣ* + PḦ* + H̃f, 6n × N (Jain 1993 eq. 4.14)."""
        made: Operator = 2.0 * (self.P_hat @ self.H_dot.T) + self.P @ self.H_ddot.T + self.H_tilde_f
        return made

    @cached_property
    def L(self) -> Operator:
        """L = D⁻¹ + K*ΥK, N × N, without branches the diagonal blocks of 𝓜⁻¹ (Jain 1993 eq. 4.22)."""
        made: Operator = self.D.inv() + self.K.T @ self.Upsilon @ self.K
        return made

    @cached_property
    def W(self) -> Operator:
        """W = D⁻¹H - K*ΥE_ψ, N × 6n: the U of Jain 1993 eq. 4.22, whose letter the closures have here."""
        made: Operator = self.D.inv() @ self.H - self.K.T @ self.Upsilon @ self.E_psi
        return made

    @cached_property
    def Q_K(self) -> Operator:
        """Q_K = 2[K̂ - Ĵ*K], 6n × N: the Q of Jain 1993 eq. 4.22."""
        made: Operator = 2.0 * (self.K_hat - self.J_hat.T @ self.K)
        return made

    @cached_property
    def E_A(self) -> Operator:
        """E_A = 2Ḣ* - ΥY_A + 2ĴH*, 6n × N (Jain 1993 eq. 4.22)."""
        made: Operator = 2.0 * self.H_dot.T - self.Upsilon @ self.Y_A + 2.0 * (self.J_hat @ self.H.T)
        return made

    @cached_property
    def E_B(self) -> Operator:
        """E_B = Ḧ* - ΥY_B + 2ĴḢ*, 6n × N (Jain 1993 eq. 4.22)."""
        made: Operator = self.H_ddot.T - self.Upsilon @ self.Y_B + 2.0 * (self.J_hat @ self.H_dot.T)
        return made

    @property
    def has_rates(self) -> bool:
        """Whether M̂ and its kin are there: for rigid links, where the velocity is given."""
        return self._rates is not None

    @property
    def has_accelerations(self) -> bool:
        """Whether Ḧ and H̃f are there: where the acceleration is given, too."""
        return self._rates is not None and self._rates.vdot is not None

    def _rate(self, word: str) -> Operator:
        if self._rates is None:
            raise _needs(word, "velocity")
        matrix = self.engine.blocks.written(block_diagonal(self._rates.blocks(word)))
        rows = self.engine.joints if word == "H_dot" else self.engine.links
        return WrittenOut(self.engine, word, matrix, rows, self.engine.links)

    def _crossed(self, word: str, X: Vector) -> Operator:
        links = self.engine.links
        if X.space != links or set(links.sizes) > {6}:
            raise InputError(
                f"{word}[{X.name}] is made of spatial vectors, six numbers on each link",
                got=f"a vector of {X.space.size} {X.space.name}",
                allowed=f"one over {len(links.sizes)} rigid links, e.g. ops.V",
            )
        return WrittenOut(self.engine, word, crossed(X.value, word == "Q"), links, links, X)

    def _one_freedom(self, word: str) -> None:
        if max(self.engine.joints.sizes, default=0) > 1:
            raise InputError(
                f"ops.{word} is the derivative for joints of one freedom, as in the paper",
                got=f"a joint of {max(self.engine.joints.sizes)} freedoms",
                do="use model.linearize_inverse(q, v, vdot), which takes every joint",
            )

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
            raise _needs("U", "velocity")
        closing = self.closing
        column = self.engine.blocks.written([[x] for x in closing.U])[..., 0]
        return Given(self.engine, closing.constraints, column, "U")

    # Velocity terms.
    @cached_property
    def V(self) -> Vector:
        """V = φ*H*v, 6n: the links' spatial velocities."""
        return self._moving("V")

    @cached_property
    def alpha(self) -> Vector:
        """α = φ*(H*v̇ + Ḣ*v), 6n, about an inertial point at rest, with gravity as in :attr:`a` (Jain 1993 eq. 2.19)."""
        if self._rates is None or self._rates.vdot is None:
            raise _needs("alpha", "velocity" if self._rates is None else "acceleration")
        column = self.engine.blocks.written([[x] for x in self._rates.alpha()])[..., 0]
        return Given(self.engine, self.engine.links, column, "α")

    @cached_property
    def a(self) -> Vector:
        """a, 6n: Coriolis and centrifugal accelerations (Jain 1991 eq. 14).

        Gravity is in it: a base at rest in the field g is one that accelerates by -g, so φ*(base, k)[0; -g] is added
        for the links on the base. ``model.with_gravity((0, 0, 0))`` leaves it out.
        """
        return self._moving("a")

    @cached_property
    def b(self) -> Vector:
        """Gyroscopic forces b = [ω~Jω; ω~ω~h], 6n (Jain 1991 eq. 16)."""
        return self._moving("b")

    @cached_property
    def f(self) -> Vector:
        """The force f = Mφ*a + b that each link needs for v̇ = 0, gravity included, 6n; 𝓒 = Hφf (Jain 1991 eq. 21)."""
        return self._moving("f")

    @cached_property
    def C(self) -> Vector:
        """𝓒 = Hφ(Mφ*a + b), N: velocity-dependent and gravity forces at the joints (Jain 1991 eq. 21)."""
        bias: Vector = self.H @ self.phi @ self.f
        return bias

    def vector(self, values: Any, name: str = "T") -> Vector:
        """An array as a stacked vector (over joints or links, by its length) whose expressions run as one.

        Args:
            values: (..., N) or (..., 6n).
            name: how it is shown.
        """
        size = np.shape(values)[-1:]
        spaces = [s for s in (self.engine.joints, self.engine.links) if size == (s.size,)]
        if not spaces:
            raise InputError(
                "a vector fits neither the joints nor the links",
                got=str(np.shape(values)),
                allowed=f"(..., {self.engine.joints.size}) or (..., {self.engine.links.size})",
            )
        return Given(self.engine, spaces[0], values, name)

    @cached_property
    def has_armature(self) -> bool:
        """Whether any joint has rotor inertia."""
        return self.engine.blocks.has_armature

    @cached_property
    def has_branches(self) -> bool:
        """Whether any link has more than one child."""
        parents = [parent for parent in self.engine.parents if parent >= 0]
        return len(set(parents)) < len(parents)

    @property
    def has_closures(self) -> bool:
        """Whether anything closes the mechanism."""
        return self._close is not None

    @cached_property
    def closing(self) -> Closing:
        """The points of closure, and the rows A and U that close there."""
        if self._close is None:
            raise InputError(
                "the model has no closures, and so no points of closure",
                do="give points: ops.B(points), ops.J(points); or a model with closures",
            )
        return self._close()

    @cached_property
    def sides(self) -> dict[Any, tuple[Operator, Operator]]:
        """The two sides of every rule that was asked for, as operators of this state."""
        return {}

    def _moving(self, word: str) -> Vector:
        if not self._has_velocity:
            raise _needs(word, "velocity")
        return Moving(self.engine, word)

    def _on_links(self, kind: Any, word: str) -> Operator:
        made: Operator = kind(self.engine, word, self.engine.links, self.engine.links)
        return made

    def _diagonal(self, word: str, is_symmetric: bool = True) -> Operator:
        return Diagonal(self.engine, word, self.engine.links, self.engine.links, is_symmetric)

    def __repr__(self) -> str:
        batch = f", batch {self.engine.batch}" if self.engine.batch else ""
        return f"<operators: {len(self.engine.parents)} links, nv = {self.engine.joints.size}{batch}>"


def operators(
    trees: Trees, q: Any, v: Any = None, vdot: Any = None, *, frames: Frames = "body", t: Any = None
) -> Operators:
    """The operators of a mechanism at q (..., nq), v, v̇ (..., nv) and t (...); see ``Model.operators``."""
    if frames not in ("body", "link"):
        raise InputError("no such frames", got=repr(frames), allowed='"body" or "link"')
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
    blocks: Blocks
    if symbolic:
        blocks = ScalarBlocks.of(tree, _scalars(q), None if v is None else _scalars(v))
    else:
        blocks = ArrayBlocks.of(tree, q, v)

    of = _scalars if symbolic else _columns

    def close() -> Closing:
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


def _state(tree: Tree, q: Any, v: Any, vdot: Any) -> tuple[Any, Any, Any]:
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


def _scalars(array: Any) -> list[Any]:
    return [float(x) if isinstance(x, (int, np.floating, np.integer)) else x for x in array]


def _columns(array: Any) -> list[Lanes]:
    """Each number of a state, for all states at once."""
    return [Lanes(column) for column in array.reshape(math.prod(array.shape[:-1]), array.shape[-1]).T]


def _needs(word: str, which: Literal["velocity", "acceleration"]) -> InputError:
    got, call = {"velocity": ("v", "q, v"), "acceleration": ("vdot", "q, v, vdot")}[which]
    return InputError(
        f"ops.{word} needs the {which}", got=f"{got} = None", do=f"ask for the operators with it: operators({call})"
    )
