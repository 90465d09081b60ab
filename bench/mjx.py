"""MuJoCo's MJX, the same dynamics through JAX and XLA: what :mod:`bench.gpu` sets beside ours.

It gets the mechanism as MJCF from our own writer, without contacts, constraints, actuators, damping and sensors, in
float32. What is timed of it includes all that ``mjx.forward`` does (poses, composite inertias, the mass matrix and its
factor, bias forces, accelerations, and what else it keeps in its data). Its data stays on the device; of each state
only the acceleration, or position and velocity after the last step, is handed out. Compiling is not included, and
shown. Ours computes the acceleration alone.

Alone, on whatever device JAX has: ``python -m bench.mjx --robots panda --states 64``.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import linkwise as lw
from bench.rk4 import STEP, rk4_step
from bench.robots import ROBOTS

REPEATS = 5


def available() -> bool:
    """Whether JAX and MJX are installed."""
    try:
        return find_spec("jax") is not None and find_spec("mujoco.mjx") is not None
    except ImportError:
        return False


class Mjx:
    """A mechanism in MJX: functions of batches of float32 states."""

    def __init__(self, model: lw.Model) -> None:
        os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # leave memory to the others
        import jax
        import mujoco
        from mujoco import mjx

        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.xml"
            model.save(path)
            theirs = mujoco.MjModel.from_xml_path(str(path))
        if (theirs.nq, theirs.nv) != (model.nq, model.nv):
            raise ValueError(f"MuJoCo sees {theirs.nq} coordinates, {theirs.nv} freedoms; we {model.nq}, {model.nv}")
        theirs.dof_damping[:] = 0.0
        theirs.opt.timestep = STEP
        theirs.opt.integrator = mujoco.mjtIntegrator.mjINT_RK4
        theirs.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT | mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
        self.model = mjx.put_model(theirs)
        self.data = mjx.make_data(self.model)
        self.jax, self.mjx = jax, mjx

    def _state(self, q: Any, v: Any, tau: Any) -> Any:
        return self.data.replace(qpos=q, qvel=v, qfrc_applied=tau)

    def _batched(self, one: Callable[..., Any]) -> Callable[..., Any]:
        function: Callable[..., Any] = self.jax.jit(self.jax.vmap(one))
        return function

    def forward(self) -> Callable[..., Any]:
        """(q, v, τ) to v̇."""

        def one(q: Any, v: Any, tau: Any) -> Any:
            return self.mjx.forward(self.model, self._state(q, v, tau)).qacc

        return self._batched(one)

    def steps(self, count: int) -> Callable[..., Any]:
        """(q, v, τ) to (q, v) after many RK4 steps."""

        def one(q: Any, v: Any, tau: Any) -> Any:
            def step(data: Any, _: None) -> tuple[Any, None]:
                return self.mjx.step(self.model, data), None

            data, _ = self.jax.lax.scan(step, self._state(q, v, tau), None, count)
            return data.qpos, data.qvel

        return self._batched(one)


def measure(robot: str, model: lw.Model, states: int, steps: int) -> list[dict[str, Any]]:
    """Forward dynamics and RK4 steps; the first states against ours on the CPU."""
    peer = Mjx(model)
    rng = np.random.default_rng(5)
    q, v, tau = (rng.uniform(-size, size, (states, model.nv)).astype(np.float32) for size in (1.0, 0.5, 0.1))
    tau += model.gravity_force(q).astype(np.float32)
    arrays = [peer.jax.device_put(x) for x in (q, v, tau)]
    few = [x[:16].astype(float) for x in (q, v, tau)]
    rows = []
    taken, compiled, got = _timed(peer, peer.forward(), arrays)
    expected = model.forward_dynamics(*few)
    rows.append(_row(f"{robot} MJX forward_dynamics float32", states / taken, compiled, got[:16], expected))
    taken, compiled, got = _timed(peer, peer.steps(steps), arrays)
    expected = ours(model, steps, *few)
    what = f"{robot} MJX {states} rollouts of {steps} RK4 steps float32"
    rows.append(_row(what, states * steps / taken, compiled, got[0][:16], expected))
    return rows


def ours(model: lw.Model, steps: int, q: Any, v: Any, tau: Any) -> Any:
    """Where the same steps lead on the CPU."""
    for _ in range(steps):
        q, v = rk4_step(model, q, v, tau).values()
    return q


def _timed(peer: Mjx, function: Callable[..., Any], arrays: Sequence[Any]) -> tuple[float, float, Any]:
    """Best seconds of a call, seconds of the first one, and a result."""
    began = time.perf_counter()
    result = peer.jax.block_until_ready(function(*arrays))
    first = time.perf_counter() - began
    best = np.inf
    for _ in range(REPEATS):
        began = time.perf_counter()
        peer.jax.block_until_ready(function(*arrays))
        best = min(best, time.perf_counter() - began)
    return best, first, result


def _row(what: str, rate: float, compiled: float, got: Any, expected: Any) -> dict[str, Any]:
    error = float(np.abs(np.asarray(got, float) - expected).max() / np.abs(expected).max())
    return {"what": what, "rate": rate, "error": error, "first_call": compiled}


def show(row: dict[str, Any]) -> None:
    print(
        f"{row['what']:60} {row['rate'] / 1e6:.2f} M/s, error {row['error']:.1e}, first call {row['first_call']:.1f} s",
        flush=True,
    )


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.mjx", description=__doc__)
    parser.add_argument("--robots", nargs="+", choices=[*ROBOTS], default=["panda", "g1"])
    parser.add_argument("--models", type=Path, help="folder with the robots' files, as bench.gpu --export leaves them")
    parser.add_argument("--states", type=int, default=65536, help="side by side (default 65536)")
    parser.add_argument("--steps", type=int, default=100, help="of a rollout (default 100)")
    options = parser.parse_args(argv)
    from bench.gpu import load

    for robot in options.robots:
        for row in measure(robot, load(robot, options.models), options.states, options.steps):
            show(row)


if __name__ == "__main__":
    main()
