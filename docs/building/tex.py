"""Formulas as the code and its docstrings write them, `[I - HψK]* D⁻¹ [I - HψK]`, in TeX."""

from __future__ import annotations

import re
import unicodedata

_LETTERS = {
    "α": r"\alpha", "β": r"\beta", "γ": r"\gamma", "δ": r"\delta", "ε": r"\varepsilon", "η": r"\eta", "θ": r"\theta",
    "λ": r"\lambda", "μ": r"\mu", "ν": r"\nu", "π": r"\pi", "ρ": r"\rho", "σ": r"\sigma", "τ": r"\tau",
    "φ": r"\varphi", "χ": r"\chi", "ψ": r"\psi", "ω": r"\omega",
    "Γ": r"\Gamma", "Λ": r"\Lambda", "Π": r"\Pi", "Υ": r"\Upsilon", "Ω": r"\Omega", "𝓜": r"\mathcal{M}",
    "𝓒": r"\mathcal{C}", "∂": r"\partial", "Σ": r"\sum", "∫": r"\int", "√": r"\sqrt", "×": r"\times", "·": r"\cdot",
    "−": "-", "≤": r"\le", "≥": r"\ge", "←": r"\leftarrow", "⊕": r"\oplus", "≠": r"\ne", "½": r"\tfrac{1}{2}",
    "…": r"\ldots", "⁺": "^{+}", "|": r"\vert",
}  # fmt: skip
_ACCENTS = {"\u0304": r"\bar", "\u0307": r"\dot", "\u0308": r"\ddot", "\u0302": r"\hat", "\u0303": r"\tilde"}
_ACCENTS["~"] = r"\tilde"
_RAISED = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-", strict=True))
_LOWERED = dict(zip("₀₁₂₃₄₅₆₇₈₉", "0123456789", strict=True))
_TOKEN = re.compile(r"_(?:[a-z0-9]+|ηη|\w)|[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+½?\*?|[₀-₉]+|'+|.", re.DOTALL)


def tex(formula: str) -> str:
    """The same formula in TeX: `tex("E_φ*")` is `E_{\\varphi}^{*}`."""
    out: list[str] = []
    letters = "".join(unicodedata.normalize("NFD", c) if c.isalpha() else c for c in formula)  # ë as e and its dots
    for token in _TOKEN.findall(letters):
        if token in _ACCENTS and out:
            prime = out.pop() if out[-1] == "'" else ""
            out.append(f"{_ACCENTS[token]}{{{out.pop().strip()}}}{prime}")
        elif token[0] == "_" and len(token) > 1:
            name = "".join(_LETTERS.get(c, c) for c in token[1:])
            out.append(rf"_{{\mathrm{{{name}}}}}" if len(token) > 3 and name.isalpha() else f"_{{{name}}}")
        elif token[0] in _RAISED:
            power = "".join(_RAISED.get(c, {"½": "1/2"}.get(c, r"\,*")) for c in token)
            out.append(f"^{{{power}}}")
        elif token[0] in _LOWERED:
            out.append("_{" + "".join(_LOWERED[c] for c in token) + "}")
        elif token == "*":
            out.append("^{*}")
        else:
            known = _LETTERS.get(token, token)
            out.append(known + " " if len(known) > 1 and known[-1].isalpha() else known)
    neat = re.sub(r"(\\[a-zA-Z]+) +(?=[^\w +=<>-])", r"\1", re.sub(r" +", " ", "".join(out)))
    return neat.replace("=", " = ").replace("  ", " ").replace("  ", " ").strip()
