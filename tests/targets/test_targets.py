"""Targets through their one interface, and a new one: a folder, and nothing else anywhere."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import linkwise as lw
import linkwise.targets
from linkwise import samples, targets
from linkwise.cli import main
from linkwise.trace.interpreter import interpret

# The whole of a new target: programs as Python source, and arrays of a class of its own that such code runs on.
NEW = '''
import numpy as np
from linkwise.targets import Target
from linkwise.targets.device import Device

TABLE = {
    "add": "{} + {}", "sub": "{} - {}", "mul": "{} * {}", "div": "divided({}, {})", "neg": "-{}", "abs": "abs({})",
    "sqrt": "math.sqrt({})", "sin": "math.sin({})", "cos": "math.cos({})", "atan2": "math.atan2({}, {})",
    "exp": "math.exp({})", "log": "math.log({})", "min": "({0} if {0} < {1} else {1})",
    "max": "({0} if {0} > {1} else {1})", "lt": "{} < {}", "le": "{} <= {}", "eq": "{} == {}", "and": "{} and {}",
    "or": "{} or {}", "not": "not {}", "hold": "{}", "select": "{1} if {0} else {2}",
}

class Tape(list):
    """Memory of its own."""

class Python(Target):
    name = "python"
    suffix = ".py"
    summary = "plain Python"

    def source(self, program, dtype):
        lines = ["import math", "", f"def {program.name}({', '.join(a.name for a in program.inputs)}):"]
        for k, (op, *given) in enumerate(program.nodes):
            if op == "const":
                right = repr(float(given[0]))
            elif op == "input":
                right = f"{program.inputs[given[0]].name}[{given[1]}]"
            else:
                right = TABLE[op].format(*(f"x{i}" for i in given))
            lines.append(f"    x{k} = {right}")
        results = ", ".join("[" + ", ".join(f"x{i}" for i in row) + "]" for row in program.results)
        return "\\n".join([*lines, f"    return [{results}]", ""])

    def available(self):
        return True

    def holds(self, array):
        return isinstance(array, Tape)

    def device(self, arrays):
        return Deck()

class Deck(Device):
    name, xp, target = "the deck", np, property(lambda self: TARGET)

    def kernel(self, program, dtype, few_states=False):
        space = {"divided": lambda a, b: a / b}
        exec(self.target.source(program, dtype), space)
        return space[program.name]

    def call(self, function, arrays, out=None, threads=1):
        return [Tape(row) for row in function.kernel(np.dtype(float), self)(*arrays)]

TARGET = Python()
'''


@pytest.fixture
def with_a_new_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A folder beside those of the package's targets."""
    folder = tmp_path / "python_target"
    folder.mkdir()
    (folder / "__init__.py").write_text('"""Python."""\n')
    (folder / "target.py").write_text(NEW)
    monkeypatch.setattr(linkwise.targets, "__path__", [*linkwise.targets.__path__, str(tmp_path)])
    targets._known.cache_clear()
    targets.targets()
    yield sys.modules["linkwise.targets.python_target.target"]
    targets._known.cache_clear()
    for name in [name for name in sys.modules if name.startswith("linkwise.targets.python_target")]:
        del sys.modules[name]


def test_all_are_found_by_their_folders() -> None:
    assert list(targets.targets()) == ["c", "cuda", "llvm", "program"]
    assert targets.target("llvm").available()


@pytest.mark.parametrize("name", targets.targets())
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_each_writes_text_and_files(name: str, dtype: str, tmp_path: Path) -> None:
    f = samples.planar_arm(n=2).function("forward_dynamics")
    text = f.source(name, dtype)
    assert "forward_dynamics" in text or name == "llvm"
    paths = f.emit(tmp_path / "made", name, dtype)
    assert paths[0].suffix == targets.target(name).suffix
    assert all(path.parent == tmp_path / "made" and path.stat().st_size for path in paths)
    if len(paths) == 1:
        assert paths[0].read_text() == text


def test_names_of_files_hold_no_paths(tmp_path: Path) -> None:
    f = lw.compile(lambda _, q: q + 1.0, samples.planar_arm(n=2), inputs={"q": "q"}, name="../a b/c")
    (path,) = f.emit(tmp_path, "program")
    assert path.parent == tmp_path
    assert path.exists()


def test_loops_are_shown_where_the_target_has_them() -> None:
    f = samples.planar_arm(n=5).with_sweeps("rolled").function("gravity_force")
    for target, word in {"llvm": "", "c": "for (int", "program": "for links"}.items():
        text = f.source(target)
        assert word in text
        assert text != samples.planar_arm(n=5).function("gravity_force").source(target)


def test_mistakes(tmp_path: Path) -> None:
    f = samples.planar_arm(n=1).function("gravity_force")
    with pytest.raises(lw.InputError, match=r"no such target[\s\S]*c, cuda, llvm, program"):
        f.emit(tmp_path, "fortran")
    with pytest.raises(lw.InputError, match="no such target"):
        f.source(["c"])  # type: ignore[arg-type]
    for dtype in (np.float16, np.int64, "no number"):
        with pytest.raises(lw.InputError, match=r"no code for this precision[\s\S]*float64 or float32"):
            f.source("c", dtype)
    step = lw.compile(lambda _, q: q * 0.5, samples.planar_arm(n=1), inputs={"q": "q"})
    assert "while (" in lw.rollout(step, 3).source(target="c")
    assert "while any running" in lw.rollout(step, 3).source(target="program")


def test_a_new_one_writes(with_a_new_one: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Text, files and the command line know it at once."""
    model = samples.stanford_arm()
    f = model.function("inverse_dynamics")
    space: dict[str, Any] = {"divided": lambda a, b: a / b}
    exec(f.source("python"), space)
    q, v, vdot = np.random.default_rng(0).uniform(-1, 1, (3, 6))
    assert space["inverse_dynamics"](q, v, vdot) == interpret(f.program, [list(q), list(v), list(vdot)])
    np.testing.assert_allclose(space["inverse_dynamics"](q, v, vdot)[0], model.inverse_dynamics(q, v, vdot), atol=1e-12)

    assert main(["emit", "planar_arm", "gravity_force", "--target", "python", "-o", str(tmp_path / "made")]) == 0
    assert capsys.readouterr().out.strip() == str(tmp_path / "made" / "gravity_force.py")
    with pytest.raises(lw.InputError, match="c, cuda, llvm, program, python"):
        f.source("fortran")


def test_a_new_one_runs(with_a_new_one: Any) -> None:
    """What it holds is computed by its own code."""
    model = samples.planar_arm(n=2)
    q = with_a_new_one.Tape((0.3, 0.4))
    found = model.function("gravity_force")(q)
    assert isinstance(found, with_a_new_one.Tape)
    np.testing.assert_allclose(found, model.gravity_force([0.3, 0.4]))
    assert isinstance(model.gravity_force(q), with_a_new_one.Tape)


def test_one_from_elsewhere(with_a_new_one: Any) -> None:
    other = type("Other", (type(with_a_new_one.TARGET),), {"name": "other"})()
    targets.register(other)
    assert targets.target("other") is other
    assert targets.place_of([1.0, SimpleNamespace()]) is None
