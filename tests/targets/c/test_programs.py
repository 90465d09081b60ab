"""Programs with loops, and simulators, in C: the same numbers as the library's own kernels and its interpreter."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise import samples
from linkwise.errors import InputError
from linkwise.targets.c import c_source, emit_c
from linkwise.targets.c.target import TARGET
from linkwise.trace.interpreter import Interpreter
from linkwise.trace.program import Program
from tests.machine import EMULATED
from tests.targets.c.test_emit import built, compilers, needs_compiler

WATCHED = ("-fsanitize=undefined", "-static-libubsan") if EMULATED else ("-fsanitize=address,undefined",)
"""Faults that are found at run time; QEMU has no room for the shadow that watches over addresses."""

SANITIZERS = (*WATCHED, "-fno-sanitize-recover=all")


def chain(links: int) -> lw.Model:
    b = lw.ModelBuilder("chain")
    types = (lw.Revolute(axis=(0, 1, 0)), lw.Revolute(axis=(1, 0, 0)), lw.Prismatic(axis=(0, 0, 1)))
    for k in range(links):
        joint = lw.Spherical() if k == 5 else types[k % 3]
        b.add_body(
            f"b{k}", parent=f"b{k - 1}" if k else "world", joint=joint, placement=lw.transform(xyz=(0, 0, -0.1)),
            mass=0.2, com=(0, 0.01, -0.05), inertia=np.diag([1e-3, 1.1e-3, 3e-4]),
        )  # fmt: skip
    return b.build()


def passes(files: tuple[Path, Path, Path], *options: str) -> None:
    source, _, test = files
    built(compilers[0], [source, test], source.parent / "check", *options)
    done = subprocess.run([source.parent / "check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


class InC:
    """A simulator, compiled and called from Python."""

    def __init__(self, simulation: lw.Simulation, folder: Path, bits: int = 64) -> None:
        program = simulation.simulator(bits).program
        source, header, _ = emit_c(simulation, folder, bits=bits)
        assert header.name == f"{program.name}.h"
        kind = ctypes.c_double if bits == 64 else ctypes.c_float
        built(compilers[0], [source], folder / "simulator.so", "-shared", "-fPIC")
        library = ctypes.CDLL(str(folder / "simulator.so"))
        fields = [
            (b.label, kind if b.shape == () else kind * b.size)
            for b in program.buffers
            if b.load and b.label != "duration"
        ]
        room = int(header.read_text().split("workspace[")[1].split("]")[0])
        self.kind = type("Struct", (ctypes.Structure,), {"_fields_": [*fields, ("workspace", kind * room)]})
        self.now: Any = self.kind()
        self._advance = getattr(library, f"{program.name}_advance")
        self._advance.argtypes = [ctypes.POINTER(self.kind), kind]
        getattr(library, f"{program.name}_init")(ctypes.byref(self.now))

    def advance(self, duration: float) -> int:
        return int(self._advance(ctypes.byref(self.now), duration))


@needs_compiler
@pytest.mark.parametrize(("name", "bits"), [("forward_dynamics", 64), ("inverse_dynamics", 32), ("center_of_mass", 64)])
def test_functions_of_many_links_build_and_pass_their_test(name: str, bits: int, tmp_path: Path) -> None:
    function = chain(70).function(name)
    assert isinstance(function.program_for(TARGET), Program)
    passes(emit_c(function, tmp_path, bits=bits), *SANITIZERS)


@needs_compiler
def test_many_links_agree_with_the_kernel(tmp_path: Path) -> None:
    model = chain(200)
    source, header, _ = emit_c(model.function("forward_dynamics"), tmp_path, states=1)
    built(compilers[0], [source], tmp_path / "f.so", "-shared", "-fPIC")
    function = ctypes.CDLL(str(tmp_path / "f.so")).forward_dynamics
    rng = np.random.default_rng(0)
    q, v, tau = model.random_configuration(rng), rng.uniform(-1, 1, model.nv), rng.uniform(-1, 1, model.nv)
    out, room = np.zeros(model.nv), int(header.read_text().split("memory[")[1].split("]")[0])
    workspace = np.full(room, np.nan)
    function(*(ctypes.c_void_p(a.ctypes.data) for a in (q, v, tau, out, workspace)))
    wanted = model.forward_dynamics(q, v, tau)
    assert np.abs(out - wanted).max() <= 1e-12 * np.abs(wanted).max()


def test_size_of_the_text_is_that_of_tables() -> None:
    """Twice the links are twice the numbers, and no more code."""
    texts = [chain(links).function("forward_dynamics").source("c") for links in (80, 160)]
    code = [
        [line for line in text.splitlines() if not line.lstrip(" -").startswith(tuple("0123456789"))] for text in texts
    ]
    assert len(code[0]) == len(code[1])
    assert len(texts[1]) < 2 * len(texts[0])


def arm(**options: Any) -> lw.Simulation:
    return lw.Simulation(samples.planar_arm(), [0.5, 0.1, -0.2], [0.0, 0.3, 0.0], **options)


def four_bar(**options: Any) -> lw.Simulation:
    model = samples.four_bar()
    return lw.Simulation(model, model.assemble(model.neutral()), **options)


def damped(t: Any, q: Any, v: Any, p: Any) -> Any:
    return p * lw.math.sin(3.0 * t) - 0.5 * v


def sampled() -> Any:
    held = lw.Sampled(samples.planar_arm(), lambda t, q, v, p: -5.0 * q - v, 100.0)
    return [held, lw.Torque([0.0, 0.02, 0.05], np.array([[0.0, 0, 0], [1, 2, 3], [0, 1, 0]]))]


CASES = {
    "rk4": lambda: arm(dt=1e-3),
    "dopri5": lambda: arm(method="dopri5", rtol=1e-8),
    "rk4 control": lambda: arm(dt=1e-3, control=damped, p=np.array([1.0, 0.5, -0.2])),
    "dop853 control": lambda: arm(method="dop853", control=damped, p=np.array([1.0, 0.5, -0.2])),
    "rodas4": lambda: arm(method="rodas4", rtol=1e-6),
    "generalized_alpha": lambda: arm(method="generalized_alpha", dt=2e-3, control=damped, p=np.ones(3)),
    "four-bar rk4": lambda: four_bar(dt=1e-3),
    "four-bar dopri5": lambda: four_bar(method="dopri5", rtol=1e-8),
    "samples, table": lambda: arm(dt=3e-3, control=sampled()),
    "samples, table, dopri5": lambda: arm(method="dopri5", control=sampled()),
}


@needs_compiler
@pytest.mark.parametrize("case", CASES)
def test_simulators_move_as_the_simulation_does(case: str, tmp_path: Path) -> None:
    """Piece by piece; parameters change on the way."""
    here = CASES[case]()
    there = InC(here, tmp_path)
    for number, duration in enumerate((0.05, 0.0123, 0.1)):
        if number == 1 and here.p.size:
            here.p = 0.5 * here.p
            there.now.p[:] = here.p.tolist()
        here.advance(duration)
        assert there.advance(duration) == 0
        assert there.now.t == pytest.approx(here.t, rel=1e-15)
        for name in ("q", "v", "x"):
            wanted = getattr(here, name)
            if wanted.size:
                assert np.abs(np.array(getattr(there.now, name)) - wanted).max() <= 1e-12 * (1.0 + np.abs(wanted).max())


@needs_compiler
@pytest.mark.parametrize("method", ["rk4", "dopri5"])
def test_one_piece_is_a_whole_simulation(method: str, tmp_path: Path) -> None:
    simulation = arm(method=method, rtol=1e-8, dt=1e-3)
    there = InC(simulation, tmp_path)
    motion = lw.simulate(
        samples.planar_arm(), simulation.q, simulation.v, 1.0, 1e-3 if method == "rk4" else None, method, rtol=1e-8
    )
    assert there.advance(1.0) == 0
    assert np.abs(np.array(there.now.q) - motion.q[-1]).max() <= 1e-11
    assert np.abs(np.array(there.now.v) - motion.v[-1]).max() <= 1e-11


@needs_compiler
@pytest.mark.parametrize("case", ["rk4", "dopri5", "samples, table"])
def test_the_files_of_a_simulator_pass_their_test(case: str, tmp_path: Path) -> None:
    simulation = CASES[case]()
    passes(emit_c(simulation, tmp_path), *SANITIZERS)
    if case != "dopri5":
        passes(emit_c(simulation, tmp_path / "single", bits=32))


@needs_compiler
def test_the_test_of_a_simulator_fails_when_it_should(tmp_path: Path) -> None:
    source, _, test = emit_c(arm(dt=1e-3), tmp_path)
    source.write_text(source.read_text().replace("sim->dt = ", "sim->dt = 0.5 * "))
    built(compilers[0], [source, test], tmp_path / "check")
    done = subprocess.run([tmp_path / "check"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "expected" in done.stdout


@needs_compiler
def test_a_simulator_of_many_links(tmp_path: Path) -> None:
    model = chain(70)
    here = lw.Simulation(model, model.neutral(), np.full(model.nv, 0.1), dt=1e-3)
    there = InC(here, tmp_path)
    here.advance(0.01)
    assert there.advance(0.01) == 0
    assert np.abs(np.array(there.now.v) - here.v).max() <= 1e-11 * (1.0 + np.abs(here.v).max())


@needs_compiler
def test_statuses(tmp_path: Path) -> None:
    there = InC(arm(method="dopri5"), tmp_path)
    assert there.advance(0.0) == 0
    assert there.now.t == 0.0
    there.now.max_steps = 3.0
    assert there.advance(10.0) == 2
    assert 0.0 < there.now.t < 10.0
    there.now.max_steps = 1e6
    there.now.q[0] = np.nan
    assert there.advance(0.1) == 1
    there = InC(arm(), tmp_path / "fixed")
    there.now.v[0] = np.inf
    assert there.advance(0.1) == 1


def test_a_simulator_starts_where_the_simulation_stands() -> None:
    simulation = arm(dt=1e-3)
    simulation.advance(0.02)
    start = simulation.simulator().start
    assert start["t"][0] == simulation.t
    assert np.array_equal(start["q"], simulation.q)
    assert np.array_equal(start["v"], simulation.v)


def test_what_has_no_simulator(tmp_path: Path) -> None:
    model = samples.planar_arm()
    with pytest.raises(InputError, match="no events"):
        emit_c(lw.Simulation(model, np.zeros(3), events=lambda t, q, v, p: q[0] - 1.0), tmp_path)
    with pytest.raises(InputError, match="double precision"):
        emit_c(arm(method="dopri5"), tmp_path, bits=32)
    with pytest.raises(InputError, match="one state"):
        emit_c(lw.Simulation(model, np.zeros((4, 3))), tmp_path)
    asked = lw.Sampled(model, lambda t, q, v, p: np.zeros(3), 100.0, python=True)
    with pytest.raises(InputError, match="runs in Python"):
        emit_c(lw.Simulation(model, np.zeros(3), control=asked), tmp_path)


@needs_compiler
def test_many_steps_of_a_function(tmp_path: Path) -> None:
    """Series and records: rollouts of a function, against the interpreter."""
    model = samples.planar_arm()

    def step(m: Any, q: Any, v: Any, tau: Any) -> Any:
        faster = v + 0.01 * m.forward_dynamics(q, v, tau)
        return {"q": m.integrate(q, 0.01 * faster), "v": faster}

    f = lw.compile(step, model, inputs={"q": "q", "v": "v", "tau": "v"}, name="step")
    routine = lw.rollout(f, steps=6, sequences="tau", record=True).routine
    (tmp_path / "f.c").write_text(c_source(routine))
    built(compilers[0], [tmp_path / "f.c"], tmp_path / "f.so", "-shared", "-fPIC")
    function = getattr(ctypes.CDLL(str(tmp_path / "f.so")), routine.name)
    rng = np.random.default_rng(1)
    taus = rng.uniform(-1, 1, (1, 6, 3))
    rows = {b.name: rng.uniform(-1, 1, (1, b.size)) for b in routine.buffers if b.load}
    rows[routine.CLOCK] = np.array([[0.0, 6.0]])
    given = {name: array.copy() for name, array in rows.items()}
    records = {name: np.zeros((1, 6, size)) for name, size in routine.records}
    Interpreter(routine).run(rows, {name: taus for name, _ in routine.series}, records, 1)
    made = {name: np.zeros((6, size)) for name, size in routine.records}
    pointers: list[Any] = [given[b.name] for b in routine.buffers if b.load] + [taus]
    passed: list[Any] = [ctypes.c_void_p(a.ctypes.data) for a in pointers]
    for array in made.values():
        passed += [ctypes.c_void_p(array.ctypes.data), ctypes.c_int(len(array))]
    workspace = np.zeros(int(c_source(routine).split("memory[")[1].split("]")[0]))
    function(*passed, ctypes.c_void_p(workspace.ctypes.data))
    for name, array in made.items():
        assert np.abs(array - records[name][0]).max() <= 1e-14


def summed(m: Any, x: Any) -> Any:
    return lw.loop(3, lambda i, s: lw.loop(4, lambda j, t: 0.5 * t + lw.math.cos(t * x) + i * j, s + i), x)


def root(m: Any, x: Any) -> Any:
    return lw.while_loop(lambda s: s * s - x > 1e-13 * x, lambda s: 0.5 * (s + x / s), x + 1.0)


@needs_compiler
@pytest.mark.parametrize("text", [summed, root])
def test_loops_of_users(text: Any, tmp_path: Path) -> None:
    f = lw.compile(text, samples.planar_arm(), inputs={"x": "scalar"})
    assert isinstance(f.program_for(TARGET), Program)
    passes(emit_c(f, tmp_path, states=[[[0.5]], [[2.0]]]), *SANITIZERS)
