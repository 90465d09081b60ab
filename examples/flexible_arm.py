"""An arm of two tubes that bend swings to a new pose, and its load goes on shaking. Extra: viz."""

import numpy as np

import linkwise as lw
from linkwise import samples

arm = samples.flexible_arm(payload=2.0)
shoulder, elbow = (arm.joints[name].v_slice.start for name in ("shoulder", "elbow"))


def control(t, q, v, p):
    """PD at the two hinges; nothing drives the modes."""
    tau = [0.0] * arm.nv
    tau[shoulder] = 300.0 * (-0.3 - q[shoulder]) - 30.0 * v[shoulder]
    tau[elbow] = 300.0 * (-0.8 - q[elbow]) - 30.0 * v[elbow]
    return tau


motion = lw.simulate(arm, arm.neutral(), duration=3.0, control=control, output_times=np.linspace(0, 3, 301))
deflection = np.linalg.norm(motion.deflection("lower", "tip"), axis=-1)
bent, shakes = deflection.max(), np.ptp(deflection[201:])
print(f"{arm.nv - 2} modes; the tip of the outer tube bends by up to {1e3 * bent:.0f} mm")
print(f"in the last second it still shakes by {1e3 * shakes:.1f} mm")
motion.plot(["modes", "deflection"], nodes=[("lower", "tip")]).savefig("flexible_arm.png", dpi=80)
motion.save_video("flexible_arm.gif", size=(320, 240), fps=12)
