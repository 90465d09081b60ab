"""Random search for a controller: every rollout of a batch has its own gains, and all run in one kernel.

The gains are run-time parameters `p` of the control function, one row for each state of the batch.
"""

import warnings
from collections.abc import Iterator
from time import perf_counter

import numpy as np

import linkwise as lw


def make() -> lw.Model:
    """A cart on a rail with a pole on top."""
    b = lw.ModelBuilder("cart and pole")
    b.add_body("cart", joint=lw.Prismatic(axis=(1, 0, 0)), mass=1.0)
    b.add_body(
        "pole", "cart", lw.Revolute(axis=(0, 1, 0)), mass=0.3, com=(0, 0, 0.5), inertia=np.diag([0.025, 0.025, 0])
    )
    return b.build()


def control(t, q, v, p):
    """The force on the cart is linear in the state; p holds the four gains."""
    return [-(p[0] * q[0] + p[1] * q[1] + p[2] * v[0] + p[3] * v[1]), 0.0]


def costs(model: lw.Model, gains: np.ndarray) -> np.ndarray:
    """The mean cost of each row of gains over 5 s, from a lean of 20°; at any time no more than 1."""
    q0 = np.broadcast_to([0.0, np.radians(20.0)], (len(gains), 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # most random gains drive the cart to infinity: that is their cost
        motion = lw.simulate(
            model, q0, np.zeros(2), duration=5.0, control=control, p=gains, method="rk4", dt=0.01, save_every=10
        )
    q = np.clip(np.nan_to_num(motion.q, nan=1e3), -1e3, 1e3)
    return np.minimum(q[..., 0] ** 2 + q[..., 1] ** 2, 1.0).mean(axis=1)


def search(model: lw.Model, batch: int, rounds: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The costs of each round's rollouts, and the mean of the best gains, around which the next round draws."""
    rng = np.random.default_rng(0)
    mean, spread = np.zeros(4), np.full(4, 30.0)
    for _ in range(rounds):
        gains = mean + spread * rng.standard_normal((batch, 4))
        cost = costs(model, gains)
        best = gains[np.argsort(cost)[: batch // 16]]
        mean, spread = best.mean(axis=0), best.std(axis=0)
        yield cost, mean


def main(quick: bool = False) -> dict[str, float]:
    batch, rounds = (512, 10) if quick else (4096, 15)
    history = []
    start = perf_counter()
    for cost, mean in search(make(), batch, rounds):
        history.append(float(cost.min()))
        print(f"best cost {cost.min():.4f}, middle one {np.median(cost):.3g}, gains {np.round(mean, 1)}")
    steps = batch * rounds * 500
    print(f"{steps / 1e6:.1f} million steps in {perf_counter() - start:.1f} s, compiling included")
    return {"first": history[0], "last": history[-1]}


def draw(axes) -> None:
    """The costs of all rollouts, round by round."""
    for number, (cost, _) in enumerate(search(make(), 512, 10), 1):
        axes.plot(np.full(len(cost), number), cost, ".", color="C0", alpha=0.15, ms=4)
        axes.plot(number, cost.min(), "o", color="C1")
    axes.set(xlabel="round", ylabel="cost (best in orange)", yscale="log")


if __name__ == "__main__":
    main()
