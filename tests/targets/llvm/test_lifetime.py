"""Compiled code lives as long as something may call it, and no longer. Crashes show as signals of other processes."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from linkwise.targets.llvm import layouts
from tests.machine import PATIENCE, real_machine

pytestmark = pytest.mark.skipif(not layouts.available(), reason="this interpreter has its ordinary path only")

MODELS = """
import gc
import numpy as np
import linkwise as lw

def pendulum(mass):
    b = lw.ModelBuilder("pendulum")
    b.add_body("rod", joint=lw.Revolute(axis=(0, 1, 0)), mass=mass, com=(0, 0, -0.5))
    return b.build()

q = np.array([0.5])
"""


def in_subprocess(script: str, **environment: str) -> str:
    """What a script of its own process prints; nothing may go wrong in it, not even when it ends."""
    done = subprocess.run(
        [sys.executable, "-c", MODELS + textwrap.dedent(script)],
        capture_output=True,
        text=True,
        timeout=240 * PATIENCE,
        env={**os.environ, "PYTHONMALLOC": "debug", **environment},  # freed memory is overwritten, so its use shows
    )
    assert done.returncode == 0, (done.returncode, done.stderr[-2000:])
    assert not done.stderr, done.stderr[-2000:]
    return done.stdout.strip()


def test_many_functions_die_at_once() -> None:
    out = in_subprocess("""
        gc.disable()
        for k in range(100):
            model = pendulum(1.0 + k % 30 / 64)
            model.mass_matrix(q); model.mass_matrix(q)
            model.mass_matrix(q[None])
            vars(model)["itself"] = model
        del model
        print(gc.collect() > 100)
        """)
    assert out == "True"


def test_finalisers_use_what_dies_with_them() -> None:
    """Objects of one dead cycle are finalised in any order, and one may still call, or bring back, the others."""
    out = in_subprocess("""
        found = []
        LAST_WORDS = (
            lambda self: found.extend(np.zeros(64) for _ in range(20)),
            lambda self: found.append(self.model.mass_matrix(q)),
            lambda self: found.append(self.method(q)),
            lambda self: found.append(self.model.mass_matrix(np.zeros((4, 1)))),
            lambda self: found.append(self.model.mass_matrix(list(q))),
            lambda self: found.append(self.model),
            lambda self: found.append(self.method),
            lambda self: found.append(pendulum(3.0).mass_matrix(q)),
        )

        class Owner:
            def __init__(self, model, last_words):
                self.model, self.itself, self.last_words = model, self, last_words
                vars(model)["owner"] = self
                model.mass_matrix(q)
                model.mass_matrix(q[None])
                self.method = model.mass_matrix

            def __del__(self):
                self.last_words(self)

        gc.disable()
        for last_words in LAST_WORDS:
            for k in range(40):
                Owner(pendulum(1.0 + k / 64), last_words)
            gc.collect()
            assert len(found) >= 40
            gc.collect()
            for thing in found:
                method = getattr(thing, "mass_matrix", thing)
                if callable(method):
                    assert abs(method(q)[0, 0] - method(q[None])[0, 0, 0]) < 1e-15
            found.clear()
            gc.collect()
        print("done")
        """)
    assert out == "done"


@pytest.mark.parametrize("where", ["kept = ", "sys.kept = ", "gc.disable(); models = ", "threading.local().x = "])
def test_end_of_the_interpreter(where: str) -> None:
    """Modules are taken down in an order of their own; what is still alive then may be called from finalisers."""
    out = in_subprocess(f"""
        import sys, threading

        class Owner:
            def __init__(self, model):
                self.model, self.method = model, model.mass_matrix
                vars(model)["owner"] = self

            def __del__(self, q=q):
                self.method(q)
                self.model.mass_matrix(q)

        def made(k):
            model = pendulum(1.0 + k / 64)
            model.mass_matrix(q); model.mass_matrix(q[None])
            return model

        {where} [Owner(made(k)) for k in range(20)] + [made(k).mass_matrix for k in range(20)]
        print("done")
        """)
    assert out == "done"


def test_a_slot_that_outlives_the_names_of_its_module() -> None:
    out = in_subprocess("""
        import sys
        from linkwise.targets.llvm import fastcall

        sys.held, fastcall.last = fastcall, fastcall.BatchSlot()
        print("done")
        """)
    assert out == "done"


def growth(script: str, count: int) -> float:
    """Kilobytes that each further object takes, once the memory has settled: the lesser of two halves.

    What an object leaves behind is left in both. Tables of the interpreter that grow once are in one: that of interned
    strings, half a megabyte, is rebuilt after some thousand names that came and went.
    """
    if not Path("/proc/self/statm").exists():
        pytest.skip("needs /proc")
    script = f"""
def resident():
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4.096

{textwrap.dedent(script)}
for k in range({count // 4}):
    step(k)
sizes = [resident()]
for half in range(2):
    for k in range({count // 2}):
        step(k)
    sizes.append(resident())
print(min(sizes[1] - sizes[0], sizes[2] - sizes[1]) / {count // 2})
"""
    return float(in_subprocess(script, PYTHONMALLOC="default"))


@real_machine("memory of the process has its translated code too")
def test_memory_of_dropped_models() -> None:
    """Every library is loaded anew, since none is alive any more. One that stays would take ten kilobytes."""
    script = """
        def step(k):
            model = pendulum(1.0 + k % 8 / 8)
            model.mass_matrix(q)
            model.mass_matrix(q[None])
            if k % 32 == 31:
                gc.collect()
        """
    assert growth(script, 512) < 1.0


def test_the_same_program_is_loaded_once() -> None:
    """Functions made again and again of the same text, and all kept, share their code: forty kilobytes for each."""
    script = """
        kept, model = [], pendulum(1.0)

        def step(k):
            f = lw.compile(lambda m, q: m.mass_matrix(q), model, inputs={"q": "q"})
            kept.append((f.kernel(q.dtype)._library, f.single))
        """
    assert growth(script, 128) < 6.0


def test_a_module_that_an_interrupt_leaves_behind() -> None:
    """It lives on in the traceback, and goes when that goes, or with the collector: before its context all the same."""
    out = in_subprocess(
        """
        import llvmlite.binding as llvm

        parse = llvm.parse_assembly

        def interrupted(text, context):
            module = parse(text, context)
            raise KeyboardInterrupt

        kept = []
        for k in range(12):
            llvm.parse_assembly = interrupted
            try:
                pendulum(1.0).mass_matrix(q)
            except KeyboardInterrupt as error:
                if k % 2:
                    kept.append(error)
                    error.itself = error
            llvm.parse_assembly = parse
            right = pendulum(1.0).mass_matrix(q)
        kept.clear()
        gc.collect()
        print(float(right[0, 0]))
        """,
        LINKWISE_CACHE="0",
    )
    assert out == "0.25"
