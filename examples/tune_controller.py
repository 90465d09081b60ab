"""Gains of a controller by CMA-ES: every candidate is simulated in the same hundred scenarios, a generation at once.

A cart carries a pole whose mass is not known well, and gusts push it. What counts is how it does in all of them.
"""

import numpy as np
import scipy.stats as st

import linkwise as lw


def make() -> lw.Model:
    """A cart on a rail with a pole on top; the pole's mass is a run-time parameter."""
    b = lw.ModelBuilder("cart and pole")
    b.add_body("cart", joint=lw.Prismatic(axis=(1, 0, 0)), mass=1.0)
    b.add_body(
        "pole", "cart", lw.Revolute(axis=(0, 1, 0)), mass=0.3, com=(0, 0, 0.5), inertia=np.diag([0.025, 0.025, 0])
    )
    return b.build().with_parameters(["pole.mass"])


def control(t, q, v, p):
    """p holds the pole's mass, four gains and a gust: its strength and when it comes."""
    gains, strength, moment = p[1:5], p[5], p[6]
    force = -(gains[0] * q[0] + gains[1] * q[1] + gains[2] * v[0] + gains[3] * v[1])
    gust = strength * lw.math.exp(-(((t - moment) / 0.1) ** 2))
    return [force, gust]


def cost(trajectory) -> np.ndarray:
    """How far cart and pole are off, at any time no more than 1, averaged over time."""
    q = np.nan_to_num(trajectory.q, nan=1e3, posinf=1e3, neginf=-1e3)
    return np.minimum((np.clip(q, -1e3, 1e3) ** 2).sum(axis=2), 1.0).mean(axis=1)


SCENARIOS = {
    "q0": [0.0, st.norm(0.0, 0.15)],
    "pole.mass": st.uniform(0.2, 0.3),
    "strength": st.norm(0.0, 1.0),
    "moment": st.uniform(0.5, 2.0),
}
SETTINGS = {"duration": 5.0, "method": "rk4", "dt": 0.01, "control": control, "save_every": 10}


def main(quick: bool = False) -> dict[str, float]:
    model = make()
    rounds, population, count = (25, 24, 12) if quick else (40, 32, 100)
    over = {"gains": ([-60.0] * 4, [60.0] * 4)}
    found = {}
    for strategy in ("random", "cma"):
        best = lw.studies.search(
            model,
            over,
            cost,
            SCENARIOS,
            count,
            strategy=strategy,
            rounds=rounds,
            population=population,
            seed=1,
            **SETTINGS,
        )
        found[strategy] = best.cost
        print(f"{strategy}: cost {best.cost:.4f} after {best.evaluations} simulations, gains {np.round(best.x, 1)}")

    # How good is it in scenarios that it was not tuned in?
    trial = lw.ensemble(
        model, {"gains": best.x, **SCENARIOS}, 200 if quick else 20_000, seed=2, keep={"cost": cost},
        failure=lambda trajectory: ~(np.abs(trajectory.q[:, -1, 1]) < 0.2), **SETTINGS,
    )  # fmt: skip
    print(f"in new scenarios: cost {trial.moments('cost').mean:.4f}, the pole falls in {trial.failure_rate()}")
    return {**found, "falls": trial.failure_rate().value}


def draw(axes) -> None:
    """The pole in eighty scenarios: under guessed gains (orange), and under those that are found."""
    for gains, color in (([-2.0, -30.0, -4.0, -8.0], "C1"), ([-5.3, -60.0, -28.2, -45.8], "C0")):
        trial = lw.ensemble(make(), {"gains": gains, **SCENARIOS}, 80, seed=2, keep="q", **SETTINGS)
        q = trial["q"]
        axes.plot(np.linspace(0.0, 5.0, q.shape[1]), np.degrees(q[:, :, 1]).T, color=color, lw=0.5)
    axes.set(xlabel="t [s]", ylabel="lean of the pole [°]", ylim=(-40, 40))


if __name__ == "__main__":
    main()
