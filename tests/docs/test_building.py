"""What turns pages into HTML: formulas, citations."""

import pytest

pytest.importorskip("sphinx")  # the extra `docs`

from docutils.utils.math.latex2mathml import tex2mathml

from docs.building.citations import NUMBER
from docs.building.tex import tex


@pytest.mark.parametrize(
    ("plain", "typeset"),
    [
        ("[I - HψK]* D⁻¹", r"[I - H\psi K]^{*} D^{-1}"),
        ("E_φ τ̄ = E_ψ", r"E_{\varphi} \bar{\tau} = E_{\psi}"),
        ("ψMφ* = ψP + Pφ~*", r"\psi M\varphi^{*} = \psi P + P\tilde{\varphi}^{*}"),
        ("D⁻½* D⁻½", r"D^{-1/2\,*} D^{-1/2}"),
        ("HPH* (+ J_r)", r"HPH^{*} (+ J_{r})"),
    ],
)
def test_formulas_in_tex(plain, typeset):
    assert tex(plain) == typeset
    assert "<math" in tex2mathml(tex(plain))


def test_numbers_of_papers():
    assert NUMBER.findall("000 eq. 12, 21; 001 lemma 3.1, (003 §4), 004's steps") == ["000", "001", "003", "004"]
    assert not NUMBER.findall("10 000 links, 0.001 s, 5\u202f000 trials, 1,000, 0000, 1000, 005, 1e-003")
