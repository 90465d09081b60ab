"""What turns pages into HTML: formulas, citations, names of types."""

import runpy

import pytest

pytest.importorskip("sphinx")  # the extra `docs`

from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util.inspect import signature, stringify_signature

import linkwise as lw
from docs.building.citations import NAME
from docs.building.pages import DOCS
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


def test_names_of_papers():
    text = "Jain 1991 eq. 12, 21; Jain 1993 lemma 3.1, (Featherstone 2000 §4), Rodriguez 1989's steps, Jain 2012, 1991"
    assert NAME.findall(text) == ["Jain 1991", "Jain 1993", "Featherstone 2000", "Rodriguez 1989"]


def test_types_of_arrays_go_by_their_names():
    aliases = runpy.run_path(str(DOCS / "conf.py"))["autodoc_type_aliases"]
    for function in (lw.Model.inverse_dynamics, lw.Model.linearize_forward, lw.simulate):
        written = stringify_signature(signature(function, type_aliases=aliases), unqualified_typehints=True)
        assert "ArrayLike" in written
        assert "ForwardRef" not in written
