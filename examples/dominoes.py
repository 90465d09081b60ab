"""Dominoes in a bend: the first is pushed, and a wave of falling stones runs along the row. Extra: viz."""

import numpy as np

import linkwise as lw

COUNT, RADIUS, THICK, HIGH = 14, 0.16, 0.008, 0.048  # m
angles = np.linspace(0.0, np.pi, COUNT)
b = lw.ModelBuilder("dominoes")
for k in range(COUNT):
    stone = lw.shapes.box((THICK, 0.024, HIGH), mass=0.01, rgba=(0.95, 0.3 + 0.5 * k / COUNT, 0.2))
    b.add_body(f"stone {k}", joint=lw.Free(), shape=stone)
model = b.build().with_contacts(lw.Ground(), material=lw.Material(friction=0.3))

q0 = [(np.cos(a / 2), 0, 0, np.sin(a / 2), RADIUS * np.sin(a), -RADIUS * np.cos(a), HIGH / 2) for a in angles]
push = np.zeros(6 * COUNT)
push[1], push[3] = 6.0, 3.0 * HIGH  # rad/s about its lower edge, m/s
motion = lw.simulate(model, np.concatenate(q0), push, duration=0.84, dt=0.004)

tilt = np.arccos(1 - 2 * (motion.q[:, 1::7] ** 2 + motion.q[:, 2::7] ** 2))  # (T, COUNT), rad
times = motion.t[np.argmax(tilt > 0.3, axis=0)]
fallen, order = int((tilt[-1] > 0.5).sum()), np.diff(times).min()
speed = RADIUS * (angles[-2] - angles[2]) / (times[-2] - times[2])
print(f"{fallen} stones have fallen, one after the other; the wave ran at {speed:.2f} m/s")
motion.save_video("dominoes.gif", size=(320, 240), fps=16, speed=0.3, follow=False)
