"""Swing up by the gradient of a whole rollout: two hundred torques, one program forth and back. Extra: viz."""

import numpy as np
from scipy.optimize import minimize

import linkwise as lw

b = lw.ModelBuilder("pendulum")
bar = lw.shapes.rod((0, 0, 0), (0, 0, -0.6), 0.03, mass=1.0) + lw.shapes.sphere(0.08, mass=1.0, placement=(0, 0, -0.6))
b.add_body("bar", joint=lw.Revolute((0, 1, 0)), shape=bar)
model, dt = b.build(), 0.015
times = np.arange(200) * dt


def step(m, q, v, cost, tau, late):
    v = v + dt * m.forward_dynamics(q, v, tau)
    off = 1.0 + lw.math.cos(q[0]) + 0.1 * v @ v  # zero where it stands upright
    return {"q": q + dt * v, "v": v, "cost": cost + dt * (0.002 * tau @ tau + 10.0 * late * off)}


kinds = {"q": "q", "v": "v", "cost": "scalar", "tau": "v", "late": "scalar"}
whole = lw.rollout(lw.compile(step, model, kinds), 200, sequences=["tau", "late"]).value_and_gradient("tau", of="cost")
swing = lambda x: [np.ravel(y) for y in whole([0.0], [0.0], 0.0, x[:, None], (times > 2.5) * 1.0)]  # noqa: E731
found = minimize(swing, 0.1 * np.sin(9 * times), jac=True, method="L-BFGS-B", options={"maxiter": 200})
hanging, cost = swing(0 * times)[0].item(), float(found.fun)
print(f"cost {hanging:.2f} at rest, {cost:.2f} after {found.nfev} rollouts with their gradients")
motion = lw.simulate(model, [0.0], [0.0], duration=2.985, control=lw.Torque(times, found.x[:, None], "held"))
off = np.degrees(np.arccos(-np.cos(motion.q[-1, 0])))
print(f"torques of up to {np.abs(found.x).max():.1f} N m end {off:.1f}° from upright")
motion.save_video("rollout_gradient.gif", size=(320, 240), fps=12)
