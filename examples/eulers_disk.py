"""Euler's disk: a coin that rolls on its rim precesses ever faster as it sinks, and stops after a finite time."""

import numpy as np

import linkwise as lw

RADIUS, HEIGHT, MASS, TILT = 0.04, 0.002, 0.1, 0.2  # m, m, kg, rad


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


def main(quick: bool = False) -> dict[str, float]:
    motion, tilt = roll(2e-4, 6.0)
    rest = motion.t[np.argmax(tilt < 1e-3)]
    speed = np.linalg.norm(motion.v[:, :3], axis=1)
    print(f"it lies flat after {rest:.2f} s; the energy never rose by more than {np.diff(motion.energy).max():.0e} J")
    return {"rest": float(rest), "gained": float(np.diff(motion.energy).max()), "speed": float(speed[-1])}


def draw(axes) -> None:
    motion, tilt = roll(2e-4, 6.0)
    axes.plot(motion.t, np.degrees(tilt))
    axes.set(xlabel="t [s]", ylabel="tilt [°]")


if __name__ == "__main__":
    main()
