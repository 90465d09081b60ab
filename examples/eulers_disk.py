"""Euler's disk: a disk that rolls on its rim precesses ever faster as it sinks, and stops at once. Extra: viz."""

import numpy as np

import linkwise as lw

RADIUS, TILT, ROLLING = 0.15, 0.4, 0.012  # m; rad; arm of rolling friction, m
gold, dark = (0.9, 0.7, 0.2), (0.3, 0.2, 0.1)
disk = lw.shapes.cylinder(RADIUS, 0.01, mass=1.0, rgba=gold)
mark = lw.shapes.box((0.9 * RADIUS, 0.02, 0.001), rgba=dark, collides=False).placed((0.45 * RADIUS, 0, 0.005))
b = lw.ModelBuilder("disk")
b.add_body("disk", joint=lw.Free(), shape=disk + mark)
model = b.build().with_contacts(lw.Ground(), material=lw.Material(friction=1.0, rolling=ROLLING))

s, c = np.sin(TILT), np.cos(TILT)
rate = np.sqrt(4 * 9.81 / (RADIUS * s))  # rad/s, of steady rolling at this tilt
start = [np.cos(TILT / 2), np.sin(TILT / 2), 0, 0, 0, 0, RADIUS * s + 0.005 * c]
motion = lw.simulate(model, start, [0, rate * s, 0, 0, 0, 0], duration=1.6, dt=0.0005)

tilt = np.arccos(np.clip(1 - 2 * (motion.q[:, 1] ** 2 + motion.q[:, 2] ** 2), -1, 1))
rest = motion.t[np.argmax(tilt < 1e-3)]
slowing = ROLLING / (1.5 * RADIUS) * np.sqrt(4 * 9.81 / RADIUS)  # the energy, 3/2 m g r sin α, goes by friction
expected = 2 * (np.sqrt(s) - np.sqrt(1e-3)) / slowing
gained, speed = np.diff(motion.energy).max(), np.abs(motion.v[-1]).max()
print(f"it lies flat after {rest:.3f} s, a disk without thickness after {expected:.3f} s")
motion.save_video("eulers_disk.gif", size=(320, 240), fps=15, speed=0.5, follow=False)
