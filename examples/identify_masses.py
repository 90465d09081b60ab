"""Masses of an arm by going downhill along exact gradients of what its joints measure.

Joint forces of a motion were measured, with noise. The cost of a guess is the squared difference between what inverse
dynamics says and what was measured; its gradient with respect to the masses comes from the same program, differentiated
(reverse mode), and a whole motion is one batch.
"""

import numpy as np

import linkwise as lw
from linkwise import models

MASSES = ["link2.mass", "link3.mass", "link6.mass"]


def misfit(model, masses, q, v, vdot, measured):
    """The squared error of one sample."""
    error = model.inverse_dynamics(q, v, vdot, p=masses) - measured
    return (error * error).sum()


def main(quick: bool = False) -> dict[str, float]:
    model = models.stanford_arm().with_parameters(MASSES)
    true = model.nominal_parameters
    rng = np.random.default_rng(0)
    t = np.linspace(0.0, 20.0, 500 if quick else 5000)[:, None]
    size, rate, phase = rng.uniform(0.2, 0.6, 6), rng.uniform(0.5, 4.0, 6), rng.uniform(0.0, 6.3, 6)
    q, v, vdot = (
        size * f
        for f in (np.sin(rate * t + phase), rate * np.cos(rate * t + phase), -(rate**2) * np.sin(rate * t + phase))
    )
    measured = model.inverse_dynamics(q, v, vdot, p=true) + 0.05 * rng.standard_normal(q.shape)

    cost = lw.compile(misfit, model, {"masses": "p", "q": "q", "v": "v", "vdot": "v", "measured": "v"}, name="misfit")
    starts = true * rng.uniform(0.3, 3.0, (3, len(true)))
    found = lw.ensemble.descend(cost, starts, (q, v, vdot, measured), bounds=(1e-3, 1e3))
    for name, guess, was in zip(MASSES, found.x, true, strict=True):
        print(f"{name}: {guess:.4f} kg, was {was:.4f} kg")
    print(f"{found.evaluations} costs and gradients of {len(t)} samples each")
    print(f"cost {found.cost:.5f}; that of the noise alone {6 * 0.05**2:.5f}")
    return {"error": float(np.abs(found.x / true - 1.0).max()), "cost": found.cost}


if __name__ == "__main__":
    main()
