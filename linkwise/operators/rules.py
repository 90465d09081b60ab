"""The identities of the papers, one rule each: a left side that may be replaced by a right side.

Jain 1991: Jain, Unified formulation of dynamics for serial rigid multibody systems. Jain 1993: Jain and Rodriguez,
Linearization of manipulator dynamics using spatial operators. Rodriguez 1989: Rodriguez, Jain and Kreutz, Spatial
operator algebra framework for multibody system dynamics.

A rule of use ``simplify`` takes away sweeps or factors, one of use ``inverse`` serves to invert, and one of use
``derive`` changes the form only and is applied by name (``expr.rewrite("mixed_sweeps")``). Each also holds for the
adjoints of its two sides. A rule is its statement: :func:`read` makes the operators from it, ``[I - HψK] Hφ = Hψ``
being two operators of a state.

DIFFERS FROM PAPER: with rotor inertias J_r on the joints, D = HPH* + J_r and 𝓜 = HφMφ*H* + J_r. The rules that this
touches have J_r on their left side when the mechanism has any, written (+ J_r), or are not used (``needs`` says so).

DIFFERS FROM PAPER: Rodriguez 1989 states eq. A.3 and lemma 5 for trees with a block-diagonal Υ. E_ψ*ΥE_ψ then also has
blocks between the children of one parent, which Υ has not, and Υ + ψ~*Υ + Υψ~ lacks the blocks of Ω between branches.
As equations between operators the two hold where no link has two children; on any tree they hold for the diagonal
blocks, and Ω = ψ*H*D⁻¹Hψ holds whole.

DIFFERS FROM PAPER: Rodriguez 1989 eq. 3.13 prints b = HψBA* where D^{-1/2}HψBA* is meant, and leaves out what U, the
velocities' part of the constraints, adds: [I - HψK]* D⁻¹ HψBA* (AΛA*)⁻¹ U. D⁻½ is the lower triangular factor in D⁻¹ =
D⁻½*D⁻½, which runs over any scalar; for a joint of one freedom it is the square root.

DIFFERS FROM PAPER: Jain 1993 is about chains. Its lemmas hold on trees as they are, but 4.8 and 4.9, which split Ω as
lemma 5 of Rodriguez 1989 does; with Ω whole they hold on trees, too (``mobility_expanded``, ``rates_on_trees``).
(A.24) has 2[K̂* - 2K*Ĵ] in its last line but one, where 2[K̂* - K*Ĵ] is meant. W and Q_K are the paper's U and Q.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

from linkwise.dataclass import dataclass
from linkwise.errors import UnknownNameError
from linkwise.operators.atoms import Diagonal
from linkwise.operators.expressions import Identity, Inverse, Zero, product, total
from linkwise.operators.notation import LETTERS
from linkwise.operators.operator import Operator

if TYPE_CHECKING:
    from linkwise.operators.state import Operators


_WORDS = {letter: word for word, letter in LETTERS.items()}
_OPENING, _CLOSING, _ROTORS = "([", ")]", "(+ J_r)"
_NUMBERS = {"2": 2.0, "½": 0.5}
_SIGNS = {"+": 1.0, "-": -1.0}
_TOKENS = re.compile(
    "|".join(map(re.escape, [_ROTORS, *sorted(_WORDS, key=len, reverse=True), "⁻¹", *"*+-()[]", *_NUMBERS]))
)


def sides(statement: str, ops: Operators) -> tuple[Operator, Operator]:
    """The operators on the two sides of an equation; a right side I or 0 is of the left side's size."""
    left_text, right_text = (side.strip() for side in statement.split("="))
    left = _sum(_TOKENS.findall(left_text)[::-1], ops)
    if right_text == "0":
        return left, Zero(left.engine, left.rows, left.cols)
    if right_text == "I":
        return left, Identity(left.engine, left.rows)
    return left, _sum(_TOKENS.findall(right_text)[::-1], ops)


def _sum(tokens: list[str], ops: Operators) -> Operator:
    """Terms up to a closing parenthesis or the end; ``tokens`` are taken from their end."""
    terms = []
    while tokens and tokens[-1] not in _CLOSING:
        if tokens[-1] != _ROTORS:
            sign = _SIGNS[tokens.pop()] if tokens[-1] in _SIGNS else 1.0
            number = _NUMBERS[tokens.pop()] if tokens[-1] in _NUMBERS else 1.0
            terms.append((sign * number, _product(tokens, ops)))
        elif tokens.pop() and ops.has_armature:
            terms.append((1.0, ops.armature))
    return total(*terms)


def _product(tokens: list[str], ops: Operators) -> Operator:
    factors = []
    while tokens and (tokens[-1] in _WORDS or tokens[-1] in _OPENING):
        factor = _single(tokens, ops)
        while tokens and tokens[-1] in ("*", "⁻¹"):
            factor = factor.T if tokens.pop() == "*" else _inverse(factor)
        factors.append(factor)
    return product(*factors)


def _single(tokens: list[str], ops: Operators) -> Operator:
    token = tokens.pop()
    if token in _WORDS:
        letter = getattr(ops, _WORDS[token])
        named: Operator = letter if isinstance(letter, Operator) else letter()  # B, at the points of closure
        return named
    inside = _sum(tokens, ops)
    tokens.pop()
    return inside


def _inverse(operator: Operator) -> Operator:
    """Of a block-diagonal operator the one with the inverse blocks; else what rules may turn into something better."""
    return operator.inv() if isinstance(operator, Diagonal) else Inverse(operator)


Use = Literal["simplify", "inverse", "derive"]
Need = Literal[
    "no rotor inertia", "no branches", "closures", "velocity", "velocity, no branches", "acceleration",
    "acceleration, no branches",
]  # fmt: skip


@dataclass(frozen=True)
class Rule:
    """left = right, for every state."""

    name: str
    source: str
    """Paper and equation or lemma."""
    statement: str
    """The identity in the papers' letters."""
    use: Use = "simplify"
    needs: Need | None = None
    proof: tuple[str, ...] = ()
    """Expressions between the two sides, each equal to the one before."""

    def holds_for(self, ops: Operators) -> bool:
        """Whether the rule may be used on this mechanism."""
        holds = {
            "no rotor inertia": lambda: not ops.has_armature,
            "no branches": lambda: not ops.has_branches,
            "closures": lambda: ops.has_closures,
            "velocity": lambda: ops.has_rates,
            "acceleration": lambda: ops.has_accelerations,
        }
        return self.needs is None or all(holds[need]() for need in self.needs.split(", "))

    def sides(self, ops: Operators) -> tuple[Operator, Operator]:
        """The two sides as operators of one state."""
        if self.name not in ops.sides:
            ops.sides[self.name] = sides(self.statement, ops)
        return ops.sides[self.name]

    def __repr__(self) -> str:
        return f"<rule {self.name}, {self.source}: {self.statement}>"


_RULES = (
    # Sweeps and what they invert.
    Rule("phi_is_inverse", "Jain 1991 eq. 20", "(I - E_φ)⁻¹ = φ"),
    Rule("phi_inverse", "Jain 1991 eq. 20", "φ⁻¹ = I - E_φ", "inverse"),
    Rule("phi_undone", "Jain 1991 eq. 20", "(I - E_φ) φ = I"),
    Rule("phi_undone_after", "Jain 1991 eq. 20", "φ (I - E_φ) = I"),
    Rule("psi_is_inverse", "Jain 1991 eq. 54", "(I - E_ψ)⁻¹ = ψ"),
    Rule("psi_inverse", "Jain 1991 eq. 54", "ψ⁻¹ = I - E_ψ", "inverse"),
    Rule("psi_undone", "Jain 1991 eq. 54", "(I - E_ψ) ψ = I"),
    Rule("psi_undone_after", "Jain 1991 eq. 54", "ψ (I - E_ψ) = I"),
    Rule("phi_less_identity", "Jain 1991 lemma 3.1", "φ - I = φ~"),
    Rule("phi_shifted", "Jain 1991 lemma 3.1", "E_φ φ = φ~"),
    Rule("phi_of_shift", "Jain 1991 lemma 3.1", "φ E_φ = φ~"),
    Rule("phi_from_tilde", "Jain 1991 lemma 3.1", "I + φ~ = φ"),
    Rule("psi_less_identity", "Rodriguez 1989 lemma 5", "ψ - I = ψ~"),
    Rule("psi_shifted", "Rodriguez 1989 lemma 5", "E_ψ ψ = ψ~"),
    Rule("psi_of_shift", "Rodriguez 1989 lemma 5", "ψ E_ψ = ψ~"),
    Rule("psi_from_tilde", "Rodriguez 1989 lemma 5", "I + ψ~ = ψ"),
    # Composite bodies.
    Rule("composite_recursion", "Jain 1991 eq. 25", "M + E_φ R E_φ* = R"),
    Rule("composite_residue", "Jain 1991 eq. 26", "R - E_φ R E_φ* = M"),
    Rule("composite_gathered", "Jain 1991 eq. 27", "R + φ~R + Rφ~* = φMφ*"),
    # Linearised models: M̂ and what it is gathered to.
    Rule("composite_rates", "Jain 1993 lemma 3.2", "M̂ + E_φ R̂ E_φ* = R̂", "derive", "velocity"),
    Rule(
        "composite_rates_gathered", "Jain 1993 lemma 3.2, eq. A.1", "φM̂φ* = R̂ + φ~R̂ + R̂φ~*", "derive", "velocity",
        ("φ[R̂ - E_φR̂E_φ*]φ*", "φR̂φ* - φ~R̂φ~*", "[I + φ~]R̂[I + φ~]* - φ~R̂φ~*"),
    ),
    Rule("articulated_rates", "Jain 1993 eq. 4.11", "M̂ + E_ψ P̂ E_φ* = P̂", "derive", "velocity"),
    Rule(
        "articulated_rates_gathered", "Jain 1993 eq. A.2", "ψM̂φ* = ψP̂ + P̂φ~*", "derive", "velocity",
        ("ψ[P̂ - E_ψP̂E_φ*]φ*", "ψP̂φ* - ψ~P̂φ~*", "ψP̂[I + φ~*] - ψ~P̂φ~*", "ψP̂ + [ψ - ψ~]P̂φ~*"),
    ),
    Rule("rate_gain", "Jain 1993 eq. 4.12", "D⁻¹HP̂ = Ĝ*", "derive", "velocity"),
    Rule(
        "whitened_rates", "Jain 1993 lemma 4.7", "[I - HψK]HφM̂φ*H* = HψP̂H* + DĜ*φ~*H*", "derive", "velocity",
        ("HψM̂φ*H*", "H[ψP̂ + P̂φ~*]H*"),
    ),
    Rule(
        "whitened_axes", "Jain 1993 lemma 4.7", "[I - HψK]HφMφ*Ḣ* = HψPḢ* + DG*φ~*Ḣ*", "derive", "velocity",
        ("HψMφ*Ḣ*", "H[ψP + Pφ~*]Ḣ*"),
    ),
    # Linearised models: S, Q, and how the equations of motion change.
    Rule("inertia_rate", "Jain 1993 eq. 1.5-1.6, eq. 2.6-2.7", "½[S[V]M + MS[V]* - Q[MV]] = M̂", "derive", "velocity"),
    Rule("axes_rate", "Jain 1993 eq. 2.13", "-S[V]*H* = Ḣ*", "derive", "velocity"),
    Rule("turning_recursion", "Jain 1993 eq. A.4", "S[V]*E_φ* - E_φ*S[V]* = S[H*β]*E_φ*", "derive", "velocity"),
    Rule(
        "turning_gathered", "Jain 1993 eq. A.4", "φ*S[H*β]*φ~* = S[V]*φ* - φ*S[V]*", "derive", "velocity",
        ("φ*[S[V]*E_φ* - E_φ*S[V]*]φ*", "φ*S[V]*φ~* - φ~*S[V]*φ*", "φ*S[V]*[φ* - I] - [φ* - I]S[V]*φ*"),
    ),
    Rule(
        "forces_by_rates", "Jain 1993 lemma 3.1, eq. 3.1, eq. A.12",
        "φMφ*Ḣ* + φ[S[V]M + MS[V]*]φ*H* + φ[Mφ*Ḣ* - Q[MV]φ*H*] = 2φ[M̂φ*H* + Mφ*Ḣ*]", "derive", "velocity",
        ("2φMφ*Ḣ* + φ[S[V]M + MS[V]* - Q[MV]]φ*H*",),
    ),
    Rule("forces_recursion", "Jain 1993 eq. A.1", "Q[x] + E_φQ[f]E_φ* = Q[f]", "derive", "acceleration"),
    Rule(
        "forces_gathered", "Jain 1993 eq. A.1", "φQ[x]φ* = φQ[f] + Q[f]φ~*", "derive", "acceleration",
        ("φ[Q[f] - E_φQ[f]E_φ*]φ*", "φQ[f]φ* - φ~Q[f]φ~*"),
    ),
    Rule(
        "forces_by_axes", "Jain 1993 lemma 3.1, eq. A.13", "HQ[f]φ~*H* - HφQ[x]φ*H* = HφH̃f", "derive",
        "acceleration", ("HQ[f]φ~*H* - H[φQ[f] + Q[f]φ~*]H*", "-HφQ[f]H*"),
    ),
    # ... and how accelerations change: 𝓜⁻¹A_D and 𝓜⁻¹B_D without 𝓜.
    Rule(
        "accelerations_by_rates", "Jain 1993 lemma 4.6, eq. 4.11",
        "2[I - HψK]*D⁻¹[I - HψK]Hφ[M̂φ*H* + Mφ*Ḣ*] = 2[I - HψK]*D⁻¹Hψ[M̂φ*H* + PḢ*] + 2K*ψ*Ḣ*", "derive", "velocity",
        ("2[I - HψK]*D⁻¹Hψ[M̂φ*H* + Mφ*Ḣ*]", "2[I - HψK]*D⁻¹[HψM̂φ*H* + HψPḢ* + HPφ~*Ḣ*]"),
    ),
    Rule(
        "accelerations_by_axes", "Jain 1993 lemma 4.6, eq. 4.11",
        "[I - HψK]*D⁻¹[I - HψK]Hφ[H̃f + 2M̂φ*Ḣ* + Mφ*Ḧ*]"
        " = [I - HψK]*D⁻¹Hψ[H̃f + 2M̂φ*Ḣ* + PḦ*] + K*ψ*Ḧ*", "derive", "acceleration",
        ("[I - HψK]*D⁻¹Hψ[H̃f + 2M̂φ*Ḣ* + Mφ*Ḧ*]", "[I - HψK]*D⁻¹[Hψ[H̃f + 2M̂φ*Ḣ* + PḦ*] + HPφ~*Ḧ*]"),
    ),
    Rule(
        "rates_articulated", "Jain 1993 lemma 4.7, eq. 4.13",
        "2[I - HψK]*D⁻¹Hψ[M̂φ*H* + PḢ*] = [I - HψK]*[D⁻¹HψY_A + 2K̂*φ*H*]", "derive", "velocity",
        ("2[I - HψK]*D⁻¹H[ψP̂H* + P̂φ~*H* + ψPḢ*]", "[I - HψK]*[D⁻¹HψY_A + 2D⁻¹HP̂E_φ*φ*H*]"),
    ),
    Rule(
        "axes_articulated", "Jain 1993 lemma 4.7, eq. 4.13",
        "[I - HψK]*D⁻¹Hψ[H̃f + 2M̂φ*Ḣ* + PḦ*] = [I - HψK]*[D⁻¹HψY_B + 2K̂*φ*Ḣ*]", "derive", "acceleration",
        ("[I - HψK]*D⁻¹H[ψH̃f + 2ψP̂Ḣ* + 2P̂φ~*Ḣ* + ψPḦ*]", "[I - HψK]*[D⁻¹HψY_B + 2D⁻¹HP̂E_φ*φ*Ḣ*]"),
    ),
    Rule("smoothed_rates_recursion", "Jain 1993 eq. 4.22", "E_ψ*Ĵ + τ̂*E_φ* = ĴE_φ*", "derive", "velocity"),
    Rule(
        "smoothed_rates", "Jain 1993 eq. A.5", "ψ*τ̂*φ~* = Ĵφ* - ψ*Ĵ", "derive", "velocity",
        ("ψ*[ĴE_φ* - E_ψ*Ĵ]φ*", "ψ*Ĵφ~* - ψ~*Ĵφ*", "ψ*Ĵ[φ* - I] - [ψ* - I]Ĵφ*"),
    ),
    Rule(
        "mobility_expanded", "Jain 1993 eq. A.22",
        "[I - HψK]*D⁻¹[I - HψK] = D⁻¹ + K*ΩK - K*ψ*H*D⁻¹ - D⁻¹HψK", "derive", None,
        ("D⁻¹ - K*ψ*H*D⁻¹ - D⁻¹HψK + K*ψ*H*D⁻¹HψK",),
    ),
    Rule(
        "mobility_by_blocks", "Jain 1993 lemma 4.9, eq. 4.21, eq. A.22",
        "[I - HψK]*D⁻¹[I - HψK] = L - K*ψ*W* - WψK", "derive", "no branches",
        ("D⁻¹ + K*[Υ + ψ~*Υ + Υψ~]K - K*ψ*H*D⁻¹ - D⁻¹HψK",
         "[D⁻¹ + K*ΥK] - K*ψ*[H*D⁻¹ - E_ψ*ΥK] - [D⁻¹H - K*ΥE_ψ]ψK"),
    ),
    Rule(
        "whitening_weighted", "Jain 1993 eq. A.23", "[I - HψK]*D⁻¹Hψ = D⁻¹Hψ - K*Ω", "derive", None,
        ("D⁻¹Hψ - K*ψ*H*D⁻¹Hψ",),
    ),
    Rule(
        "whitening_by_blocks", "Jain 1993 eq. A.23", "[I - HψK]*D⁻¹Hψ = Wψ - K*ψ*Υ", "derive", "no branches",
        ("D⁻¹Hψ - K*[Υ + ψ~*Υ + Υψ~]", "[D⁻¹H - K*ΥE_ψ]ψ - K*ψ*Υ"),
    ),
    Rule(
        "rates_on_trees", "Jain 1993 lemma 4.9, eq. 4.21",
        "[I - HψK]*[D⁻¹HψY_A + 2K̂*φ*H*] + 2K*ψ*Ḣ* = [D⁻¹Hψ - K*Ω]Y_A + 2K*ψ*[Ḣ* + ĴH*] + Q_K*φ*H*",
        "derive", "velocity",
        ("[D⁻¹Hψ - K*Ω]Y_A + 2K̂*φ*H* - 2K*ψ*τ̂*φ~*H* + 2K*ψ*Ḣ*",
         "[D⁻¹Hψ - K*Ω]Y_A + 2K̂*φ*H* - 2K*[Ĵφ* - ψ*Ĵ]H* + 2K*ψ*Ḣ*"),
    ),
    Rule(
        "axes_on_trees", "Jain 1993 lemma 4.9, eq. 4.21",
        "[I - HψK]*[D⁻¹HψY_B + 2K̂*φ*Ḣ*] + K*ψ*Ḧ* = [D⁻¹Hψ - K*Ω]Y_B + K*ψ*[Ḧ* + 2ĴḢ*] + Q_K*φ*Ḣ*",
        "derive", "acceleration",
        ("[D⁻¹Hψ - K*Ω]Y_B + 2K̂*φ*Ḣ* - 2K*ψ*τ̂*φ~*Ḣ* + K*ψ*Ḧ*",
         "[D⁻¹Hψ - K*Ω]Y_B + 2K̂*φ*Ḣ* - 2K*[Ĵφ* - ψ*Ĵ]Ḣ* + K*ψ*Ḧ*"),
    ),
    Rule(
        "rates_by_blocks", "Jain 1993 lemma 4.9, eq. 4.21, eq. A.24",
        "[I - HψK]*[D⁻¹HψY_A + 2K̂*φ*H*] + 2K*ψ*Ḣ* = WψY_A + K*ψ*E_A + Q_K*φ*H*", "derive", "velocity, no branches",
        ("[Wψ - K*ψ*Υ]Y_A + 2K̂*φ*H* - 2K*[Ĵφ* - ψ*Ĵ]H* + 2K*ψ*Ḣ*",
         "WψY_A + K*ψ*[2Ḣ* - ΥY_A + 2ĴH*] + 2[K̂* - K*Ĵ]φ*H*"),
    ),
    Rule(
        "axes_by_blocks", "Jain 1993 lemma 4.9, eq. 4.21",
        "[I - HψK]*[D⁻¹HψY_B + 2K̂*φ*Ḣ*] + K*ψ*Ḧ* = WψY_B + K*ψ*E_B + Q_K*φ*Ḣ*", "derive", "acceleration, no branches",
        ("[Wψ - K*ψ*Υ]Y_B + 2K̂*φ*Ḣ* - 2K*[Ĵφ* - ψ*Ĵ]Ḣ* + K*ψ*Ḧ*",
         "WψY_B + K*ψ*[Ḧ* - ΥY_B + 2ĴḢ*] + 2[K̂* - K*Ĵ]φ*Ḣ*"),
    ),
    # Definitions of the articulated body.
    Rule("joint_inertia", "Jain 1991 eq. 53", "HPH* (+ J_r) = D"),
    Rule("gain", "Jain 1991 eq. 53", "P H* D⁻¹ = G"),
    Rule("predictor_gain", "Jain 1991 eq. 53", "E_φ G = K"),
    Rule("projection", "Jain 1991 eq. 53", "G H = τ"),
    Rule("projection_complement", "Jain 1991 eq. 53", "I - τ = τ̄"),
    Rule("projection_whole", "Jain 1991 eq. 53", "τ + τ̄ = I"),
    Rule("articulated_shift", "Jain 1991 eq. 53", "E_φ τ̄ = E_ψ"),
    Rule("swept_gain", "Jain 1991 eq. 53", "φ~ G = φ K"),
    Rule("swept_projection", "Jain 1991 eq. 53", "φ~ τ̄ = φ E_ψ"),
    Rule("gain_weighted", "Jain 1991 eq. 53", "D⁻¹ H P = G*", "derive"),
    # Projections.
    Rule("gain_reproduces", "Jain 1991 eq. 38", "H G = I", needs="no rotor inertia"),
    Rule("projection_twice", "Jain 1991 eq. 38", "τ̄ τ̄ = τ̄", needs="no rotor inertia"),
    Rule("joint_blocks", "Jain 1991 eq. 38", "H τ̄ = 0", needs="no rotor inertia"),
    Rule("projected_inertia", "Jain 1991 eq. 41", "τ̄ P τ̄* = τ̄ P", needs="no rotor inertia"),
    Rule("projection_slides", "Jain 1991 eq. 41", "P τ̄* = τ̄ P", "derive"),
    Rule("articulated_recursion", "Jain 1991 eq. 42", "M + E_ψ P E_ψ* = P", needs="no rotor inertia"),
    Rule("articulated_riccati", "Jain 1991 lemma 6.2", "M + E_ψ P E_φ* = P"),
    Rule("articulated_residue", "Jain 1991 lemma 6.2", "P - E_ψ P E_φ* = M"),
    # The lemmas.
    Rule("shift_difference", "Jain 1991 lemma 6.1", "E_φ - KH = E_ψ"),
    Rule(
        "innovations_factors",
        "Jain 1991 lemma 6.2; Jain 1993 lemma 4.2; Rodriguez 1989 lemma 1",
        "HφMφ*H* (+ J_r) = [I + HφK] D [I + HφK]*",
        "inverse",
    ),
    Rule("innovations_gathered", "Jain 1991 lemma 6.2", "[I + HφK] D [I + HφK]* = HφMφ*H* (+ J_r)"),
    Rule(
        "innovations_inverse",
        "Jain 1991 lemma 6.3; Jain 1993 lemma 4.3; Rodriguez 1989 lemma 2",
        "[I + HφK]⁻¹ = I - HψK",
        "inverse",
    ),
    Rule("whitening_inverse", "Jain 1991 lemma 6.3", "[I - HψK]⁻¹ = I + HφK", "inverse"),
    Rule("whitening_undone", "Jain 1991 lemma 6.3", "[I - HψK] [I + HφK] = I"),
    Rule("innovations_undone", "Jain 1991 lemma 6.3", "[I + HφK] [I - HψK] = I"),
    Rule("whitened_sweep", "Jain 1991 eq. 57; Jain 1993 lemma 4.5; Rodriguez 1989 lemma 4", "[I - HψK] Hφ = Hψ"),
    Rule("coloured_sweep", "Jain 1991 eq. 57", "[I + HφK] Hψ = Hφ"),
    Rule("smoothed_sweep", "Jain 1991 eq. 59", "φK [I - HψK] = ψK"),
    Rule("sweep_resolvent", "Jain 1991 eq. 57", "φ - ψKHφ = ψ"),
    Rule("mixed_sweeps", "Jain 1991 eq. 58; Jain 1993 eq. A.19", "ψMφ* = ψP + Pφ~*", "derive"),
    Rule("smoother", "Jain 1991 eq. 59", "[I - HψK]* D⁻¹ H P φ~* = K*ψ*"),
    Rule(
        "weighted_mass", "Jain 1993 lemma 4.5", "[I - HψK]* D⁻¹ [I - HψK] HφMφ* = [I - HψK]* D⁻¹ HψP + K*ψ*", "derive"
    ),
    # Admittances.
    Rule("admittance_recursion", "Rodriguez 1989 eq. A.3", "H*D⁻¹H + E_ψ*ΥE_ψ = Υ", needs="no branches"),
    Rule("admittance_residue", "Rodriguez 1989 eq. A.3", "Υ - E_ψ*ΥE_ψ = H*D⁻¹H", needs="no branches"),
    Rule("admittance", "Rodriguez 1989 eq. 3.10", "ψ*H*D⁻¹Hψ = Ω"),
    Rule(
        "admittance_split", "Rodriguez 1989 lemma 5, eq. A.4; Jain 1993 lemma 4.8, eq. 4.20, eq. A.3",
        "Υ + ψ~*Υ + Υψ~ = Ω", needs="no branches",
        proof=("[I + ψ~*]Υ[I + ψ~] - ψ~*Υψ~", "ψ*Υψ - ψ~*Υψ~", "ψ*[Υ - E_ψ*ΥE_ψ]ψ", "ψ*H*D⁻¹Hψ"),
    ),
    # Closed systems.
    Rule("root_squared", "Rodriguez 1989 eq. 3.13", "D⁻½* D⁻½ = D⁻¹"),
    Rule("closure_admittance", "Rodriguez 1989 eq. 3.10", "B*ΩB = Λ", needs="closures"),
    Rule(
        "closed_mobility",
        "Rodriguez 1989 eq. 3.13",
        "[I - HψK]* D⁻¹ [I - HψK] - [I - HψK]* D⁻¹ HψBA* (AΛA*)⁻¹ AB*ψ*H* D⁻¹ [I - HψK]"
        " = [I - HψK]* D⁻½* [I - D⁻½ HψBA* (AΛA*)⁻¹ AB*ψ*H* D⁻½*] D⁻½ [I - HψK]",
        "derive",
        needs="closures",
    ),
)  # fmt: skip

RULES: dict[str, Rule] = {rule.name: rule for rule in _RULES}
"""All rules by name, in the order in which they are tried."""


class Listing(tuple[Rule, ...]):
    """Rules, one a line: name, paper and equation, identity, and on which mechanisms it holds if not on all."""

    def __repr__(self) -> str:
        name, source = (max(len(getattr(rule, part)) for rule in self) for part in ("name", "source"))
        needs = (f"  ({rule.needs})" if rule.needs else "" for rule in self)
        rows = zip(self, needs, strict=True)
        return "\n".join(f"{r.name:<{name}}  {r.source:<{source}}  {r.statement}{need}" for r, need in rows)


def rules(use: Use | None = None) -> Listing:
    """The identities that the library knows, to look at and to choose from for ``expr.rewrite(name)``.

    Args:
        use: only those of one use: ``"simplify"``, ``"inverse"`` or ``"derive"``.
    """
    return Listing(rule for rule in _RULES if use in (None, rule.use))


def named(rule: Rule | str) -> Rule:
    """A rule by its name."""
    if isinstance(rule, str) and rule not in RULES:
        raise UnknownNameError("rule", rule, RULES, do="see linkwise.operators.rules()")
    return RULES[rule] if isinstance(rule, str) else rule
