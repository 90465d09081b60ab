"""Twenty functions whose emitted code is on record, with what each target writes of them.

``python -m tests.golden.functions`` writes the record anew; ``python -m tests.golden.functions FOLDER`` writes the
texts themselves there, so that those of two versions can be compared line by line.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import linkwise as lw
from linkwise import samples, targets
from linkwise.targets.llvm import source
from linkwise.targets.llvm.binding import Machine
from linkwise.targets.llvm.program_kernel import program_module
from linkwise.trace.program import Program
from linkwise.trace.readable import count

RECORD = Path(__file__).with_name("record.json")

# Not this machine's: the record is the same everywhere.
MACHINES = {
    "avx512": Machine("x86_64-unknown-linux-gnu", "znver4", "+avx512f,+avx2,+fma", 64, masked=True, fma=True),
    "neon": Machine("aarch64-unknown-linux-gnu", "neoverse-n1", "+neon", 16, masked=False, fma=True),
}


def chain(links: int) -> lw.Model:
    """A chain of hinges whose axes take turns."""
    builder = lw.ModelBuilder("chain")
    for k in range(links):
        builder.add_body(
            f"link{k}",
            parent=f"link{k - 1}" if k else "world",
            joint=lw.Revolute(axis=[(0, 1, 0), (0, 0, 1)][k % 2]),
            placement=lw.transform(xyz=(0, 0, 0.1)),
            mass=1.0,
            com=(0, 0, 0.05),
            inertia=np.diag([0.01, 0.01, 0.005]),
        )
    return builder.build()


@cache
def _arm() -> lw.Model:
    return samples.stanford_arm()


@cache
def _rolled() -> lw.Model:
    return chain(30).with_sweeps("rolled")


@cache
def _floating() -> lw.Model:
    builder = lw.ModelBuilder("floating")
    inertia = np.diag([0.2, 0.3, 0.4])
    builder.add_body("hub", joint=lw.Free(), mass=3.0, inertia=inertia)
    place = lw.transform(xyz=(1, 0, 0))
    builder.add_body("ball", "hub", lw.Spherical(), place, mass=1.0, com=(0.1, 0, 0), inertia=inertia)
    builder.add_body("slide", "ball", lw.Prismatic((0, 0, 1)), mass=1.0, inertia=inertia)
    return builder.build()


@cache
def _flexible() -> lw.Model:
    beam = lw.FlexibleBody.beam(
        length=10.0, EA=2.8e7, EI=(1.4e4, 1.4e4), GJ=1e4, mass_per_length=1.2, elements=8, modes=3
    )
    builder = lw.ModelBuilder("flexible")
    builder.add_body("beam", joint=lw.Revolute((0, 0, 1)), flexible=beam)
    builder.add_body("load", "beam", lw.Revolute((0, 1, 0)), at="tip", mass=2.0, inertia=np.eye(3))
    return builder.build()


def _of(model: Callable[[], lw.Model], name: str, **options: Any) -> Callable[[], Any]:
    def made() -> Any:
        function = model().function(name, **options)
        return getattr(function, "rolled_program", None) or function.program

    return made


def _flexible_dynamics() -> Any:
    # The modes' last bits are those of a machine's LAPACK: the code on record has constants of half the digits.
    program = _flexible().function("forward_dynamics").program
    nodes = [(node[0], float(np.float32(node[1]))) if node[0] == "const" else node for node in program.nodes]
    return replace(program, nodes=tuple(nodes))


def _compiled(text: Callable[..., Any], **inputs: Any) -> Callable[[], Any]:
    return lambda: lw.compile(text, _arm(), inputs=inputs, name="own").program


def _four_bar_dynamics() -> Any:
    return samples.four_bar().function("forward_dynamics").program


def _simulation(model: Callable[[], lw.Model], method: str, **options: Any) -> Callable[[], Any]:
    return lambda: lw.Simulation(model(), model().neutral(), method=method, **options).simulator().program


FUNCTIONS: dict[str, Callable[[], Any]] = {
    "inverse dynamics": _of(_arm, "inverse_dynamics"),
    "forward dynamics": _of(_arm, "forward_dynamics"),
    "mass matrix": _of(_arm, "mass_matrix"),
    "mass matrix inverse": _of(_arm, "mass_matrix_inverse"),
    "Coriolis matrix": _of(_arm, "coriolis_matrix"),
    "linearize forward": _of(_arm, "linearize_forward"),
    "pose": _of(_arm, "pose", body="hand"),
    "regressor": _of(_arm, "regressor"),
    "quaternions, forward": _of(_floating, "forward_dynamics"),
    "quaternions, integrate": _of(_floating, "integrate"),
    "closed, forward": _four_bar_dynamics,
    "flexible, forward": _flexible_dynamics,
    "rolled, inverse": _of(_rolled, "inverse_dynamics"),
    "rolled, forward": _of(_rolled, "forward_dynamics"),
    "rolled, momentum": _of(_rolled, "momentum"),
    "own function": _compiled(
        lambda m, q, v: lw.math.where(v[0] > 0.0, lw.math.tanh(q), v) @ m.gravity_force(q), q="q", v="v"
    ),
    "own loop": _compiled(lambda m, x: lw.loop(9, lambda i, s: lw.math.cos(s) + i, x), x=2),
    "own while loop": _compiled(lambda m, x: lw.while_loop(lambda s: s > 1.0, lambda s: 0.5 * s, x[0]), x=1),
    "simulation, rk4": _simulation(_arm, "rk4", dt=1e-3),
    "simulation, dop853": _simulation(_arm, "dop853"),
}


def texts_of(code: Any) -> dict[str, str]:
    """What each target writes."""
    found = {}
    for name, machine in MACHINES.items():
        if isinstance(code, Program):
            found[f"llvm {name}"] = program_module(code, machine, 64, machine.lanes(np.float64))
        else:
            found[f"llvm {name}"] = source.batch_module(code, machine, 64).text
    for target in ("c", "cuda"):
        for precision in ("float64", "float32"):
            found[f"{target} {precision}"] = targets.target(target).source(code, np.dtype(precision))
    return found


def record_of(code: Any) -> dict[str, Any]:
    """Operation counts, and the SHA-256 of every text."""
    texts = {name: hashlib.sha256(text.encode()).hexdigest()[:16] for name, text in texts_of(code).items()}
    return {"counts": str(count(code)), **texts}


def main() -> None:
    """Write the record, or the texts into a folder."""
    if len(sys.argv) > 1:
        for name, make in FUNCTIONS.items():
            for target, text in texts_of(make()).items():
                path = Path(sys.argv[1]) / f"{name} {target}.txt"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
        return
    whole = {name: record_of(make()) for name, make in FUNCTIONS.items()}
    RECORD.write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
