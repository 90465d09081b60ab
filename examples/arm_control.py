"""PD control with gravity compensation brings an arm of seven joints to a pose. Extra: viz."""

import numpy as np

import linkwise as lw
from linkwise import samples

arm = samples.seven_joint_arm()
home = arm.configurations["home"]
control = lw.PD(arm, home, kp=[80, 80, 50, 50, 20, 12, 4], kd=[30, 30, 15, 15, 4, 3, 1], gravity=True)
motion = lw.simulate(arm, [1.2, -0.3, 0.4, 0.9, -0.6, 0.3, 1.0], duration=4.0, control=control)

error = np.abs(motion.q[-1] - home).max()
print(f"after {motion.t[-1]:g} s every joint is within {error:.1e} rad of its goal")
for name, torque in zip(arm.joints.names, np.abs(motion.tau).max(axis=0), strict=True):
    print(f"{name}: at most {torque:.1f} N m")

motion.plot(["q", "tau"]).savefig("arm_control.png", dpi=80)
motion.save_video("arm_control.gif", size=(320, 240), fps=12)
