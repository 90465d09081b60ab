"""A quadruped in flight: it jumps off spinning slowly, and tucks its legs in, which makes it spin faster.

Between take-off and landing no joint force can change the path of the mass centre or the angular momentum about it.
"""

import numpy as np

import linkwise as lw

HIP, KNEE = 0.25, 0.25  # m


def make() -> lw.Model:
    b = lw.ModelBuilder("quadruped")
    b.add_body("trunk", joint=lw.Free(), mass=8.0, inertia=np.diag([0.08, 0.2, 0.25]))
    for end, x in (("front", 0.2), ("rear", -0.2)):
        for side, y in (("left", 0.1), ("right", -0.1)):
            leg = f"{end} {side}"
            b.add_body(
                f"{leg} hip", "trunk", lw.Revolute(axis=(1, 0, 0)), lw.transform(xyz=(x, y, 0)),
                mass=0.6, inertia=np.diag([6e-4] * 3), joint_name=f"{leg} abduction",
            )  # fmt: skip
            b.add_body(
                f"{leg} thigh", f"{leg} hip", lw.Revolute(axis=(0, 1, 0)), lw.transform(xyz=(0, np.sign(y) * 0.08, 0)),
                mass=0.8, com=(0, 0, -0.1), inertia=np.diag([5e-3, 5e-3, 1e-3]), joint_name=f"{leg} hip",
            )  # fmt: skip
            b.add_body(
                f"{leg} shank", f"{leg} thigh", lw.Revolute(axis=(0, 1, 0)), lw.transform(xyz=(0, 0, -HIP)),
                mass=0.5, com=(0, 0, -0.16), inertia=np.diag([3e-3, 3e-3, 2e-4]), joint_name=f"{leg} knee",
            )  # fmt: skip
            b.add_frame(f"{leg} foot", f"{leg} shank", lw.transform(xyz=(0, 0, -KNEE)))
    return b.build()


def flight(model: lw.Model) -> lw.Trajectory:
    """From take-off, pitching forward slowly, while the legs are drawn in."""
    stretched, tucked = np.tile([0.0, 0.2, -0.4], 4), np.tile([0.0, 1.2, -2.4], 4)

    def tuck(t, q, v, p):
        """PD control of the legs; the trunk has no actuator."""
        return [0.0] * 6 + [60.0 * (goal - x) - 4.0 * u for goal, x, u in zip(tucked, q[7:], v[6:], strict=True)]

    q0 = np.concatenate([[1, 0, 0, 0, 0, 0, 0.5], stretched])  # quaternion w, x, y, z and position of the trunk; legs
    v0 = np.concatenate([[0, 2.0, 0, 0, 0, 3.0], np.zeros(12)])  # pitching forward at 2 rad/s, 3 m/s upwards
    times = np.linspace(0, 0.6, 61)
    return lw.simulate(model, q0, v0, duration=0.6, control=tuck, output_times=times, rtol=1e-10)


def main(quick: bool = False) -> dict[str, float]:
    model = make()
    print(f"{model.name}: {model.nv} freedoms, {model.mass:g} kg")
    motion = flight(model)
    times = motion.t

    center = model.center_of_mass(motion.q)
    start = model.centroidal.momentum(motion.q[0], motion.v[0])
    path = center[0] + np.outer(times, start[3:] / model.mass) + 0.5 * np.outer(times**2, model.gravity)
    off_path = np.abs(center - path).max()
    spin = model.centroidal.momentum(motion.q, motion.v)[:, :3]
    lost = np.abs(spin - start[:3]).max()
    pitch = motion.v[:, 1]
    print(f"the mass centre follows its parabola to {off_path:.1e} m")
    print(f"angular momentum stays at {spin[0, 1]:.3f} N m s to {lost:.1e}")
    print(f"the trunk pitches at {pitch[0]:.2f} rad/s with the legs out, {pitch[-1]:.2f} rad/s with them tucked")
    return {"off_path": float(off_path), "lost": float(lost), "before": float(pitch[0]), "after": float(pitch[-1])}


def draw(axes) -> None:
    """From the side, five instants beside each other: trunk, legs on the left, and the path of the mass centre."""
    model = make()
    motion = flight(model)
    for k in range(0, 61, 15):
        away = np.array([1.2 * motion.t[k] / 0.15, 0.0])
        for end, color in (("front", "C0"), ("rear", "C1")):
            names = [f"{end} left thigh", f"{end} left shank", f"{end} left foot"]
            leg = np.array([motion.pose(name)[k, [0, 2], 3] for name in names])
            axes.plot(*(leg + away).T, "o-", ms=3, color=color)
        trunk = np.array([motion.pose(f"{end} left thigh")[k, [0, 2], 3] for end in ("front", "rear")])
        axes.plot(*(trunk + away).T, color="0.4", lw=4)
        axes.text(away[0], 0.0, f"{motion.t[k]:.2f} s", ha="center", fontsize="small")
    axes.set(xlabel="x, shifted [m]", ylabel="z [m]", aspect="equal")


if __name__ == "__main__":
    main()
