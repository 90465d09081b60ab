"""Writing of expressions: the papers' letters, products side by side, ``*`` for an adjoint."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from linkwise.spatial.scalar import Scalar

LETTERS = {
    "E_phi": "E_φ",
    "phi": "φ",
    "phi_tilde": "φ~",
    "H": "H",
    "M": "M",
    "R": "R",
    "P": "P",
    "M_hat": "M̂",
    "R_hat": "R̂",
    "P_hat": "P̂",
    "G_hat": "Ĝ",
    "H_dot": "Ḣ",
    "H_ddot": "Ḧ",
    "H_tilde_f": "H̃f",
    "K_hat": "K̂",
    "tau_hat": "τ̂",
    "J_hat": "Ĵ",
    "S_V": "S[V]",
    "S_joints": "S[H*β]",
    "Q_momenta": "Q[MV]",
    "Q_forces": "Q[f]",
    "Q_own_forces": "Q[x]",
    "Y_A": "Y_A",
    "Y_B": "Y_B",
    "E_A": "E_A",
    "E_B": "E_B",
    "L": "L",
    "W": "W",
    "Q_K": "Q_K",
    "D": "D",
    "G": "G",
    "K": "K",
    "tau": "τ",
    "tau_bar": "τ̄",
    "E_psi": "E_ψ",
    "psi": "ψ",
    "psi_tilde": "ψ~",
    "Upsilon": "Υ",
    "Omega": "Ω",
    "armature": "J_r",
    "B": "B",
    "A": "A",
    "Lambda": "Λ",
    "D_inverse_root": "D⁻½",
    "I": "I",
}


def letter(name: str) -> str:
    """The papers' letter of an operator by its name here."""
    if name.endswith("_inverse"):
        return LETTERS[name.removesuffix("_inverse")] + "⁻¹"
    return LETTERS[name]


def starred(text: str, is_single: bool) -> str:
    """A*, with parentheses around more than one letter."""
    return f"{text}*" if is_single else f"({text})*"


def inverted(text: str, is_single: bool) -> str:
    """A⁻¹, with parentheses around more than one letter."""
    return f"{text}⁻¹" if is_single else f"({text})⁻¹"


def juxtaposed(factors: Sequence[tuple[str, bool]]) -> str:
    """A product: the factors side by side, those that are sums in parentheses."""
    texts = [f"({text})" if is_sum else text for text, is_sum in factors]
    return "".join(_spaced(texts))


def _spaced(texts: Sequence[str]) -> list[str]:
    """Letters with an index or in parentheses need a space to stay apart; plain letters do not."""
    out = [texts[0]]
    for before, text in pairwise(texts):
        apart = "_" in before or "_" in text or "(" in before or "(" in text
        out.append(f" {text}" if apart else text)
    return out


def added(terms: Sequence[tuple[Scalar, str, bool]]) -> str:
    """A sum of coefficients, names, and whether the name is a sum of its own."""
    text = ""
    for coefficient, name, is_sum in terms:
        minus = isinstance(coefficient, float) and coefficient < 0
        size = abs(coefficient) if isinstance(coefficient, float) else coefficient
        body = f"({name})" if is_sum and (minus or text) else name
        if not (isinstance(size, float) and size == 1.0):
            body = f"{size:g} {body}" if isinstance(size, float) else f"c {body}"
        if text:
            text += f" − {body}" if minus else f" + {body}"
        else:
            text = f"−{body}" if minus else body
    return text
