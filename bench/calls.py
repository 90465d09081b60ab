"""What a call from Python costs beyond its kernel: ``python -m bench.calls``.

Of an arm with one joint, whose kernels take some ten nanoseconds: what is left is the call. Methods are taken from the
model before anything has been called, as loops and benchmarks do.
"""

from __future__ import annotations

import numpy as np

from bench.timing import Call, best_ns
from linkwise.samples import planar_arm

ROUNDS, SECONDS = 400, 0.0005  # many short turns: between them a busy machine may do other things


def calls() -> dict[str, Call]:
    """The forms of a call, by what is shown."""
    model = planar_arm(n=1)
    early, pose, jacobian = model.inverse_dynamics, model.pose, model.jacobian
    state = tuple(np.array([x]) for x in (0.1, 0.2, 0.3))
    batch, q = tuple(np.tile(x, (8, 1)) for x in state), state[0]
    out, two = {"out": np.empty(1)}, {"threads": 2}
    made = {
        "one state": Call(early, state),
        "one state, out=": Call(early, state, out),
        "one state, threads=2": Call(early, state, two),
        "one state, out=, threads=2": Call(early, state, out | two),
        "eight states": Call(early, batch),
        "eight states, out=": Call(early, batch, {"out": np.empty((8, 1))}),
        "pose": Call(pose, (q, "link1")),
        "pose, out=": Call(pose, (q, "link1"), {"out": np.empty((4, 4))}),
        "jacobian": Call(jacobian, (q, "link1")),
        "jacobian, threads=2": Call(jacobian, (q, "link1"), two),
    }
    for call in made.values():
        for _ in range(3):
            call()
    return made | {"one state, taken late": Call(model.inverse_dynamics, state)}


def main() -> None:
    """Print the table."""
    rows = calls()
    for what, taken in zip(rows, best_ns(list(rows.values()), rounds=ROUNDS, seconds_each=SECONDS), strict=True):
        print(f"{what:28} {taken:6.0f} ns")


if __name__ == "__main__":
    main()
