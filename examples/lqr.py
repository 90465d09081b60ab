"""A linear-quadratic regulator for a cart with a pole, which has one motor for two freedoms.

The linear model comes from `state_space`, exact to rounding, with the friction in the wheels and in the hinge; the
regulator is then tried on the full equations, which have it too.
"""

import warnings

import numpy as np
from scipy.linalg import solve_continuous_are

import linkwise as lw


def make() -> lw.Model:
    b = lw.ModelBuilder("cart and pole")
    b.add_body("cart", joint=lw.Prismatic(axis=(1, 0, 0)), joint_name="rail", mass=1.0, damping=0.5)
    rod = np.diag([0.025, 0.025, 0])
    b.add_body("pole", "cart", lw.Revolute(axis=(0, 1, 0)), mass=0.3, com=(0, 0, 0.5), inertia=rod, damping=0.01)
    return b.build()


def regulator(model: lw.Model) -> np.ndarray:
    """Gains K of the force -K [q; v] on the cart, about the upright pole."""
    zero = np.zeros(2)
    A, B = model.state_space(zero, zero, model.statics.force(zero), actuated=["rail"])  # only the cart is driven
    Q, R = np.diag([1.0, 10.0, 1.0, 1.0]), np.array([[0.1]])
    return np.linalg.solve(R, B.T @ solve_continuous_are(A, B, Q, R))[0]


LEANS = np.radians(np.arange(5.0, 80.0, 5.0))


def catch(model: lw.Model, K: np.ndarray) -> lw.Trajectory:
    """From how far can the pole be caught? All leans in one batch."""

    def control(t, q, v, p):
        return [-(K[0] * q[0] + K[1] * q[1] + K[2] * v[0] + K[3] * v[1]), 0.0]

    starts = np.column_stack([np.zeros_like(LEANS), LEANS])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # from too far, the cart runs away to infinity
        return lw.simulate(model, starts, np.zeros(2), duration=10.0, control=control, method="rk4", dt=0.005)


def main(quick: bool = False) -> dict[str, float]:
    model = make()
    K = regulator(model)
    print("gains", np.round(K, 3))
    motion = catch(model, K)
    upright = np.abs(motion.q[:, -1, 1]) < 1e-2
    most = round(float(np.degrees(LEANS[upright].max())))
    print(f"the regulator catches the pole from up to {most}°")
    return {"most": most, "caught": int(upright.sum())}


def draw(axes) -> None:
    """The pole's angle from every lean that is caught."""
    model = make()
    motion = catch(model, regulator(model))
    caught = np.abs(motion.q[:, -1, 1]) < 1e-2
    axes.plot(motion.t, np.degrees(motion.q[caught, :, 1]).T)
    axes.set(xlabel="t [s]", ylabel="lean of the pole [°]", xlim=(0, 5))


if __name__ == "__main__":
    main()
