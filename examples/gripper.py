"""A gripper holds a capsule by friction alone: not a nanometre of slip, however long it holds."""

import numpy as np

import linkwise as lw

MASS, SQUEEZE = 0.045, 2.0  # kg, N


def make() -> lw.Model:
    b = lw.ModelBuilder("gripper")
    pad = lw.Geometry("box", (0.02, 0.1, 0.04), None, (1, 1, 1), lw.transform(), "")
    for side, x in (("left", -1.0), ("right", 1.0)):
        at = lw.transform(xyz=(0.03 * x, 0, 0))
        slide = lw.Prismatic(axis=(-x, 0, 0))
        b.add_body(side, joint=slide, placement=at, mass=0.1, inertia=np.eye(3) * 1e-5, collisions=[pad])
    capsule = lw.Geometry("capsule", (0.02, 0.05), None, (1, 1, 1), lw.transform(rpy=(np.pi / 2, 0, 0)), "")
    b.add_body("capsule", joint=lw.Free(), mass=MASS, inertia=np.diag([2e-5, 1e-5, 2e-5]), collisions=[capsule])
    touching = [("left", "capsule"), ("right", "capsule")]
    return b.build().with_contacts(only=[], between=touching, material=lw.Material(friction=0.5))


def grasp(squeeze: float, duration: float) -> lw.Trajectory:
    q0 = np.concatenate([np.zeros(2), [1, 0, 0, 0, 0, 0, 0]])
    push = np.concatenate([[squeeze, squeeze], np.zeros(6)])
    return lw.simulate(make(), q0, duration=duration, dt=0.002, method="moreau", control=lambda t, q, v, p: push)


def main(quick: bool = False) -> dict[str, float]:
    held = grasp(SQUEEZE, 5.0 if quick else 600.0)
    slip = float(abs(held.q[-1, 8] - held.q[len(held.t) // 2, 8]) / (held.t[-1] / 2))
    lost = grasp(0.4, 0.5)  # less than m g / 2μ on each side: it slides out
    print(f"held with {SQUEEZE:g} N it slips at {slip:.0e} m/s; with 0.4 N it is lost, {-lost.q[-1, 8]:.2f} m below")
    return {"slip": slip, "fallen": -float(lost.q[-1, 8])}


def draw(axes) -> None:
    for squeeze in (SQUEEZE, 0.4):
        motion = grasp(squeeze, 0.3)
        axes.plot(motion.t, 1e3 * motion.q[:, 8], label=f"{squeeze:g} N")
    axes.set(xlabel="t [s]", ylabel="height [mm]")
    axes.legend(fontsize="small")


if __name__ == "__main__":
    main()
