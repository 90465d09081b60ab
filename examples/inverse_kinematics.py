"""Inverse kinematics along a path: the tool draws a figure of eight, pointing down all the while. Extra: viz."""

import numpy as np

import linkwise as lw
from linkwise import samples

arm = samples.seven_joint_arm()
turn = np.linspace(0.0, 2 * np.pi, 61)
x, y = 0.5 + 0.1 * np.sin(2 * turn), 0.3 * np.sin(turn)
targets = np.tile(lw.transform(rpy=(0, np.pi, 0)), (61, 1, 1))
targets[:, :3, 3] = np.column_stack([x, y, np.full(61, 0.25)])

way, q = [], arm.configurations["home"]
for target in targets:  # each from where the last one ended: no jumps
    found = arm.inverse_kinematics("tool", target, q0=q, starts=0 if way else 16)
    assert found.converged
    q = found.q
    way.append(q)

path = lw.path(arm, way, times=np.linspace(0.0, 4.0, 61), kind="spline")
motion = path.trajectory(dt=0.02)  # with the torques it takes
off = np.abs(motion.pose("tool")[:, 2, 3] - 0.25).max()
print(f"the tool stays at its height to {1e3 * off:.2f} mm, also between the points")
print("largest torques [N m]:", np.abs(motion.tau).max(axis=0).round(1))
motion.save_video("inverse_kinematics.gif", size=(320, 240), fps=12)
