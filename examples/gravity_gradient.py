"""Gravity-gradient capture: a satellite with a boom swings, a damper takes its swing, it ends upright. Extra: viz."""

import matplotlib.pyplot as plt
import numpy as np

import linkwise as lw
from linkwise import space

orbit = space.Orbit(a=7e6, i=np.radians(90), perigee=np.radians(90))  # begins above the pole: up is z
b = lw.ModelBuilder("satellite", gravity=(0, 0, 0))
b.add_body("hub", joint=lw.Free(), shape=lw.shapes.box((0.8, 0.8, 1.0), mass=60.0, rgba=(0.8, 0.7, 0.45)))
b.add_body("boom", "hub", shape=lw.shapes.rod((0, 0, 0.5), (0, 0, 6), 0.05, mass=0.5))
b.add_body("tip", "hub", shape=lw.shapes.sphere(0.3, mass=5.0, placement=(0, 0, 6), rgba=(0.15, 0.25, 0.55)))
space.add_wheel(b, "damper", "hub", (0, 1, 0), inertia=20.0, across=20.0, mass=10.0)  # without a motor
model, n, turns = b.build(), orbit.mean_motion, 12
bearing = space.Wheel(model, "damper", 0.0, viscous=0.02)  # the wheel turns on while the hub swings, and drags at it
q0, v0 = model.neutral(), [0, -n, *np.zeros(model.nv - 2)]  # turns as the orbit does
q0[[0, 2]] = np.cos(np.radians(20)), np.sin(np.radians(20))  # leans by 40°
t = np.linspace(0.0, turns * orbit.period, 100 * turns + 1)
motion = lw.simulate(model, q0, v0, t[-1], control=bearing, frame=orbit, output_times=t, rtol=1e-9)
lean = (2 * np.arctan2(motion.q[:, 2], motion.q[:, 0]) + n * t + np.pi) % (2 * np.pi) - np.pi  # from the vertical
first, last = np.degrees(np.abs(lean[:100]).max()), np.degrees(np.abs(lean[-100:]).max())
print(f"the boom leans by up to {first:.1f}° in the first turn and by {last:.2f}° in the last of {turns}")
plt.plot(t / orbit.period, np.degrees(lean))
plt.gca().set(xlabel="turns around the Earth", ylabel="lean of the boom [°]")
plt.savefig("gravity_gradient.png", dpi=60)
seen = np.column_stack([np.cos(lean / 2), 0 * t, np.sin(lean / 2), *np.zeros((5, t.size))])  # by who flies beside
film = lw.Trajectory(t, seen, motion.v, model=model)
film.save_video("gravity_gradient.gif", size=(320, 240), fps=12, speed=t[-1] / 4)
