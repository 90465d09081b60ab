"""A gripper lifts a capsule and holds it by friction alone: forces within their cones, no slip. Extra: viz."""

import numpy as np

import linkwise as lw
from linkwise.math import maximum, minimum

pad, palm = lw.shapes.box((0.02, 0.09, 0.04), mass=0.1), lw.shapes.box((0.16, 0.09, 0.02), mass=0.3)
b = lw.ModelBuilder("gripper")
b.add_body("wrist", joint=lw.Prismatic(axis=(0, 0, 1)), shape=palm.placed((0, 0, 0.07)))
for side, x in (("left", -1.0), ("right", 1.0)):
    finger = lw.shapes.box((0.01, 0.03, 0.06), collides=False).placed((0.005 * x, 0, 0.03))
    b.add_body(side, "wrist", lw.Prismatic(axis=(-x, 0, 0)), lw.transform(xyz=(0.05 * x, 0, 0)), shape=pad + finger)
capsule = lw.shapes.capsule(0.02, ends=((0, -0.03, 0), (0, 0.03, 0)), mass=0.045, rgba=(0.9, 0.4, 0.2))
b.add_body("capsule", joint=lw.Free(), shape=capsule)
touching = [("left", "capsule"), ("right", "capsule")]
model = b.build().with_contacts(lw.Ground(), only=["capsule"], between=touching, material=lw.Material(friction=0.5))


def hand(t, q, v, p):  # 2 N at each finger; the wrist goes up by 8 cm between 0.6 and 1.4 s
    height = 0.02 + 0.1 * minimum(maximum(t - 0.6, 0.0), 0.8)
    return [9.81 * 0.5 + 200 * (height - q[0]) - 30 * v[0], 2 - 10 * v[1], 2 - 10 * v[2], *[0] * 6]


motion = lw.simulate(model, [0.02, 0, 0, 1, 0, 0, 0, 0, 0, 0.02], duration=3.0, dt=0.002, control=hand)
within = motion.q[:, 9] - motion.q[:, 0]  # height of the capsule in the hand, m
lifted, slip = motion.q[-1, 9] - 0.02, np.ptp(within[motion.t > 2.0])
print(f"it is lifted by {1e3 * lifted:.1f} mm, and slips by {slip:.0e} m in the last second")
motion.save_video("gripper.gif", size=(320, 240), fps=16, follow=False, show=["contact forces", "friction cones"])
