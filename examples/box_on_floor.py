"""A box is thrown, tumbles over the floor and comes to rest: contact with exact Coulomb friction. Extra: viz."""

import numpy as np

import linkwise as lw

b = lw.ModelBuilder("crate")
crate = lw.shapes.box((0.4, 0.3, 0.2), density=600.0, rgba=(0.85, 0.6, 0.3))
b.add_body("crate", joint=lw.Free(), shape=crate)
model = b.build().with_contacts(lw.Ground(), material=lw.Material(friction=0.5, restitution=0.3))

q0 = [1, 0, 0, 0, 0, 0, 0.8]  # quaternion w, x, y, z, then position
v0 = [3.0, 5.0, 0.0, 1.5, 0.0, 0.0]  # rad/s and m/s, in its own axes
motion = lw.simulate(model, q0, v0, duration=2.5, dt=0.002, method="moreau")

speed = np.abs(motion.v[-1]).max()
height = motion.q[-1, 6]
print(f"it has come to rest (speed {speed:.1e}), its middle {height:.3f} m above the floor")
motion.save_video("box_on_floor.gif", size=(320, 240), fps=15, follow=False)
