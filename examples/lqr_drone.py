"""An LQR for a floating base: four rotors hold a drone that was thrown, turned over, where it shall be. Extra: viz."""

import numpy as np
from scipy.linalg import solve_continuous_are

import linkwise as lw

b = lw.ModelBuilder("drone")
frame = lw.shapes.box((0.2, 0.2, 0.06), mass=0.8, rgba=(0.2, 0.25, 0.3))
ends = [(0.2, 0.2), (-0.2, 0.2), (-0.2, -0.2), (0.2, -0.2)]
for x, y in ends:
    frame = frame + lw.shapes.cylinder(0.12, 0.02, mass=0.05, placement=(x, y, 0.04), rgba=(0.9, 0.5, 0.15))
b.add_body("drone", joint=lw.Free(), shape=frame)
model = b.build()

# Thrusts u of the rotors as joint forces: moments about x, y, z, then forces; rotors turn in pairs.
G = np.array([[y, -x, 0.02 * (-1) ** k, 0, 0, 1] for k, (x, y) in enumerate(ends)]).T
hover, zero = np.array([1.0, 0, 0, 0, 0, 0, 1.5]), np.zeros(6)
A, B = model.state_space(hover, zero, model.statics.force(hover))
K = solve_continuous_are(A, B @ G, np.diag([5.0] * 3 + [10.0] * 3 + [1.0] * 6), np.eye(4))
K = (B @ G).T @ K
trim = np.linalg.lstsq(G, model.statics.force(hover), rcond=None)[0]
control = lambda t, q, v, p: G @ (trim - K @ np.concatenate([model.difference(hover, q), v]))  # noqa: E731

start = [np.cos(0.4), np.sin(0.4), 0, 0, 1.0, -1.0, 0.8]
motion = lw.simulate(model, start, [0, 0, 3, 0, 1, 0], duration=5.0, control=control)
away = np.linalg.norm(motion.q[-1, 4:] - hover[4:])
print(f"it hovers {1e3 * away:.1f} mm from its place")
motion.save_video("lqr_drone.gif", size=(320, 240), fps=10, follow=False)
