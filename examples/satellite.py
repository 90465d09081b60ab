"""A satellite with two panels on springs goes around the Earth once. Extra: viz."""

import numpy as np

import linkwise as lw

MU, RADIUS = 3.986e14, 6.778e6  # m³/s², m: 400 km above the ground
b = lw.ModelBuilder("satellite", gravity=(0, 0, 0))
b.add_body("hub", joint=lw.Free(), shape=lw.shapes.box((1.0, 1.0, 1.4), mass=400.0, rgba=(0.8, 0.7, 0.45)))
for side, x in (("left", -1), ("right", 1)):
    panel = lw.shapes.box((3.0, 0.9, 0.04), mass=30.0, placement=(1.5 * x, 0, 0), rgba=(0.15, 0.25, 0.55))
    b.add_body(side, "hub", lw.Revolute((0, 1, 0)), lw.transform(xyz=(0.5 * x, 0, 0)), shape=panel, stiffness=20.0)
    b.add_frame(f"{side} centre", side, lw.transform(xyz=(1.5 * x, 0, 0)))
model = b.build()


def gravity(t, q, v, p):
    """The Earth's pull, which is not quite the same at the hub and at the panels."""
    poses = {place: (mass, model.pose(q, place)) for place, mass in PLACES.items()}
    pulls = {a: -m * MU * X[:3, :3].T @ X[:3, 3] / (X[:3, 3] @ X[:3, 3]) ** 1.5 for a, (m, X) in poses.items()}
    return sum(model.force_at(q, np.concatenate([np.zeros(3), pull]), place) for place, pull in pulls.items())


PLACES = {"hub": 400.0, "left centre": 30.0, "right centre": 30.0}
period = 2 * np.pi * np.sqrt(RADIUS**3 / MU)
v0 = [0, 0.002, 0.001, 0, np.sqrt(MU / RADIUS), 0, 0.02, -0.01]  # turns slowly, the panels swing
motion = lw.simulate(model, [1, 0, 0, 0, RADIUS, 0, 0, 0, 0], v0, duration=period, control=gravity, rtol=1e-11)
away = np.linalg.norm(motion.q[-1, 4:7] - motion.q[0, 4:7])
print(f"after {period / 60:.1f} min it is {away:.2f} m from where it began, its panels still swing")
motion.save_video("satellite.gif", size=(320, 240), fps=12, speed=period / 4)
