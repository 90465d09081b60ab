"""A linear-quadratic regulator (LQR) for a cart and its pole: one motor, two freedoms, damping in both. Extra: viz."""

import numpy as np
from scipy.linalg import solve_continuous_are

import linkwise as lw

b = lw.ModelBuilder("cart and pole")
cart, pole = lw.shapes.box((0.5, 0.3, 0.2), mass=1.0), lw.shapes.rod((0, 0, 0), (0, 0, 1), 0.03, mass=0.3)
b.add_body("cart", joint=lw.Prismatic((1, 0, 0)), joint_name="rail", shape=cart, damping=0.5)
b.add_body("pole", "cart", lw.Revolute((0, 1, 0)), joint_name="hinge", shape=pole, damping=0.01)
model = b.build()

zero = np.zeros(2)
A, B = model.state_space(zero, zero, model.statics.force(zero), actuated=["rail"])  # exact, with the damping
K = np.linalg.solve([[0.1]], B.T @ solve_continuous_are(A, B, np.diag([1.0, 10.0, 1.0, 1.0]), [[0.1]]))[0]


def control(t, q, v, p):
    return [-(K[0] * q[0] + K[1] * q[1] + K[2] * v[0] + K[3] * v[1]), 0.0]


leans = np.radians(np.arange(5, 50, 5))
motion = lw.simulate(model, np.column_stack([0 * leans, leans]), zero, duration=8.0, control=control)  # a batch
slowest, left = np.linalg.eigvals(A - B @ K[None]).real.max(), np.degrees(np.abs(motion.q[:, -1, 1]).max())
print(f"gains {K.round(2)}, slowest pole of the loop {slowest:.2f}")
print(f"leans of up to {np.degrees(leans[-1]):.0f}° end within {left:.2f}°")
motion[-1].save_video("lqr.gif", size=(320, 240), fps=12, speed=2.0)
