"""A stack of boxes: each carries those above it, to the last digit, and none of them creeps."""

import numpy as np

import linkwise as lw

COUNT, EDGE, MASS = 3, 0.1, 0.5  # m, kg


def make() -> lw.Model:
    b = lw.ModelBuilder("stack")
    cube = lw.Geometry("box", (EDGE,) * 3, None, (1, 1, 1), lw.transform(), "")
    for k in range(COUNT):
        inertia = np.eye(3) * MASS * EDGE**2 / 6
        b.add_body(f"box {k}", joint=lw.Free(), mass=MASS, inertia=inertia, collisions=[cube])
    neighbours = [(f"box {k}", f"box {k + 1}") for k in range(COUNT - 1)]
    return b.build().with_contacts(lw.Ground(), only=["box 0"], between=neighbours)


def main(quick: bool = False) -> dict[str, float]:
    model = make()
    q0 = np.concatenate([[1, 0, 0, 0, 0.01 * (-1) ** k, 0, EDGE * (k + 0.5) + 0.002 * k] for k in range(COUNT)])
    motion = lw.simulate(model, q0, duration=1.0 if quick else 10.0, dt=0.004, method="moreau")
    carried = [motion.contacts.pressing(f"box {k}")[-1] for k in range(COUNT)]  # from below and from above
    expected = [MASS * 9.81 * (2 * (COUNT - k) - 1) for k in range(COUNT)]
    creep = float(np.abs(motion.v[-1]).max())
    print(
        f"normal forces {np.round(carried, 6)} N, expected {np.round(expected, 6)} N; speed at the end {creep:.0e} m/s"
    )
    return {"force": float(np.abs(np.subtract(carried, expected)).max()), "creep": creep}


def draw(axes) -> None:
    q0 = np.concatenate([[1, 0, 0, 0, 0.01 * (-1) ** k, 0, EDGE * (k + 0.5) + 0.02 * k] for k in range(COUNT)])
    motion = lw.simulate(make(), q0, duration=0.4, dt=0.002, method="moreau")
    axes.plot(motion.t, np.stack([motion.contacts.pressing(f"box {k}") for k in range(COUNT)], axis=-1))
    axes.set(xlabel="t [s]", ylabel="normal forces [N]", ylim=(0, 100))


if __name__ == "__main__":
    main()
