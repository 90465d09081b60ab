"""A double pendulum: built by hand, simulated, and a batch of nearly equal ones to see how soon they part."""

import numpy as np

import linkwise as lw


def make() -> lw.Model:
    rod = np.diag([1 / 12, 1 / 12, 0.0])  # 1 kg, 1 m, about the mass centre
    hinge = lw.Revolute(axis=(0, 1, 0))
    b = lw.ModelBuilder("double pendulum")
    b.add_body("upper", joint=hinge, mass=1.0, com=(0, 0, -0.5), inertia=rod)
    b.add_body("lower", "upper", hinge, lw.transform(xyz=(0, 0, -1)), mass=1.0, com=(0, 0, -0.5), inertia=rod)
    return b.build()


def spreading(model: lw.Model, q0: np.ndarray, duration: float) -> lw.Trajectory:
    """64 pendulums that start within a millionth of a degree of each other."""
    starts = q0 + np.radians(1e-6) * np.random.default_rng(0).uniform(-1, 1, (64, 2))
    return lw.simulate(model, starts, np.zeros(2), duration=duration, rtol=1e-11)


def main(quick: bool = False) -> dict[str, float]:
    model = make()
    q0 = np.array([2.0, 0.5])
    duration = 5.0 if quick else 20.0
    motion = lw.simulate(model, q0, np.zeros(2), duration=duration, rtol=1e-11)
    drift = np.abs(motion.energy - motion.energy[0]).max()
    print(f"{duration:g} s in {motion.steps} steps; energy stays constant to {drift:.1e} J")

    many = spreading(model, q0, duration)  # a batch
    spread = np.ptp(many.q[:, :, 1], axis=0)
    for time in np.linspace(0, duration, 6):
        print(f"  after {time:4.1f} s they are spread over {spread[np.searchsorted(many.t, time)]:.1e} rad")
    return {"drift": float(drift), "first_spread": float(spread[0]), "last_spread": float(spread[-1])}


def draw(axes) -> None:
    """The angle of the lower rod of all 64."""
    many = spreading(make(), np.array([2.0, 0.5]), 20.0)
    axes.plot(many.t, many.q[:, :, 1].T, lw=0.6)
    axes.set(xlabel="t [s]", ylabel="angle of the lower rod [rad]")


if __name__ == "__main__":
    main()
