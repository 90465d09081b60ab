"""Compiled functions inside JAX: a loop of calls and a batch, beside calls from Python.

python -m bench.jax_calls
"""

from __future__ import annotations

from typing import Any

import numpy as np

import linkwise as lw
from bench.robots import ROBOTS
from bench.timing import Call, best_ns

STEPS, STATES = 1000, 8192


def main() -> None:
    """Measure and print."""
    import jax

    jax.config.update("jax_enable_x64", True)
    robot = ROBOTS["panda"]
    model = lw.load(robot.path, locked=robot.locked)
    plain = model.function("forward_dynamics")
    dynamics = lw.as_jax(plain)

    def swing(q: Any, v: Any) -> Any:
        def step(state: Any, _: Any) -> Any:
            q, v = state
            v = v + 1e-3 * dynamics(q, v, np.zeros(model.nv))
            return (q + 1e-3 * v, v), None

        return jax.lax.scan(step, (q, v), None, length=STEPS)[0]

    loop, batch = jax.jit(swing), jax.jit(jax.vmap(dynamics))
    rng = np.random.default_rng(0)
    state = [rng.normal(size=(STATES, model.nv)) for _ in range(3)]
    there = [jax.numpy.asarray(x) for x in state]
    q0, v0 = there[0][0], there[1][0]
    loop_ns, in_jax, by_numpy = best_ns(
        [
            Call(lambda: jax.block_until_ready(loop(q0, v0)), states=STEPS),
            Call(lambda: jax.block_until_ready(batch(*there)), states=STATES),
            Call(plain, tuple(state), states=STATES),
        ]
    )
    print(f"{STEPS} Panda steps in a scan: {1e-6 * STEPS * loop_ns:.2f} ms")
    print(f"batch of {STATES}: {in_jax:.1f} ns a state, {in_jax / by_numpy:.2f} of a plain call")


if __name__ == "__main__":
    main()
