"""The operators of a tree under the papers' letters: composite and articulated bodies, admittances, velocity terms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from linkwise.errors import InputError
from linkwise.memoized import cached_property
from linkwise.operators.atoms import Diagonal, Omega, Shift, Sweep, Tilde
from linkwise.operators.blocks import Space
from linkwise.operators.engine import Engine
from linkwise.operators.expressions import Identity
from linkwise.operators.operator import Operator
from linkwise.operators.stacked_vectors import Given, Vector, VelocityTerms


class TreeOperators:
    """The operators that every mechanism has: φ, ψ, H, M, P and D among them."""

    def __init__(self, engine: Engine, has_velocity: bool) -> None:
        self.engine = engine
        self._has_velocity = has_velocity

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
        return bare + self.armature if self.has_armature else bare

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

    # Identities, vectors.
    @cached_property
    def I(self) -> Operator:  # noqa: E743
        """I, of whatever size the expression around it asks for."""
        return Identity(self.engine)

    def identity(self, space: Literal["links", "joints"]) -> Operator:
        """I over the links (6n × 6n) or over the joints (N × N)."""
        return Identity(self.engine, {"links": self.engine.links, "joints": self.engine.joints}[space])

    # Velocity terms.
    @cached_property
    def V(self) -> Vector:
        """V = φ*H*v, 6n: the links' spatial velocities."""
        return self._moving("V")

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
        return self.H @ self.phi @ self.f

    def vector(self, values: ArrayLike, name: str = "T") -> Vector:
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

    @cached_property
    def sides(self) -> dict[str, tuple[Operator, Operator]]:
        """The two sides of every rule that was asked for, as operators of this state."""
        return {}

    def _moving(self, word: str) -> Vector:
        if not self._has_velocity:
            raise needs(word, "velocity")
        return VelocityTerms(self.engine, word)

    def _on_links(self, kind: Callable[[Engine, str, Space, Space], Operator], word: str) -> Operator:
        return kind(self.engine, word, self.engine.links, self.engine.links)

    def _diagonal(self, word: str, is_symmetric: bool = True) -> Operator:
        return Diagonal(self.engine, word, self.engine.links, self.engine.links, is_symmetric)

    def __repr__(self) -> str:
        batch = f", batch {self.engine.batch}" if self.engine.batch else ""
        return f"<operators: {len(self.engine.parents)} links, nv = {self.engine.joints.size}{batch}>"


def needs(word: str, which: Literal["velocity", "acceleration"]) -> InputError:
    """The error for what the state does not have."""
    got, call = {"velocity": ("v", "q, v"), "acceleration": ("vdot", "q, v, vdot")}[which]
    return InputError(
        f"ops.{word} needs the {which}", got=f"{got} = None", do=f"ask for the operators with it: operators({call})"
    )
