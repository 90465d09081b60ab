"""Masses of an arm by going downhill along exact gradients of what its joints measure.

Joint forces of a motion were measured, with noise. The cost of a guess is the squared difference between what inverse
dynamics says and what was measured; its gradient with respect to the masses comes from the same program, differentiated
(reverse mode), and a whole motion is one batch.
"""

import numpy as np

import linkwise as lw
from linkwise import samples

MASSES = ["link2.mass", "link3.mass", "link6.mass"]


def misfit(model, masses, q, v, vdot, measured):
    """The squared error of one sample."""
    error = model.inverse_dynamics(q, v, vdot, p=masses) - measured
    return (error * error).sum()


def measure(model, samples: int, rng) -> tuple[np.ndarray, ...]:
    """q, v, v̇ and the noisy joint forces of a motion of 20 s."""
    t = np.linspace(0.0, 20.0, samples)[:, None]
    size, rate, phase = rng.uniform(0.2, 0.6, 6), rng.uniform(0.5, 4.0, 6), rng.uniform(0.0, 6.3, 6)
    q, v, vdot = (
        size * f
        for f in (np.sin(rate * t + phase), rate * np.cos(rate * t + phase), -(rate**2) * np.sin(rate * t + phase))
    )
    return q, v, vdot, model.inverse_dynamics(q, v, vdot) + 0.05 * rng.standard_normal(q.shape)


def misfit_of(model) -> lw.CompiledFunction:
    """The misfit, compiled, with the masses for its first input."""
    inputs = {"masses": "p", "q": "q", "v": "v", "vdot": "v", "measured": "v"}
    return lw.compile(misfit, model, inputs, name="misfit")


def main(quick: bool = False) -> dict[str, float]:
    model = samples.stanford_arm().with_parameters(MASSES)
    true = model.parameters.nominal
    rng = np.random.default_rng(0)
    data = measure(model, 500 if quick else 5000, rng)
    starts = true * rng.uniform(0.3, 3.0, (3, len(true)))
    found = lw.studies.descend(misfit_of(model), starts, data, bounds=(1e-3, 1e3))
    for name, guess, was in zip(MASSES, found.x, true, strict=True):
        print(f"{name}: {guess:.4f} kg, was {was:.4f} kg")
    print(f"{found.evaluations} costs and gradients of {len(data[0])} samples each")
    print(f"cost {found.cost:.5f}; that of the noise alone {6 * 0.05**2:.5f}")
    return {"error": float(np.abs(found.x / true - 1.0).max()), "cost": found.cost}


def draw(axes) -> None:
    """The misfit as one mass at a time is changed, the others being right."""
    model = samples.stanford_arm().with_parameters(MASSES)
    data, cost = measure(model, 300, np.random.default_rng(0)), misfit_of(model)
    factors = np.linspace(0.3, 3.0, 60)
    for k, name in enumerate(MASSES):
        guesses = np.tile(model.parameters.nominal, (60, 1, 1))
        guesses[:, 0, k] *= factors
        axes.semilogy(factors, cost(guesses, *data).mean(axis=1), label=name)
    axes.set(xlabel="guess over true mass", ylabel="misfit [(N m)²]")
    axes.legend(fontsize="small")


if __name__ == "__main__":
    main()
