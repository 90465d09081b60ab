"""C files: compiled without a warning, run, compared with the definition of the operations and with the LLVM kernel."""

from __future__ import annotations

import ctypes
import itertools
import math
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import linkwise as lw
from linkwise.errors import InputError
from linkwise.targets.c import block_writer, c_source, emit_c
from linkwise.targets.c.lines import TABLE, array_names, function_name, identifier, identifiers, literal
from linkwise.trace.block import OPS, ArraySpec, Block
from linkwise.trace.interpreter import interpret
from tests.targets.cuda.models import binary, every_joint, random_state, unary
from tests.targets.cuda.random_programs import programs

compilers = [name for name in ("gcc", "clang") if shutil.which(name)]
needs_compiler = pytest.mark.skipif(not compilers, reason="no C compiler here")
STRICT = ["-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror", "-O1"]
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, 3.0, 1e300, -1e300, 5e-324, math.inf, -math.inf, math.nan, 1e-8]


def built(compiler: str, sources: Sequence[Path], target: Path, *options: str) -> None:
    command = [compiler, *STRICT, *options, *map(str, sources), "-o", str(target), "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:3000]


class Library:
    """An emitted function, called from Python."""

    def __init__(self, program: Block, folder: Path, bits: int = 64) -> None:
        self.program, self.kind = program, ctypes.c_double if bits == 64 else ctypes.c_float
        source = folder / "function.c"
        source.write_text(c_source(program, bits))
        built(compilers[0], [source], folder / "function.so", "-shared", "-fPIC")
        self.function = getattr(ctypes.CDLL(str(folder / "function.so")), function_name(program))

    def __call__(self, *inputs: Sequence[float]) -> list[list[float]]:
        given_arrays = [(self.kind * max(1, len(x)))(*x) for x in inputs]
        outputs = [(self.kind * max(1, a.size))() for a in self.program.outputs]
        self.function(*given_arrays, *outputs)
        return [list(out)[: a.size] for out, a in zip(outputs, self.program.outputs, strict=True)]


def same(a: float, b: float) -> bool:
    return a == b or (math.isnan(a) and math.isnan(b))


def test_table_is_complete() -> None:
    assert list(TABLE) == list(OPS)


@needs_compiler
@pytest.mark.parametrize("op", ["neg", "abs", "sqrt", "sin", "cos", "exp", "log"])
def test_unary(op: str, tmp_path: Path) -> None:
    function = Library(unary(op), tmp_path)
    for x in SPECIAL:
        wanted = OPS[op].define(x)
        got = function([x])[0][0]
        assert same(got, wanted) or math.isclose(got, wanted, rel_tol=1e-15)


@needs_compiler
@pytest.mark.parametrize("op", ["add", "sub", "mul", "div", "min", "max", "lt", "le", "eq", "atan2"])
def test_binary(op: str, tmp_path: Path) -> None:
    function = Library(binary(op), tmp_path)
    for a, b in itertools.product(SPECIAL, SPECIAL):
        got, wanted = function([a], [b])[0][0], float(OPS[op].define(a, b))
        assert same(got, wanted) or math.isclose(got, wanted, rel_tol=1e-15), (a, b, got, wanted)


@needs_compiler
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(programs())
def test_random_programs(tmp_path_factory: pytest.TempPathFactory, program: Block) -> None:
    """To the bit, however the program is cut into functions."""
    rng = np.random.default_rng(0)
    for piece in (3, 10_000):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(block_writer, "PIECE", piece)
            function = Library(program, tmp_path_factory.mktemp("c"))
        for _ in range(3):
            arrays = [rng.uniform(-2, 2, a.size).tolist() for a in program.inputs]
            for got, wanted in zip(function(*arrays), interpret(program, arrays), strict=True):
                assert all(same(a, float(b)) for a, b in zip(got, wanted, strict=True))


@needs_compiler
@pytest.mark.parametrize("bits", [64, 32])
@pytest.mark.parametrize("compiler", compilers)
@pytest.mark.parametrize("name", ["inverse_dynamics", "forward_dynamics", "mass_matrix", "integrate"])
def test_files_build_and_pass_their_test(name: str, compiler: str, bits: int, tmp_path: Path) -> None:
    source, header, test = emit_c(every_joint().function(name), tmp_path, bits=bits)
    assert [p.name for p in (source, header, test)] == [f"{name}.c", f"{name}.h", f"{name}_test.c"]
    built(compiler, [source, test], tmp_path / "test")
    done = subprocess.run([tmp_path / "test"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert done.stdout.startswith(f"{name}: 5 states, largest error ")


@needs_compiler
def test_the_test_fails_when_it_should(tmp_path: Path) -> None:
    source, _, test = emit_c(every_joint().function("inverse_dynamics"), tmp_path)
    text = source.read_text()
    source.write_text(text.replace(" + ", " - ", 1))
    built(compilers[0], [source, test], tmp_path / "test")
    done = subprocess.run([tmp_path / "test"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "expected" in done.stdout


@needs_compiler
def test_agrees_with_the_kernel(tmp_path: Path) -> None:
    model = every_joint()
    q, v, a = random_state(model, 20)
    function = Library(model.function("forward_dynamics").program, tmp_path)
    got = np.array([function(*state)[0] for state in zip(q, v, a, strict=True)])
    wanted = model.forward_dynamics(q, v, a)
    assert np.abs(got - wanted).max() <= 1e-12 * np.abs(wanted).max()


@needs_compiler
def test_an_output_may_be_an_input(tmp_path: Path) -> None:
    nodes = (("input", 0, 0), ("input", 0, 1), ("add", 0, 1))
    program = Block("swap", nodes, (ArraySpec("x", (2,)),), (ArraySpec("y", (3,)),), ((1, 0, 2),))
    function = Library(program, tmp_path)
    memory = (ctypes.c_double * 3)(2.0, 5.0, 0.0)
    function.function(memory, memory)
    assert list(memory) == [5.0, 2.0, 7.0]


@needs_compiler
def test_empty_arrays_constants_and_unread_inputs(tmp_path: Path) -> None:
    program = Block(
        "c", (("const", 2.5), ("const", math.inf), ("const", math.nan)), (ArraySpec("x", (0,)), ArraySpec("y", (2,))),
        (ArraySpec("u", (3,)), ArraySpec("v", (0, 3))), ((0, 1, 2), ()),
    )  # fmt: skip
    u, v = Library(program, tmp_path)([], [1.0, 2.0])
    assert u[:2] == [2.5, math.inf]
    assert math.isnan(u[2])
    assert v == []
    source, _, test = emit_c(program, tmp_path / "files")
    built(compilers[0], [source, test], tmp_path / "test")
    assert subprocess.run([tmp_path / "test"], check=False, capture_output=True).returncode == 0


@needs_compiler
def test_no_library_but_math(tmp_path: Path) -> None:
    source, header, _ = emit_c(every_joint().function("inverse_dynamics"), tmp_path)
    text = source.read_text()
    assert [line for line in text.splitlines() if line.startswith("#include")] == [
        "#include <math.h>",
        '#include "inverse_dynamics.h"',
    ]
    assert all(word not in text for word in ("malloc", "static double w", "printf"))
    assert 'extern "C"' in header.read_text()
    assert max(map(len, text.splitlines())) <= 120


def test_constants_keep_every_digit() -> None:
    for value in (0.1, 1 / 3, 5e-324, 1.7976931348623157e308, -2.0, 0.125, 123456.0):
        text = literal(value, 64).strip("()")
        assert (float.fromhex(text) if "x" in text else float(text)) == value
        assert literal(value, 64).startswith("(-") == (value < 0)
    assert literal(0.1, 32) == f"{float(np.float32(0.1)).hex()}f"
    assert literal(1e300, 32) == "INFINITY"
    assert [literal(x, 64) for x in (0.5, -2.0, 123456.0)] == ["0.5", "(-2.0)", "123456.0"]  # eighths are decimals


def test_names() -> None:
    assert identifier("inverse_dynamics") == "inverse_dynamics"
    assert identifier("<lambda>") == "x_lambda_"
    assert identifier("2nd try") == "x2nd_try"
    for taken in ("double", "sin", "sinf", "class", "t12", "w", "y0", "abs", "main"):
        assert identifier(taken) != taken
    assert identifiers(["q", "q", "f ext"]) == ["q", "q_", "f_ext"]
    program = Block("q", (("input", 0, 0),), (ArraySpec("q", (1,)),), (ArraySpec("q", (1,)),), ((0,),))
    given_names, filled = array_names(program)
    assert len({function_name(program), *given_names, *filled}) == 3


def test_source_of_a_compiled_function() -> None:
    f = every_joint().function("inverse_dynamics")
    assert "void inverse_dynamics(" in f.source("c")
    assert "const float q[22]" in f.source("c", np.float32)
    assert "q     22" in f.source("c")
    with pytest.raises(InputError, match="c, cuda, llvm, program"):
        f.source("fortran")


def test_mistakes(tmp_path: Path) -> None:
    f = every_joint().function("gravity_force")
    with pytest.raises(InputError, match="no such precision"):
        emit_c(f, tmp_path, bits=16)
    with pytest.raises(InputError, match=r"wrong sizes[\s\S]*q 22"):
        emit_c(f, tmp_path, states=[[[0.0, 1.0]]])


@needs_compiler
def test_given_states(tmp_path: Path) -> None:
    model = lw.ModelBuilder("m")
    model.add_body("b", joint=lw.Prismatic(axis=(0, 0, 1)), mass=2.0)
    source, _, test = emit_c(model.build().function("gravity_force"), tmp_path, states=[[[0.3]], [[-1.0]]])
    built(compilers[0], [source, test], tmp_path / "test")
    done = subprocess.run([tmp_path / "test"], capture_output=True, text=True, check=False)
    assert done.stdout.startswith("gravity_force: 2 states")
