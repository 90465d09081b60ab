"""A rattleback: spun the wrong way it begins to rock, stops, and turns back. Extra: viz."""

import matplotlib.pyplot as plt
import numpy as np

import linkwise as lw

c, s = np.cos(0.1), np.sin(0.1)  # rad from the axes of the shape to those of inertia: that is all its secret
R = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])
place, colour = lw.transform(), (0.2, 0.55, 0.6, 1.0)
stone = lw.Geometry("ellipsoid", (0.1, 0.02, 0.015), None, (1, 1, 1), place, "", rgba=colour)  # m
b = lw.ModelBuilder("rattleback")
b.add_body("stone", joint=lw.Free(), mass=0.2, inertia=R @ np.diag([2e-5, 5e-4, 5.1e-4]) @ R.T, collisions=[stone])
rules = lw.ContactRules(passive=True)  # no step creates energy: nothing else may drive it back
model = b.build().with_contacts(lw.Ground(), material=lw.Material(friction=2.0), rules=rules)


def spun(rate):  # rad/s about the vertical, and a little rocking
    motion = lw.simulate(model, [1, 0, 0, 0, 0, 0, 0.015], [0.02, 0.02, rate, 0, 0, 0], duration=3.0, dt=0.002)
    spin = model.velocity(motion.q, motion.v, "stone")[:, 2]
    plt.plot(motion.t, spin)
    return motion, spin, (motion.energy.max() - motion.energy[0]) / motion.energy[0]


(_, willing, _), (motion, stubborn, gained) = spun(5.0), spun(-5.0)
least, most = willing.min(), stubborn.max()
print(f"spun at 5 rad/s it keeps {least:.2f} rad/s; spun at -5 rad/s it comes back with {most:.2f} rad/s")
motion.save_video("rattleback.gif", size=(320, 240), fps=16, follow=False)
plt.gca().set(xlabel="t [s]", ylabel="spin [rad/s]")
plt.gcf().savefig("rattleback.png", dpi=80)
