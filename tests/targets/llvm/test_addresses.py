"""Addresses are made from pointers, never from whole numbers.

LLVM 22 may miscompile what it finds behind ``inttoptr`` when it unrolls a loop around it (llvmlite's notes on LLVM 22;
numba#10695). A ``ptrtoint`` that only asks how an address is aligned is harmless.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import linkwise as lw
from linkwise.samples import planar_arm
from linkwise.targets.llvm import binding, crew, jit, layouts

FORBIDDEN = "int" + "toptr"
SOURCES = Path(lw.__file__).parent


def test_no_source_writes_it():
    assert not [str(file) for file in SOURCES.rglob("*.py") if FORBIDDEN in file.read_text(encoding="utf-8")]


@pytest.fixture
def modules(monkeypatch):
    """The text of every module that is compiled from here on."""
    seen = []
    compile_quickly = jit.compile_quickly

    def recording(text, machine):
        seen.append(text)
        return compile_quickly(text, machine)

    monkeypatch.setenv("LINKWISE_CACHE", "0")
    monkeypatch.setenv("LINKWISE_TIER", "quick")
    monkeypatch.setattr(jit, "compile_quickly", recording)
    return seen


def test_no_module_has_it(modules):
    model = planar_arm(n=3, length=0.7310585)  # unlike that of any other test: a process compiles the same text once
    many = np.linspace(-1.0, 1.0, 3 * 37).reshape(37, 3)
    counts = []
    for work in (
        lambda: model.mass_matrix(many),
        lambda: model.mass_matrix(many.astype(np.float32)),
        lambda: [model.forward_dynamics(many[0], many[1], many[2]) for _ in range(3)],  # a function of one state
        lambda: model.with_sweeps("rolled").forward_dynamics(many, many, many),
        lambda: lw.simulate(model, many[0], many[1], duration=0.01),
    ):
        work()
        counts.append(len(modules))
    assert counts == sorted(set(counts)), "each of these compiles something"
    assert all("define" in text for text in modules), "what is looked at here is LLVM's text"
    modules.append(crew._text(binding.host()))
    assert not [text for text in modules if FORBIDDEN in text]


@pytest.mark.skipif(not layouts.available(), reason="this interpreter has its ordinary path only")
def test_no_builtin_function_has_it(modules):
    model = planar_arm(n=4)
    for _ in range(3):
        model.kinetic_energy(np.zeros(4), np.ones(4))
    assert any("PyObject_Vectorcall" in text for text in modules)
    assert not [text for text in modules if FORBIDDEN in text]
