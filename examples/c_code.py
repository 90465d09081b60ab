"""A controller as C code, compiled, called through ctypes, and at work on an arm. Extra: viz; needs `cc`."""

import ctypes
import subprocess

import numpy as np

import linkwise as lw
from linkwise import samples

arm = samples.seven_joint_arm()
kp, kd = np.array([80.0, 80, 50, 50, 20, 12, 4]), np.array([30.0, 30, 15, 15, 4, 3, 1])
law = lambda model, q, v, goal: model.gravity_force(q) + kp * (goal - q) - kd * v  # noqa: E731
function = lw.compile(law, arm, inputs={"q": "q", "v": "v", "goal": "q"}, name="control")
source, _, _ = lw.emit_c(function, ".")
subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", "control.so", source, "-lm"], check=True)
library, goal = ctypes.CDLL("./control.so"), np.array(arm.configurations["home"])


def in_c(t, q, v, p):
    tau, given = np.zeros(7), [np.ascontiguousarray(x, float) for x in (q, v, goal)]
    library.control(*(ctypes.c_void_p(array.ctypes.data) for array in (*given, tau)))
    return tau


q, v = np.random.default_rng(0).uniform(-1, 1, (2, 7))
error = np.abs(in_c(0, q, v, None) - function(q, v, goal)).max()
print(f"{len(source.read_text().splitlines())} lines of C, whose torques differ from Python's by {error:.0e} N m")
motion = lw.simulate(arm, 0.3 * q, duration=3.0, control=lw.Sampled(arm, in_c, rate=500.0, python=True))
motion.save_video("c_code.gif", size=(320, 240), fps=12)
