"""Operators of the linearised models (Jain 1993): how joint forces and accelerations change with the motion."""

from __future__ import annotations

from linkwise.errors import InputError
from linkwise.memoized import cached_property
from linkwise.operators.atoms import WrittenOut
from linkwise.operators.base import Operator
from linkwise.operators.engine import Engine
from linkwise.operators.letters import TreeOperators, needs
from linkwise.operators.rates import LinkRates, block_diagonal, crossed
from linkwise.operators.vectors import Given, Vector


class LinearizedOperators(TreeOperators):
    """The operators that need velocities, or accelerations too: M̂, Ḣ, Ḧ, A_D and B_D among them."""

    def __init__(self, engine: Engine, has_velocity: bool, rates: LinkRates | None) -> None:
        super().__init__(engine, has_velocity)
        self._rates = rates

    @cached_property
    def alpha(self) -> Vector:
        """α = φ*(H*v̇ + Ḣ*v), 6n, about an inertial point at rest, with gravity as in :attr:`a` (Jain 1993 eq. 2.19)."""
        if self._rates is None or self._rates.vdot is None:
            raise needs("alpha", "velocity" if self._rates is None else "acceleration")
        column = self.engine.blocks.written([[x] for x in self._rates.alpha()])[..., 0]
        return Given(self.engine, self.engine.links, column, "α")

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
        return -(self.Q_forces @ self.H.T)

    @cached_property
    def H_ddot(self) -> Operator:
        """Ḧ, N × 6n, with Ḧ* = α×H* + V×Ḣ* (Jain 1993 eq. 2.14)."""
        return -(self.H @ self.S(self.alpha) + self.H_dot @ self.S_V)

    @cached_property
    def A_D(self) -> Operator:
        """A_D = ∂T/∂θ' = 2Hφ[M̂φ*H* + Mφ*Ḣ*], N × N, for joints of one freedom (Jain 1993 lemma 3.1)."""
        self._one_freedom("A_D")
        swept = self.M_hat @ self.phi.T @ self.H.T + self.M @ self.phi.T @ self.H_dot.T
        return 2.0 * (self.H @ self.phi @ swept)

    @cached_property
    def B_D(self) -> Operator:
        """B_D = ∂T/∂θ = Hφ[H̃f + 2M̂φ*Ḣ* + Mφ*Ḧ*], N × N, for joints of one freedom (Jain 1993 lemma 3.1)."""
        self._one_freedom("B_D")
        moved = 2.0 * (self.M_hat @ self.phi.T @ self.H_dot.T) + self.M @ self.phi.T @ self.H_ddot.T
        return self.H @ self.phi @ (self.H_tilde_f + moved)

    @cached_property
    def G_hat(self) -> Operator:
        """Ĝ = P̂*H*D⁻¹, 6n × N (Jain 1993 eq. 4.12, its star mended)."""
        return self.P_hat.T @ self.H.T @ self.D.inv()

    @cached_property
    def K_hat(self) -> Operator:
        """K̂ = E_φĜ, 6n × N (Jain 1993 eq. 4.12)."""
        return self.E_phi @ self.G_hat

    @cached_property
    def tau_hat(self) -> Operator:
        """τ̂ = ĜH, 6n × 6n (Jain 1993 eq. 4.22)."""
        return self.G_hat @ self.H

    @cached_property
    def Y_A(self) -> Operator:
        """Y_A = 2[P̂H* + PḢ*], 6n × N (Jain 1993 eq. 4.14)."""
        return 2.0 * (self.P_hat @ self.H.T + self.P @ self.H_dot.T)

    @cached_property
    def Y_B(self) -> Operator:
        """Y_B = 2P̂Ḣ* + PḦ* + H̃f, 6n × N (Jain 1993 eq. 4.14)."""
        return 2.0 * (self.P_hat @ self.H_dot.T) + self.P @ self.H_ddot.T + self.H_tilde_f

    @cached_property
    def L(self) -> Operator:
        """L = D⁻¹ + K*ΥK, N × N, without branches the diagonal blocks of 𝓜⁻¹ (Jain 1993 eq. 4.22)."""
        return self.D.inv() + self.K.T @ self.Upsilon @ self.K

    @cached_property
    def W(self) -> Operator:
        """W = D⁻¹H - K*ΥE_ψ, N × 6n: the U of Jain 1993 eq. 4.22, whose letter the closures have here."""
        return self.D.inv() @ self.H - self.K.T @ self.Upsilon @ self.E_psi

    @cached_property
    def Q_K(self) -> Operator:
        """Q_K = 2[K̂ - Ĵ*K], 6n × N: the Q of Jain 1993 eq. 4.22."""
        return 2.0 * (self.K_hat - self.J_hat.T @ self.K)

    @cached_property
    def E_A(self) -> Operator:
        """E_A = 2Ḣ* - ΥY_A + 2ĴH*, 6n × N (Jain 1993 eq. 4.22)."""
        return 2.0 * self.H_dot.T - self.Upsilon @ self.Y_A + 2.0 * (self.J_hat @ self.H.T)

    @cached_property
    def E_B(self) -> Operator:
        """E_B = Ḧ* - ΥY_B + 2ĴḢ*, 6n × N (Jain 1993 eq. 4.22)."""
        return self.H_ddot.T - self.Upsilon @ self.Y_B + 2.0 * (self.J_hat @ self.H_dot.T)

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
            raise needs(word, "velocity")
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
