"""A row of dominoes: the first is pushed, and a wave of falling stones runs along the row."""

import numpy as np

import linkwise as lw

COUNT, GAP, SIZE = 9, 0.02, (0.008, 0.024, 0.048)  # m


def make() -> lw.Model:
    b = lw.ModelBuilder("dominoes")
    stone = lw.Geometry("box", SIZE, None, (1, 1, 1), lw.transform(), "")
    for k in range(COUNT):
        inertia = (
            np.diag([SIZE[1] ** 2 + SIZE[2] ** 2, SIZE[0] ** 2 + SIZE[2] ** 2, SIZE[0] ** 2 + SIZE[1] ** 2]) / 1200
        )
        b.add_body(f"{k}", joint=lw.Free(), mass=0.01, inertia=inertia, collisions=[stone])
    return b.build().with_contacts(lw.Ground(), material=lw.Material(friction=0.3))


def fall(duration: float) -> tuple[lw.Trajectory, np.ndarray]:
    """The motion, and the angles (T, COUNT) by which the stones have tilted."""
    q0 = np.concatenate([[1, 0, 0, 0, k * (GAP + SIZE[0]), 0, SIZE[2] / 2] for k in range(COUNT)])
    push = np.concatenate([[0, 6.0, 0, 0.5 * 6.0 * SIZE[2], 0, 0], np.zeros(6 * (COUNT - 1))])
    motion = lw.simulate(make(), q0, push, duration=duration, dt=0.002, method="moreau")
    return motion, 2 * np.arctan2(motion.q[:, 2::7], motion.q[:, 0::7])


def main(quick: bool = False) -> dict[str, float]:
    motion, angles = fall(0.6)
    times = [motion.t[np.argmax(angle > 0.3)] for angle in angles.T]
    speed = (GAP + SIZE[0]) / np.diff(times)[-1]
    print(f"stones tilt after {np.round(1e3 * np.array(times))} ms: the wave runs at {speed:.2f} m/s")
    return {"fallen": float(angles[-1].min()), "order": float(np.diff(times).min()), "speed": float(speed)}


def draw(axes) -> None:
    motion, angles = fall(0.6)
    axes.plot(motion.t, np.degrees(angles))
    axes.set(xlabel="t [s]", ylabel="tilt of each stone [°]")


if __name__ == "__main__":
    main()
