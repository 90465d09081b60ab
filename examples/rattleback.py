"""A rattleback: spun the wrong way it begins to rock, stops, and turns back. Its mass is askew to its shape."""

import numpy as np

import linkwise as lw

AXES, TURNED = (0.1, 0.02, 0.015), 0.1  # half axes, m; rad from the shape to the principal axes of inertia
RULES = lw.ContactRules(passive=True)  # steps that create no energy: nothing else may drive it back


def make() -> lw.Model:
    b = lw.ModelBuilder("rattleback")
    c, s = np.cos(TURNED), np.sin(TURNED)
    R = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])
    inertia = R @ np.diag([2e-5, 5e-4, 5.1e-4]) @ R.T
    shape = lw.Geometry("ellipsoid", AXES, None, (1, 1, 1), lw.transform(), "")
    b.add_body("rattleback", joint=lw.Free(), mass=0.2, inertia=inertia, collisions=[shape])
    return b.build().with_contacts(lw.Ground(), material=lw.Material(friction=2.0), rules=RULES)


def spin(rate: float, duration: float) -> tuple[lw.Trajectory, np.ndarray]:
    """The motion from a spin with a little rocking, and the angular velocity about the vertical (T)."""
    start = [1, 0, 0, 0, 0, 0, AXES[2]]
    motion = lw.simulate(make(), start, [0.02, 0.02, rate, 0, 0, 0], duration=duration, dt=0.001, method="moreau")
    return motion, motion.model.velocity(motion.q, motion.v, "rattleback")[..., 2]


def main(quick: bool = False) -> dict[str, float]:
    found = {}
    for name, rate in (("one way", 5.0), ("other way", -5.0)):
        motion, omega = spin(rate, 8.0)
        gained = float((motion.energy - motion.energy[0]).max() / motion.energy[0])
        found |= {name: float((np.sign(rate) * omega).min()), f"{name}, energy gained": gained}
        print(f"spun at {rate:+g} rad/s: between {omega.min():.2f} and {omega.max():.2f} rad/s")
    return found


def draw(axes) -> None:
    for rate in (5.0, -5.0):
        motion, omega = spin(rate, 8.0)
        axes.plot(motion.t, omega)
    axes.set(xlabel="t [s]", ylabel="spin [rad/s]")


if __name__ == "__main__":
    main()
