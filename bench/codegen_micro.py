"""What the code generator alone achieves, and what each of its choices is worth.

``python -m bench.codegen_micro`` prints, for inverse and forward dynamics of a small and a large robot, the time per
state in a batch and in single calls, and the time to compile and to load. With ``--choices`` it compiles each batch
kernel in every combination of

* operations in traced order, or ordered by :mod:`linkwise.targets.llvm.schedule`,
* transposes apart from the arithmetic, or woven into it,
* LLVM's instruction scheduler on, or off,

and times them in turns. With ``--synthetic`` the programs come from :mod:`bench.synthetic_programs`.
"""

from __future__ import annotations

import argparse
import itertools
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Any
from unittest import mock

import numpy as np

from bench import synthetic_programs
from bench.robots import ROBOTS
from bench.timing import Call, best_ns
from linkwise.targets.llvm import binding, jit, kernel, schedule, source, tiers, weaving
from linkwise.targets.llvm.kernel import BatchKernel, builtin_function
from linkwise.trace.block import Block

BATCH = 8192


def robot_programs(
    robots: Sequence[str] = ("panda", "g1"), quantities: Sequence[str] = ("inverse_dynamics", "forward_dynamics")
) -> list[tuple[str, Block]]:
    import linkwise as lw

    found = []
    for name in robots:
        model = lw.load(str(ROBOTS[name].path), locked=list(ROBOTS[name].locked))
        for quantity in quantities:
            last = "tau" if "forward" in quantity else "vdot"

            def evaluate(model: Any, *state: Any, quantity: str = quantity) -> Any:
                return getattr(model, quantity)(*state)

            compiled = lw.compile(evaluate, model, inputs={"q": "q", "v": "v", last: "v"}, name=quantity)
            found.append((f"{name} {quantity}", compiled.program))
    return found


def synthetic() -> list[tuple[str, Block]]:
    made = [
        make(n) for n in (7, 29) for make in (synthetic_programs.inverse_dynamics, synthetic_programs.forward_dynamics)
    ]
    return [(program.name, program) for program in made]


def arrays(program: Block, dtype: Any, count: int = BATCH) -> tuple[list[Any], list[Any]]:
    rng = np.random.default_rng(0)
    inputs = [rng.normal(size=(count, array.size)).astype(dtype) for array in program.inputs]
    return inputs, [np.empty((count, array.size), dtype) for array in program.outputs]


def timed(function: Callable[[], Any]) -> tuple[Any, float]:
    start = time.perf_counter()
    return function(), time.perf_counter() - start


def overview(programs: Sequence[tuple[str, Block]]) -> None:
    print(
        f"{'':24} {'nodes':>6} {'f64':>7} {'2 thr.':>7} {'f32':>7} {'single':>7}  ns;  {'compile':>8} {'load':>8}  ms"
    )
    for name, program in programs:
        single, _ = timed(lambda p=program: builtin_function(p, slow=print, name="f"))  # type: ignore[misc]
        double, compiling = timed(lambda p=program: BatchKernel.build(p))  # type: ignore[misc]
        _, loading = timed(lambda p=program: BatchKernel.build(p))  # type: ignore[misc]
        calls = []
        for built, dtype, threads in (
            (double, np.float64, 1),
            (double, np.float64, 2),
            (BatchKernel.build(program, np.float32), np.float32, 1),
        ):
            calls.append(Call(built.evaluate, (*arrays(program, dtype), BATCH, threads), states=BATCH))
        if single is not None:
            calls.append(
                Call(
                    single,
                    tuple(
                        a[0].reshape(s.shape) for a, s in zip(arrays(program, float, 1)[0], program.inputs, strict=True)
                    ),
                )
            )
        figures = " ".join(f"{ns:7.1f}" for ns in best_ns(calls, rounds=200, seconds_each=0.001))
        print(f"{name:24} {len(program.nodes):6} {figures}       {1e3 * compiling:8.1f} {1e3 * loading:8.1f}")


def choices(programs: Sequence[tuple[str, Block]], dtype: Any = np.float64) -> None:
    machine = binding.host()
    for name, program in programs:
        calls, labels = [], []
        for ordered, woven, in_order in itertools.product((True, False), repeat=3):
            order = schedule.schedule if ordered else lambda nodes, chosen, results, final: list(chosen)
            with (
                mock.patch.object(schedule, "schedule", order),
                mock.patch.object(weaving, "_SPACING", 0 if woven else 10**9),
            ):
                text = source.batch_module(program, machine, np.dtype(dtype).itemsize * 8).text
            obj = jit.compile_text(text, machine, in_order=in_order)
            library = jit.LoadedObject(obj, (source.BATCH_ENTRY, source.SCRATCH_ENTRY), kernel.imports())
            built = BatchKernel(program, dtype, tiers.Library(source.ENTRIES, library), machine.lanes(dtype))
            calls.append(Call(built.evaluate, (*arrays(program, dtype), BATCH), states=BATCH))
            parts = (
                "ordered" if ordered else "traced",
                "woven" if woven else "apart",
                "" if in_order else "LLVM's scheduler",
            )
            labels.append(", ".join(filter(None, parts)))
        print(name)
        for ns, label in sorted(zip(best_ns(calls, rounds=200, seconds_each=0.001), labels, strict=True)):
            print(f"  {ns:7.1f} ns  {label}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--choices", action="store_true", help="compare orders, weaving and LLVM's scheduler")
    parser.add_argument("--synthetic", action="store_true", help="use programs made without the rest of the package")
    options = parser.parse_args()
    programs = synthetic() if options.synthetic else robot_programs()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["LINKWISE_CACHE_DIR"] = folder
        (choices if options.choices else overview)(programs)


if __name__ == "__main__":
    main()
