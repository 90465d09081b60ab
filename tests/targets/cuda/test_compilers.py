"""NVIDIA's own compilers take the text, for old chips and new, and fit it into the registers."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import linkwise as lw
from linkwise.sim.plans import plan_for
from linkwise.sim.setup import Setup
from linkwise.targets.cuda.launched_programs import kernel_writer
from linkwise.targets.cuda.runtime import OPTIONS
from linkwise.targets.cuda.source import batch_kernel, rollout_kernel
from linkwise.targets.cuda.target import TARGET
from linkwise.targets.steps import Rollout, repeated
from tests.machine import real_machine
from tests.seeds import usual
from tests.sim.mechanisms import double_pendulum
from tests.targets.cuda.models import every_joint, sum_of_squares
from tests.targets.cuda.test_statements import around, everything, iterated, open_sizes

nvcc = shutil.which("nvcc")
pytestmark = [
    pytest.mark.skipif(nvcc is None, reason="no nvcc here"),
    real_machine("nvcc, of the machine below, takes compilers for this one"),
]


def compiled(text: str, folder: Path, arch: str) -> str:
    """What the compiler says of registers and spills."""
    (folder / "kernel.cu").write_text(text)
    options = [*OPTIONS, f"-arch={arch}", "-cubin", "-Xptxas", "-v", "-Werror", "all-warnings"]
    command = [nvcc, *options, "-o", folder / "kernel.cubin", folder / "kernel.cu"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # type: ignore[arg-type]
    assert done.returncode == 0, done.stderr[:3000]
    return done.stderr


def spilled_bytes(report: str) -> int:
    return max(int(n) for n in re.findall(r"(\d+) bytes spill loads", report))


@pytest.mark.parametrize("arch", usual(["sm_90"], "sm_75"))
@pytest.mark.parametrize("bits", usual([64], 32))
def test_compiles(arch: str, bits: int, tmp_path: Path) -> None:
    program = every_joint().function("inverse_dynamics").program
    kinds = ("columns", "rows", "one", "rows")
    compiled(batch_kernel(program, bits, kinds).text, tmp_path, arch)
    compiled(batch_kernel(sum_of_squares(8, 900), bits).text, tmp_path, arch)


@pytest.mark.parametrize("bits", usual([64], 32))
def test_rollout_compiles(bits: int, tmp_path: Path) -> None:
    model = every_joint()

    def euler(m: lw.Model, q: object, v: object, tau: object) -> dict:
        v = v + 0.001 * m.forward_dynamics(q, v, tau)
        return {"q": m.integrate(q, 0.001 * v), "v": v}

    program = lw.compile(euler, model, {"q": "q", "v": "v", "tau": "v"}).program
    for rollout in (Rollout(((0, 0), (1, 1))), Rollout(((0, 0), (1, 1)), (2,), record=True)):
        compiled(rollout_kernel(repeated(program, rollout), bits).text, tmp_path, "sm_90")


def chain(links: int) -> lw.Model:
    builder = lw.ModelBuilder("chain")
    rng = np.random.default_rng(0)
    for k in range(links):
        builder.add_body(
            f"b{k}", parent=f"b{k - 1}" if k else "world", joint=lw.Revolute(axis=(0, 0, 1)),
            placement=lw.transform(xyz=rng.normal(size=3), rpy=rng.normal(size=3)),
            mass=1.0, com=0.1 * rng.normal(size=3), inertia=np.diag([0.1, 0.2, 0.25]),
        )  # fmt: skip
    return builder.build()


@pytest.mark.parametrize("bits", usual([64], 32))
def test_long_programs_stay_on_the_chip(bits: int, tmp_path: Path) -> None:
    """Forward dynamics of 24 links needs more values than a thread has registers; they wait in shared memory."""
    program = chain(24).function("forward_dynamics").program
    assert spilled_bytes(compiled(batch_kernel(program, bits).text, tmp_path, "sm_90")) <= 128


@pytest.mark.parametrize(("bits", "arch"), [(64, "sm_75"), (32, "sm_90")])
@pytest.mark.parametrize("method", ["rk4", "dopri5", "rodas4", "generalized_alpha"])
def test_loops_over_time_compile(method: str, bits: int, arch: str, tmp_path: Path) -> None:
    """With tables, samples and events; no values wait where they need not."""
    model = double_pendulum()
    control = [
        lw.Torque([0.0, 1.0], [[0.0, 1.0], [1.0, 0.0]]),
        lw.Sampled(model, lambda t, q, v, p: -q, 50.0, delay=0.01),
    ]
    event = lw.Event(lambda t, q, v, p: q[0])
    plan = plan_for(Setup.of(model, method, {"control": control, "events": event}), 0, False)
    report = compiled(kernel_writer(plan.routine, bits).kernel().text, tmp_path, arch)
    assert spilled_bytes(report) <= (128 if method in ("rk4", "dopri5") else 2048)


@pytest.mark.parametrize("bits", usual([64], 32))
def test_loops_compile(bits: int, tmp_path: Path) -> None:
    """One body for each kind of link: the same text for any number of them, and nothing spilled."""
    program = chain(5).with_sweeps("rolled").function("forward_dynamics").rolled_for(TARGET)  # type: ignore[attr-defined]
    assert spilled_bytes(compiled(kernel_writer(program, bits).kernel().text, tmp_path, "sm_90")) == 0
    compiled(kernel_writer(program, bits).kernel().text, tmp_path, "sm_75")


@pytest.mark.parametrize("is_open", [False, True])
def test_loops_in_loops_compile(is_open: bool, tmp_path: Path) -> None:
    """Every statement, in the memory of threads and in that of the device."""
    for program in (around(iterated()), everything()):
        text = kernel_writer(open_sizes(program) if is_open else program, 32).kernel().text
        compiled(text, tmp_path, "sm_90")
