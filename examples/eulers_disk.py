"""Euler's disk: a coin that rolls on its rim precesses ever faster as it sinks, and stops after a finite time."""

import numpy as np

import linkwise as lw

RADIUS, HEIGHT, MASS, TILT = 0.04, 0.002, 0.1, 0.2  # m, m, kg, rad
ROLLING, FLAT = 2e-4, 1e-3  # arm of rolling friction, m; a tilt that is as good as none, rad


def make(rolling: float) -> lw.Model:
    b = lw.ModelBuilder("disk")
    thin = MASS * (3 * RADIUS**2 + HEIGHT**2) / 12
    coin = lw.Geometry("cylinder", (RADIUS, HEIGHT), None, (1, 1, 1), lw.transform(), "")
    inertia = np.diag([thin, thin, MASS * RADIUS**2 / 2])
    b.add_body("disk", joint=lw.Free(), mass=MASS, inertia=inertia, collisions=[coin])
    return b.build().with_contacts(lw.Ground(), material=lw.Material(friction=1.0, rolling=rolling))


def roll(rolling: float, duration: float) -> tuple[lw.Trajectory, np.ndarray]:
    """The motion from steady rolling at a tilt, Ω² sin α = 4 g / r, and the tilt (T)."""
    rate = np.sqrt(4 * 9.81 / (RADIUS * np.sin(TILT)))
    omega = rate * np.array([0, np.sin(TILT), np.cos(TILT)]) - np.array([0, 0, rate * np.cos(TILT)])  # body axes
    height = RADIUS * np.sin(TILT) + 0.5 * HEIGHT * np.cos(TILT)
    q0 = [np.cos(TILT / 2), np.sin(TILT / 2), 0, 0, 0, 0, height]
    motion = lw.simulate(make(rolling), q0, [*omega, 0, 0, 0], duration=duration, dt=0.0005, method="moreau")
    _, x, y, _ = motion.q[:, :4].T
    return motion, np.arccos(np.clip(1 - 2 * (x * x + y * y), -1, 1))


def expected() -> float:
    """Time of a thin disk to the last tilt, s: the energy, 3/2 m g r sin α, goes by rolling friction times Ω sin α."""
    slowing = ROLLING / (1.5 * RADIUS) * np.sqrt(4 * 9.81 / RADIUS)
    return float(2 * (np.sqrt(np.sin(TILT)) - np.sqrt(np.sin(FLAT))) / slowing)


def main(quick: bool = False) -> dict[str, float]:
    motion, tilt = roll(ROLLING, 10.0)
    rest = float(motion.t[np.argmax(tilt < FLAT)])
    speed = np.linalg.norm(motion.v[:, :3], axis=1)
    gained = float(np.diff(motion.energy).max())
    print(f"it lies flat after {rest:.2f} s (expected: {expected():.2f}); energy rose by {gained:.0e} J a step at most")
    return {"rest": rest, "expected": expected(), "gained": gained, "speed": float(speed[-1])}


def draw(axes) -> None:
    motion, tilt = roll(ROLLING, 10.0)
    axes.plot(motion.t, np.degrees(tilt))
    axes.set(xlabel="t [s]", ylabel="tilt [°]")


if __name__ == "__main__":
    main()
