"""A four-bar linkage with a motor at its crank and a spring at its rocker, and the force in its pin. Extra: viz."""

import numpy as np

import linkwise as lw

hinge, top = lw.Revolute((0, 1, 0)), lw.transform(xyz=(0, 0, 0.3))
b = lw.ModelBuilder("four-bar")
b.add_body("crank", joint=hinge, joint_name="motor", shape=lw.shapes.rod((0, 0, 0), (0, 0, 0.3), 0.03, mass=0.5))
b.add_body("coupler", "crank", hinge, top, shape=lw.shapes.rod((0, 0, 0), (0.8, 0, 0), 0.02, mass=0.6))
rocker = lw.shapes.rod((0, 0, 0), (0, 0, 0.6), 0.02, mass=0.5)
foot = lw.transform(xyz=(0.7, 0, 0))
b.add_body("rocker", joint=hinge, placement=foot, joint_name="rocker", shape=rocker, stiffness=8.0, damping=0.2)
ends = lw.transform(xyz=(0.8, 0, 0)), lw.transform(xyz=(0, 0, 0.6))
b.add_closure("pin", "coupler", ends[0], "rocker", ends[1], joint=hinge)
model = b.build()


def motor(t, q, v, p):
    """It holds a speed of one turn a second."""
    return [20.0 * (2 * np.pi - v[0]), 0.0, 0.0]


q0 = model.assemble([0.0, -0.4, 0.1])
motion = lw.simulate(model, q0, duration=3.0, control=motor, output_times=np.linspace(0, 3, 301))
pin = np.linalg.norm(motion.constraint_forces().wrenches[:, 0, 3:], axis=-1)  # with spring and damper
most, gap = pin[100:].max(), np.abs(motion.closure_error).max()
print(f"the rocker swings through {np.degrees(np.ptp(motion.q[100:, 2])):.0f}°, the pin carries up to {most:.1f} N")
print(f"the motor gives up to {motion.tau[100:, 0].max():.1f} N m; the loop stays closed to {gap:.0e} m")
motion.save_video("four_bar.gif", size=(320, 240), fps=12)
