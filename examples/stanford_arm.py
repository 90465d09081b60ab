"""The Stanford arm of 002 §6.2: joint forces of the cycloidal motion (figure 8), and free fall (figure 9)."""

import numpy as np

import linkwise as lw
from linkwise import models


def main(quick: bool = False) -> dict[str, float]:
    model = models.stanford_arm()
    start = np.array([0, np.pi / 2, 0, 0, 0, 0])
    end = np.array([np.pi / 3, np.pi / 3, 0.1, np.pi / 3, np.pi / 3, np.pi / 3])

    T = 10.0
    t = np.linspace(0.0, T, 201)[:, None]
    phase = 2 * np.pi * t / T
    q = start + (end - start) * (t / T - np.sin(phase) / (2 * np.pi))
    v = (end - start) / T * (1 - np.cos(phase))
    vdot = (end - start) * 2 * np.pi / T**2 * np.sin(phase)
    tau = model.inverse_dynamics(q, v, vdot)
    for joint, low, high in zip(model.joints, tau.min(axis=0), tau.max(axis=0), strict=True):
        print(f"{joint.name}: {low:10.4g} to {high:.4g} {'N' if isinstance(joint.type, lw.Prismatic) else 'N m'}")

    fall = lw.simulate(model, start, np.zeros(6), duration=3.5, output_times=np.linspace(0, 3.5, 71), rtol=1e-10)
    drift = np.abs(fall.energy - fall.energy[0]).max()
    print(f"the slide falls {fall.q[-1, 2]:.1f} m in 3.5 s; energy stays constant to {drift:.1e} J")
    return {"slide_force": float(tau[-1, 2]), "drift": float(drift), "slide": float(fall.q[-1, 2])}


if __name__ == "__main__":
    main()
