"""The planar three-link arm of Saha 1999 §6.1: torques of the cycloidal motion (RIDIM), and free fall (RFDSIM)."""

import numpy as np

import linkwise as lw
from linkwise import samples


def fall_of(model: lw.Model) -> lw.Trajectory:
    """Let go of the stretched arm."""
    return lw.simulate(model, np.zeros(3), np.zeros(3), duration=3.5, output_times=np.linspace(0, 3.5, 71), rtol=1e-10)


def main(quick: bool = False) -> dict[str, float]:
    model = samples.planar_arm()

    # Figure 5: every joint from 0 to π in T = 10 s, from rest to rest.
    T = 10.0
    t = np.linspace(0.0, T, 201)
    phase = 2 * np.pi * t[:, None] / T
    q = np.pi * (t[:, None] / T - np.sin(phase) / (2 * np.pi)) * np.ones(3)
    v = np.pi / T * (1 - np.cos(phase)) * np.ones(3)
    vdot = 2 * np.pi**2 / T**2 * np.sin(phase) * np.ones(3)
    tau = model.inverse_dynamics(q, v, vdot)  # all 201 states in one call
    print(f"torque 1 runs from {tau[:, 0].min():.3f} to {tau[:, 0].max():.3f} N m")

    fall = fall_of(model)  # figure 6
    drift = np.abs(fall.energy - fall.energy[0]).max()
    print(f"joint 1 swings to {fall.q[:, 0].min():.3f} rad; energy stays constant to {drift:.1e} J")
    return {
        "peak": float(tau[:, 0].max()),
        "least": float(tau[:, 0].min()),
        "drift": float(drift),
        "q1": float(fall.q[5, 0]),
    }


def draw(axes) -> None:
    """The falling arm every twentieth of a second, for a second: lighter is earlier."""
    fall = fall_of(samples.planar_arm())
    joints = np.concatenate([fall.poses[:, :, :3, 3], fall.pose("tip")[:, None, :3, 3]], axis=1)
    across = np.ptp(joints, axis=(0, 1)).argsort()[-2:]  # the plane that it moves in
    x, y = sorted(across)
    for k in range(21):
        axes.plot(*joints[k][:, [x, y]].T, "o-", color="C0", alpha=0.1 + 0.04 * k, ms=3)
    axes.set(xlabel=f"{'xyz'[x]} [m]", ylabel=f"{'xyz'[y]} [m]", aspect="equal")


if __name__ == "__main__":
    main()
