"""The identities of the papers, one rule each: a left side that may be replaced by a right side.

000: Jain, Unified formulation of dynamics for serial rigid multibody systems. 001: Jain and Rodriguez, Linearization of
manipulator dynamics using spatial operators. 004: Rodriguez, Jain and Kreutz, Spatial operator algebra framework for
multibody system dynamics.

A rule of use ``simplify`` takes away sweeps or factors, one of use ``inverse`` serves to invert, and one of use
``derive`` changes the form only and is applied by name (``expr.rewrite(RULES["…"])``). Each also holds for the adjoints
of its two sides.

DIFFERS FROM PAPER: with rotor inertias J_r on the joints, D = HPH* + J_r and 𝓜 = HφMφ*H* + J_r. The rules that this
touches have J_r on their left side when the mechanism has any, or are not used (``needs`` says so).

DIFFERS FROM PAPER: 004 states eq. A.3 and lemma 5 for trees with a block-diagonal Υ. E_ψ*ΥE_ψ then also has blocks
between the children of one parent, which Υ has not, and Υ + ψ~*Υ + Υψ~ lacks the blocks of Ω between branches. As
equations between operators the two hold where no link has two children; on any tree they hold for the diagonal
blocks, and Ω = ψ*H*D⁻¹Hψ holds whole.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from linkwise.operators.base import Operator
from linkwise.operators.expressions import Inverse, Zero, total

if TYPE_CHECKING:
    from linkwise.operators.state import Operators

Use = Literal["simplify", "inverse", "derive"]
Need = Literal["no rotor inertia", "no branches"]
Sides = tuple[Operator, Operator]


@dataclass(frozen=True)
class Rule:
    """left = right, for every state."""

    name: str
    source: str
    """Paper and equation or lemma."""
    statement: str
    """The identity in words or letters."""
    use: Use
    make: Callable[[Operators], Sides]
    needs: Need | None = None

    def holds_for(self, ops: Operators) -> bool:
        """Whether the rule may be used on this mechanism."""
        if self.needs == "no rotor inertia":
            return not ops.has_armature
        return self.needs is None or not ops.has_branches

    def sides(self, ops: Operators) -> Sides:
        """The two sides as operators of one state."""
        known = ops.sides.get(self.name)
        if known is None:
            known = ops.sides[self.name] = self.make(ops)
        return known

    def __repr__(self) -> str:
        return f"<rule {self.name}, {self.source}: {self.statement}>"


RULES: dict[str, Rule] = {}
"""All rules by name, in the order in which they are tried."""


def _rule(
    source: str, use: Use = "simplify", *, needs: Need | None = None
) -> Callable[[Callable[[Operators], Sides]], Rule]:
    def enter(make: Callable[[Operators], Sides]) -> Rule:
        statement = " ".join((make.__doc__ or "").split())
        rule = RULES[make.__name__] = Rule(make.__name__, source, statement, use, make, needs)
        return rule

    return enter


# Sweeps and what they invert.
@_rule("000 eq. 20")
def phi_is_inverse(o: Operators) -> Sides:
    """(I - E_φ)⁻¹ = φ."""
    return Inverse(o.I - o.E_phi), o.phi


@_rule("000 eq. 20", "inverse")
def phi_inverse(o: Operators) -> Sides:
    """φ⁻¹ = I - E_φ."""
    return Inverse(o.phi), o.I - o.E_phi


@_rule("000 eq. 20")
def phi_undone(o: Operators) -> Sides:
    """(I - E_φ) φ = I."""
    return (o.I - o.E_phi) @ o.phi, o.identity("links")


@_rule("000 eq. 20")
def phi_undone_after(o: Operators) -> Sides:
    """φ (I - E_φ) = I."""
    return o.phi @ (o.I - o.E_phi), o.identity("links")


@_rule("000 eq. 54")
def psi_is_inverse(o: Operators) -> Sides:
    """(I - E_ψ)⁻¹ = ψ."""
    return Inverse(o.I - o.E_psi), o.psi


@_rule("000 eq. 54", "inverse")
def psi_inverse(o: Operators) -> Sides:
    """ψ⁻¹ = I - E_ψ."""
    return Inverse(o.psi), o.I - o.E_psi


@_rule("000 eq. 54")
def psi_undone(o: Operators) -> Sides:
    """(I - E_ψ) ψ = I."""
    return (o.I - o.E_psi) @ o.psi, o.identity("links")


@_rule("000 eq. 54")
def psi_undone_after(o: Operators) -> Sides:
    """ψ (I - E_ψ) = I."""
    return o.psi @ (o.I - o.E_psi), o.identity("links")


@_rule("000 lemma 3.1")
def phi_less_identity(o: Operators) -> Sides:
    """φ - I = φ~."""
    return o.phi - o.I, o.phi_tilde


@_rule("000 lemma 3.1")
def phi_shifted(o: Operators) -> Sides:
    """E_φ φ = φ~."""
    return o.E_phi @ o.phi, o.phi_tilde


@_rule("000 lemma 3.1")
def phi_of_shift(o: Operators) -> Sides:
    """φ E_φ = φ~."""
    return o.phi @ o.E_phi, o.phi_tilde


@_rule("000 lemma 3.1")
def phi_from_tilde(o: Operators) -> Sides:
    """I + φ~ = φ."""
    return o.I + o.phi_tilde, o.phi


@_rule("004 lemma 5")
def psi_less_identity(o: Operators) -> Sides:
    """ψ - I = ψ~."""
    return o.psi - o.I, o.psi_tilde


@_rule("004 lemma 5")
def psi_shifted(o: Operators) -> Sides:
    """E_ψ ψ = ψ~."""
    return o.E_psi @ o.psi, o.psi_tilde


@_rule("004 lemma 5")
def psi_of_shift(o: Operators) -> Sides:
    """ψ E_ψ = ψ~."""
    return o.psi @ o.E_psi, o.psi_tilde


@_rule("004 lemma 5")
def psi_from_tilde(o: Operators) -> Sides:
    """I + ψ~ = ψ."""
    return o.I + o.psi_tilde, o.psi


# Composite bodies.
@_rule("000 eq. 25")
def composite_recursion(o: Operators) -> Sides:
    """M + E_φ R E_φ* = R."""
    return o.M + o.E_phi @ o.R @ o.E_phi.T, o.R


@_rule("000 eq. 26")
def composite_residue(o: Operators) -> Sides:
    """R - E_φ R E_φ* = M."""
    return o.R - o.E_phi @ o.R @ o.E_phi.T, o.M


@_rule("000 eq. 27")
def composite_gathered(o: Operators) -> Sides:
    """R + φ~R + Rφ~* = φMφ*."""
    return o.R + o.phi_tilde @ o.R + o.R @ o.phi_tilde.T, o.phi @ o.M @ o.phi.T


# Definitions of the articulated body.
@_rule("000 eq. 53")
def joint_inertia(o: Operators) -> Sides:
    """HPH* (+ J_r) = D."""
    return _with_rotors(o, o.H @ o.P @ o.H.T), o.D


@_rule("000 eq. 53")
def gain(o: Operators) -> Sides:
    """P H* D⁻¹ = G."""
    return o.P @ o.H.T @ o.D.inv(), o.G


@_rule("000 eq. 53")
def predictor_gain(o: Operators) -> Sides:
    """E_φ G = K."""
    return o.E_phi @ o.G, o.K


@_rule("000 eq. 53")
def projection(o: Operators) -> Sides:
    """G H = τ."""
    return o.G @ o.H, o.tau


@_rule("000 eq. 53")
def projection_complement(o: Operators) -> Sides:
    """I - τ = τ̄."""
    return o.I - o.tau, o.tau_bar


@_rule("000 eq. 53")
def projection_whole(o: Operators) -> Sides:
    """τ + τ̄ = I."""
    return o.tau + o.tau_bar, o.identity("links")


@_rule("000 eq. 53")
def articulated_shift(o: Operators) -> Sides:
    """E_φ τ̄ = E_ψ."""
    return o.E_phi @ o.tau_bar, o.E_psi


@_rule("000 eq. 53")
def swept_gain(o: Operators) -> Sides:
    """φ~ G = φ K."""
    return o.phi_tilde @ o.G, o.phi @ o.K


@_rule("000 eq. 53")
def swept_projection(o: Operators) -> Sides:
    """φ~ τ̄ = φ E_ψ."""
    return o.phi_tilde @ o.tau_bar, o.phi @ o.E_psi


@_rule("000 eq. 53", "derive")
def gain_weighted(o: Operators) -> Sides:
    """D⁻¹ H P = G*."""
    return o.D.inv() @ o.H @ o.P, o.G.T


# Projections.
@_rule("000 eq. 38", needs="no rotor inertia")
def gain_reproduces(o: Operators) -> Sides:
    """H G = I."""
    return o.H @ o.G, o.identity("joints")


@_rule("000 eq. 38", needs="no rotor inertia")
def projection_twice(o: Operators) -> Sides:
    """τ̄ τ̄ = τ̄."""
    return o.tau_bar @ o.tau_bar, o.tau_bar


@_rule("000 eq. 38", needs="no rotor inertia")
def joint_blocks(o: Operators) -> Sides:
    """H τ̄ = 0."""
    left = o.H @ o.tau_bar
    return left, Zero(left.engine, left.rows, left.cols)


@_rule("000 eq. 41", needs="no rotor inertia")
def projected_inertia(o: Operators) -> Sides:
    """τ̄ P τ̄* = τ̄ P."""
    return o.tau_bar @ o.P @ o.tau_bar.T, o.tau_bar @ o.P


@_rule("000 eq. 41", "derive")
def projection_slides(o: Operators) -> Sides:
    """P τ̄* = τ̄ P."""
    return o.P @ o.tau_bar.T, o.tau_bar @ o.P


@_rule("000 eq. 42", needs="no rotor inertia")
def articulated_recursion(o: Operators) -> Sides:
    """M + E_ψ P E_ψ* = P."""
    return o.M + o.E_psi @ o.P @ o.E_psi.T, o.P


@_rule("000 lemma 6.2")
def articulated_riccati(o: Operators) -> Sides:
    """M + E_ψ P E_φ* = P."""
    return o.M + o.E_psi @ o.P @ o.E_phi.T, o.P


@_rule("000 lemma 6.2")
def articulated_residue(o: Operators) -> Sides:
    """P - E_ψ P E_φ* = M."""
    return o.P - o.E_psi @ o.P @ o.E_phi.T, o.M


# The lemmas.
@_rule("000 lemma 6.1")
def shift_difference(o: Operators) -> Sides:
    """E_φ - KH = E_ψ, which is ψ⁻¹ = φ⁻¹ + KH."""
    return o.E_phi - o.K @ o.H, o.E_psi


@_rule("000 lemma 6.2; 001 lemma 4.2; 004 lemma 1", "inverse")
def innovations_factors(o: Operators) -> Sides:
    """𝓜 = HφMφ*H* (+ J_r) = [I + HφK] D [I + HφK]*."""
    factor = o.I + o.H @ o.phi @ o.K
    return o.mass_matrix, factor @ o.D @ factor.T


@_rule("000 lemma 6.2")
def innovations_gathered(o: Operators) -> Sides:
    """[I + HφK] D [I + HφK]* = HφMφ*H* (+ J_r) = 𝓜."""
    factor = o.I + o.H @ o.phi @ o.K
    return factor @ o.D @ factor.T, o.mass_matrix


@_rule("000 lemma 6.3; 001 lemma 4.3; 004 lemma 2", "inverse")
def innovations_inverse(o: Operators) -> Sides:
    """[I + HφK]⁻¹ = I - HψK."""
    return Inverse(o.I + o.H @ o.phi @ o.K), o.I - o.H @ o.psi @ o.K


@_rule("000 lemma 6.3", "inverse")
def whitening_inverse(o: Operators) -> Sides:
    """[I - HψK]⁻¹ = I + HφK."""
    return Inverse(o.I - o.H @ o.psi @ o.K), o.I + o.H @ o.phi @ o.K


@_rule("000 lemma 6.3")
def whitening_undone(o: Operators) -> Sides:
    """[I - HψK] [I + HφK] = I."""
    return (o.I - o.H @ o.psi @ o.K) @ (o.I + o.H @ o.phi @ o.K), o.identity("joints")


@_rule("000 lemma 6.3")
def innovations_undone(o: Operators) -> Sides:
    """[I + HφK] [I - HψK] = I."""
    return (o.I + o.H @ o.phi @ o.K) @ (o.I - o.H @ o.psi @ o.K), o.identity("joints")


@_rule("000 eq. 57; 001 lemma 4.5; 004 lemma 4")
def whitened_sweep(o: Operators) -> Sides:
    """[I - HψK] Hφ = Hψ."""
    return (o.I - o.H @ o.psi @ o.K) @ o.H @ o.phi, o.H @ o.psi


@_rule("000 eq. 57")
def coloured_sweep(o: Operators) -> Sides:
    """[I + HφK] Hψ = Hφ."""
    return (o.I + o.H @ o.phi @ o.K) @ o.H @ o.psi, o.H @ o.phi


@_rule("000 eq. 59")
def smoothed_sweep(o: Operators) -> Sides:
    """φK [I - HψK] = ψK."""
    return o.phi @ o.K @ (o.I - o.H @ o.psi @ o.K), o.psi @ o.K


@_rule("000 eq. 57")
def sweep_resolvent(o: Operators) -> Sides:
    """φ - ψKHφ = ψ."""
    return o.phi - o.psi @ o.K @ o.H @ o.phi, o.psi


@_rule("000 eq. 58", "derive")
def mixed_sweeps(o: Operators) -> Sides:
    """ψMφ* = ψP + Pφ~*."""
    return o.psi @ o.M @ o.phi.T, o.psi @ o.P + o.P @ o.phi_tilde.T


@_rule("000 eq. 59")
def smoother(o: Operators) -> Sides:
    """[I - HψK]* D⁻¹ H P φ~* = K*ψ*."""
    white = o.I - o.H @ o.psi @ o.K
    return white.T @ o.D.inv() @ o.H @ o.P @ o.phi_tilde.T, o.K.T @ o.psi.T


@_rule("001 lemma 4.5", "derive")
def weighted_mass(o: Operators) -> Sides:
    """[I - HψK]* D⁻¹ [I - HψK] HφMφ* = [I - HψK]* D⁻¹ HψP + K*ψ*."""
    white = o.I - o.H @ o.psi @ o.K
    inverse = white.T @ o.D.inv() @ white
    return inverse @ o.H @ o.phi @ o.M @ o.phi.T, white.T @ o.D.inv() @ o.H @ o.psi @ o.P + o.K.T @ o.psi.T


# Admittances.
@_rule("004 eq. A.3", needs="no branches")
def admittance_recursion(o: Operators) -> Sides:
    """H*D⁻¹H + E_ψ*ΥE_ψ = Υ."""
    return o.H.T @ o.D.inv() @ o.H + o.E_psi.T @ o.Upsilon @ o.E_psi, o.Upsilon


@_rule("004 eq. A.3", needs="no branches")
def admittance_residue(o: Operators) -> Sides:
    """Υ - E_ψ*ΥE_ψ = H*D⁻¹H."""
    return o.Upsilon - o.E_psi.T @ o.Upsilon @ o.E_psi, o.H.T @ o.D.inv() @ o.H


@_rule("004 eq. 3.10")
def admittance(o: Operators) -> Sides:
    """ψ*H*D⁻¹Hψ = Ω."""
    return o.psi.T @ o.H.T @ o.D.inv() @ o.H @ o.psi, o.Omega


@_rule("004 lemma 5, eq. A.4", needs="no branches")
def admittance_split(o: Operators) -> Sides:
    """Υ + ψ~*Υ + Υψ~ = Ω."""
    return total((1.0, o.Upsilon), (1.0, o.psi_tilde.T @ o.Upsilon), (1.0, o.Upsilon @ o.psi_tilde)), o.Omega


def _with_rotors(o: Operators, inertia: Operator) -> Operator:
    return inertia + o.armature if o.has_armature else inertia
