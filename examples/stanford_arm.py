"""The Stanford arm of Saha 1999 §6.2: joint forces of the cycloidal motion (figure 8), and free fall (figure 9)."""

import numpy as np

import linkwise as lw
from linkwise import samples

START = np.array([0, np.pi / 2, 0, 0, 0, 0])
END = np.array([np.pi / 3, np.pi / 3, 0.1, np.pi / 3, np.pi / 3, np.pi / 3])


def cycloid(T: float = 10.0) -> tuple[np.ndarray, ...]:
    """Times, and q, v and v̇ of the motion from rest to rest."""
    t = np.linspace(0.0, T, 201)[:, None]
    phase = 2 * np.pi * t / T
    q = START + (END - START) * (t / T - np.sin(phase) / (2 * np.pi))
    v = (END - START) / T * (1 - np.cos(phase))
    vdot = (END - START) * 2 * np.pi / T**2 * np.sin(phase)
    return t, q, v, vdot


def main(quick: bool = False) -> dict[str, float]:
    model = samples.stanford_arm()
    _, *motion = cycloid()
    tau = model.inverse_dynamics(*motion)
    for joint, low, high in zip(model.joints, tau.min(axis=0), tau.max(axis=0), strict=True):
        print(f"{joint.name}: {low:10.4g} to {high:.4g} {'N' if isinstance(joint.type, lw.Prismatic) else 'N m'}")

    fall = lw.simulate(model, START, np.zeros(6), duration=3.5, output_times=np.linspace(0, 3.5, 71), rtol=1e-10)
    drift = np.abs(fall.energy - fall.energy[0]).max()
    print(f"the slide falls {fall.q[-1, 2]:.1f} m in 3.5 s; energy stays constant to {drift:.1e} J")
    return {"slide_force": float(tau[-1, 2]), "drift": float(drift), "slide": float(fall.q[-1, 2])}


def draw(axes) -> None:
    """Joint forces of the cycloidal motion."""
    model = samples.stanford_arm()
    t, *motion = cycloid()
    axes.plot(t, model.inverse_dynamics(*motion), label=model.joints.names)
    axes.set(xlabel="t [s]", ylabel="joint force [N m, N]")
    axes.legend(fontsize="small", ncols=2)


if __name__ == "__main__":
    main()
