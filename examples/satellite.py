"""A satellite with two hinged panels on springs, tumbling freely: nothing outside acts, so momentum must stay."""

import numpy as np

import linkwise as lw

STIFFNESS = 5000.0  # N m/rad


def make() -> lw.Model:
    b = lw.ModelBuilder("satellite", gravity=(0, 0, 0))
    b.add_body("hub", joint=lw.Free(), mass=750.0, inertia=np.diag([900.0, 800.0, 600.0]))
    for side, x in (("left", -0.5), ("right", 0.5)):
        outward = np.sign(x)
        b.add_body(
            f"{side} panel",
            parent="hub",
            joint=lw.Revolute(axis=(0, 1, 0)),
            joint_name=f"{side} hinge",
            placement=lw.transform(xyz=(x, 1, 0)),
            mass=100.0,
            com=(1.5 * outward, 0, 0),
            inertia=np.diag([100.0, 50.0, 50.0]),
        )
    return b.build()


def tumble(model: lw.Model, duration: float, samples: int = 201) -> lw.Trajectory:
    """Let it go, turning, with the panels swinging."""
    v0 = np.array([0.3, 0.1, -0.2, 0, 0, 0, 0.2, -0.1])  # hub's angular velocity, linear velocity, hinges
    times = np.linspace(0, duration, samples)
    springs = lw.JointSprings(model, stiffness=[0, 0, 0, 0, 0, 0, STIFFNESS, STIFFNESS])
    return lw.simulate(model, model.neutral(), v0, duration=duration, control=springs, output_times=times, rtol=1e-12)


def main(quick: bool = False) -> dict[str, float]:
    model = make()
    duration = 20.0 if quick else 100.0
    motion = tumble(model, duration)

    energy = motion.energy  # with that of the springs
    momentum = model.momentum(motion.q, motion.v)  # angular about the world's origin, linear
    worst = {
        "energy": np.abs(energy - energy[0]).max() / energy[0],
        "angular momentum": np.abs(momentum - momentum[0])[:, :3].max() / np.linalg.norm(momentum[0, :3]),
        "linear momentum": np.abs(momentum - momentum[0])[:, 3:].max() / np.linalg.norm(momentum[0, 3:]),
    }
    for name, error in worst.items():
        print(f"{name} stays constant to {error:.1e}, relative, over {duration:g} s")
    print(f"the panels swing by up to {np.degrees(np.abs(motion.q[:, 7:]).max()):.2f}°")
    return {name: float(error) for name, error in worst.items()}


def draw(axes) -> None:
    """The hinges' angles over the first seconds."""
    motion = tumble(make(), 8.0, samples=801)
    axes.plot(motion.t, np.degrees(motion.q[:, 7:]), label=["left hinge", "right hinge"])
    axes.set(xlabel="t [s]", ylabel="angle [°]")
    axes.legend(fontsize="small")


if __name__ == "__main__":
    main()
