"""Formulas as the code writes them, `[I - HψK]* D⁻¹`, in MathML, which browsers typeset themselves."""

from __future__ import annotations

import re
import unicodedata
from html import escape

_RAISED = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "0123456789−+", strict=True))
_LOWERED = dict(zip("₀₁₂₃₄₅₆₇₈₉", "0123456789", strict=True))
_ACCENTS = {"\u0304": "¯", "\u0307": "˙", "\u0308": "¨", "\u0302": "^", "\u0303": "~"}
_WORDS = ("diag", "sin", "cos", "for", "and", "where", "of", "is", "the", "with")
_TOKEN = re.compile(
    r"_(?:[a-zA-Z0-9]+|\w)|[⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺]+½?|[₀-₉]+|\b(?:" + "|".join(_WORDS) + r")\b|\d+(?:\.\d+)?|\s+|.", re.DOTALL
)


def mathml(formula: str) -> str:
    """The formula as a <math> element: letters are factors, `_x` is an index, `*` an adjoint, `~` a tilde above.

    >>> mathml("D⁻¹")
    '<math><mrow><msup><mi>D</mi><mrow><mo>−</mo><mn>1</mn></mrow></msup></mrow></math>'
    """
    out: list[str] = []
    letters = "".join(unicodedata.normalize("NFD", c) if c.isalpha() else c for c in formula)  # ë as e and its dots
    for token in _TOKEN.findall(letters):
        if token.isspace():
            continue
        if out and (token in _ACCENTS or token == "~"):
            out.append(f'<mover accent="true">{out.pop()}<mo>{_ACCENTS.get(token, "~")}</mo></mover>')
        elif out and token[0] == "_" and len(token) > 1:
            out.append(f"<msub>{out.pop()}<mi>{token[1:]}</mi></msub>")
        elif out and token[0] in _RAISED:
            out.append(_raised(out.pop(), "".join(_RAISED.get(c, "1/2") for c in token)))
        elif out and token[0] in _LOWERED:
            out.append(f"<msub>{out.pop()}<mn>{''.join(_LOWERED[c] for c in token)}</mn></msub>")
        elif out and token in ("*", "'"):
            out.append(_raised(out.pop(), "∗" if token == "*" else "′"))
        elif token in _WORDS:
            out.append(f"<mtext>&nbsp;{token}&nbsp;</mtext>")
        elif token[0].isdigit():
            out.append(f"<mn>{token}</mn>")
        elif token.isalpha():
            out.append(f"<mi>{token}</mi>")
        else:
            out.append(f'<mo stretchy="false">{escape("−" if token == "-" else token)}</mo>')
    return f"<math><mrow>{''.join(out)}</mrow></math>"


def _raised(base: str, power: str) -> str:
    parts = "".join(f"<mn>{c}</mn>" if c.isalnum() else f"<mo>{c}</mo>" for c in power)
    return f"<msup>{base}<mrow>{parts}</mrow></msup>"
