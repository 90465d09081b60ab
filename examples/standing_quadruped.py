"""A quadruped is dropped and stands: PD control holds the legs, and feet that friction holds do not creep at all."""

import numpy as np

import linkwise as lw
from linkwise.sim.sensors import Touch

LEG, FOOT = 0.2, 0.02  # m


def make() -> lw.Model:
    b = lw.ModelBuilder("quadruped")
    b.add_body("trunk", joint=lw.Free(), mass=8.0, inertia=np.diag([0.08, 0.2, 0.25]))
    ball = lw.Geometry("sphere", (FOOT,), None, (1, 1, 1), lw.transform(xyz=(0, 0, -LEG)), "")
    turn, rod = lw.Revolute(axis=(0, 1, 0)), {"com": (0, 0, -0.1), "inertia": np.diag([3e-3, 3e-3, 3e-4])}
    for leg, x, y in (("fl", 0.2, 0.1), ("fr", 0.2, -0.1), ("rl", -0.2, 0.1), ("rr", -0.2, -0.1)):
        b.add_body(f"{leg} thigh", "trunk", turn, lw.transform(xyz=(x, y, 0)), mass=0.8, **rod)
        b.add_body(
            f"{leg} shank", f"{leg} thigh", turn, lw.transform(xyz=(0, 0, -LEG)), mass=0.3, collisions=[ball], **rod
        )
    return b.build().with_contacts(lw.Ground(), between=[], material=lw.Material(friction=0.8))


def drop(model: lw.Model, duration: float) -> lw.Trajectory:
    legs = np.tile([0.6, -1.2], 4)
    q0 = np.concatenate([[1, 0, 0, 0, 0, 0, 2 * LEG * np.cos(0.6) + FOOT + 0.1], legs])
    hold = lw.PD(model, q0, kp=200.0, kd=4.0)  # the joints: nothing holds the trunk
    return lw.simulate(model, q0, duration=duration, dt=0.005, method="moreau", control=hold)


def main(quick: bool = False) -> dict[str, float]:
    model = make()
    motion = drop(model, 4.0 if quick else 60.0)
    half, weight = len(motion.t) // 2, model.mass * 9.81
    creep = float(np.abs(motion.contacts.points[-1] - motion.contacts.points[half])[:, :2].max())
    press = Touch().read(motion)
    print(f"feet bear {press[-1].sum():.6f} N of {weight:.6f} N, and creep by {creep:.0e} m")
    return {
        "creep": creep,
        "missing": float(abs(press[-1].sum() / weight - 1)),
        "deep": -float(motion.contacts.gap[half:].min()),
    }


def draw(axes) -> None:
    motion = drop(make(), 0.6)
    axes.plot(motion.t, Touch().read(motion))
    axes.set(xlabel="t [s]", ylabel="normal forces on the feet [N]")


if __name__ == "__main__":
    main()
