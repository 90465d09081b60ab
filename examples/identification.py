"""Masses, mass centres and inertias of an arm from noisy measurements of its motion.

Joint forces are linear in the inertial parameters, τ = Y(q, v, v̇) π. Not every parameter can be felt at the joints: the
singular values of Y say which combinations can. We find those by least squares and check them by predicting forces of a
motion that was not used.
"""

import numpy as np

from linkwise import samples


def excite(rng, model, t):
    """A random sum of sines for each joint: q, v and v̇."""
    q, v, vdot = (np.zeros((len(t), model.nv)) for _ in range(3))
    for _ in range(5):
        size, rate, phase = (
            rng.uniform(0.1, 0.5, model.nv),
            rng.uniform(0.5, 4.0, model.nv),
            rng.uniform(0, 6.3, model.nv),
        )
        angle = t[:, None] * rate + phase
        q += size * np.sin(angle)
        v += size * rate * np.cos(angle)
        vdot -= size * rate**2 * np.sin(angle)
    return q, v, vdot


def main(quick: bool = False) -> dict[str, float]:
    t = np.linspace(0, 20, 500 if quick else 4000)
    tau, predicted = identify(t)
    error = np.sqrt(np.mean((predicted - tau) ** 2))
    print(f"forces of another motion are predicted to {error:.4f} N m (rms), of {np.sqrt(np.mean(tau**2)):.1f}")
    return {"error": float(error), "rms": float(np.sqrt(np.mean(tau**2)))}


def identify(t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The forces of a motion that was not used to identify the arm: as they are, and as predicted."""
    model = samples.stanford_arm()
    rng = np.random.default_rng(0)

    # Measure: forces with noise of 0.05 N m (or N).
    q, v, vdot = excite(rng, model, t)
    measured = model.inverse_dynamics(q, v, vdot) + 0.05 * rng.standard_normal(q.shape)

    # Identify: all states of the regressor at once, stacked into one tall matrix.
    Y = model.regressor(q, v, vdot).reshape(-1, 10 * len(model.bodies))
    U, sizes, Vt = np.linalg.svd(Y, full_matrices=False)
    felt = int((sizes > 1e-9 * sizes[0]).sum())
    print(f"{felt} combinations of the {Y.shape[1]} parameters can be felt at the joints")
    base = Vt[:felt]  # π = base* x: x are the combinations
    x = (U[:, :felt].T @ measured.reshape(-1)) / sizes[:felt]
    true = base @ model.inertial_parameters
    print(f"they are found to within {np.abs(x - true).max():.3f} of values up to {np.abs(true).max():.1f}")

    # Predict: another motion.
    q, v, vdot = excite(rng, model, t)
    tau = model.inverse_dynamics(q, v, vdot)
    predicted = (model.regressor(q, v, vdot) @ (base.T @ x)).reshape(tau.shape)
    return tau, predicted


def draw(axes) -> None:
    """Forces of the other motion: lines as they are, dots as predicted."""
    t = np.linspace(0, 20, 500)
    tau, predicted = identify(t)
    axes.plot(t, tau[:, :3])
    axes.set_prop_cycle(None)
    axes.plot(t[::6], predicted[::6, :3], ".")
    axes.set(xlabel="t [s]", ylabel="force of joints 1 to 3 [N m, N]", xlim=(0, 10))


if __name__ == "__main__":
    main()
