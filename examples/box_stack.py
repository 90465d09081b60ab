"""A stack of ten boxes: each carries those above it, to the last digits, and none of them creeps."""

import numpy as np

import linkwise as lw

COUNT, EDGE, WEIGHT = 10, 0.1, 9.81  # m, N


def fall(duration: float, apart: float) -> lw.Trajectory:
    """The motion of boxes that lie so far above each other at first, in m."""
    b = lw.ModelBuilder("stack")
    for k in range(COUNT):
        b.add_body(f"box {k}", joint=lw.Free(), shape=lw.shapes.box((EDGE,) * 3, density=1000))
    model = b.build().with_contacts(lw.Ground(), material=lw.Material(friction=0.8))
    q0 = np.concatenate([[1, 0, 0, 0, 0.01 * (-1) ** k, 0, EDGE * (k + 0.5) + apart * k] for k in range(COUNT)])
    return lw.simulate(model, q0, duration=duration, dt=0.002, method="moreau")


def carried(motion: lw.Trajectory) -> np.ndarray:
    """Forces upwards on each box from what is below it (T, COUNT), N."""
    below = ["ground", *(f"box {k}" for k in range(COUNT - 1))]
    return np.stack([motion.contacts.force_on(f"box {k}", by=below[k])[:, 2] for k in range(COUNT)], axis=-1)


def main(quick: bool = False) -> dict[str, float]:
    motion = fall(0.2 if quick else 10.0, 0.0)
    forces, expected = carried(motion)[-1], WEIGHT * np.arange(COUNT, 0, -1)
    creep = float(np.abs(motion.v[-1]).max())
    print(f"carried {np.round(forces, 6)} N, expected {np.round(expected, 6)} N; speed at the end {creep:.0e} m/s")
    return {"force": float(np.abs(forces - expected).max()), "creep": creep}


def draw(axes) -> None:
    motion = fall(0.3, 0.002)
    axes.plot(motion.t, carried(motion))
    axes.set(xlabel="t [s]", ylabel="carried by each box [N]", ylim=(0, 400))


if __name__ == "__main__":
    main()
