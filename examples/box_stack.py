"""Ten boxes fall on each other and stand: each carries those above it, to the last digits. Extra: viz."""

import numpy as np

import linkwise as lw

b = lw.ModelBuilder("stack")
for k in range(10):
    colour = (0.9 - 0.07 * k, 0.45, 0.2 + 0.07 * k)
    b.add_body(f"box {k}", joint=lw.Free(), shape=lw.shapes.box((0.1, 0.1, 0.1), density=1000.0, rgba=colour))
model = b.build().with_contacts(lw.Ground(), material=lw.Material(friction=0.8))

turns = [0.1 * (-1) ** k for k in range(10)]  # rad; about the vertical, so that they do not lie flush
q0 = [[np.cos(a), 0, 0, np.sin(a), 0.1 * a, 0, 0.05 + 0.13 * k] for k, a in enumerate(turns)]
motion = lw.simulate(model, np.concatenate(q0), duration=0.8, dt=0.002)
below = ["ground", *(f"box {k}" for k in range(9))]
forces = [motion.contacts.force_on(f"box {k}", by=below[k])[-1, 2] for k in range(10)]  # N, upwards

error = np.abs(np.array(forces) - 9.81 * np.arange(10, 0, -1)).max()
speed = np.abs(motion.v[-1]).max()
print(f"they carry {np.round(forces, 6)} N, and move at {speed:.0e} m/s")
motion.save_video("box_stack.gif", size=(320, 240), fps=15, speed=0.3, follow=False)
