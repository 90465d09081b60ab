"""A constellation as one batch: 24 craft, each in a world that falls along its orbit; their planes turn. Extra: viz."""

import numpy as np

import linkwise as lw
from linkwise import space

plane, place = np.divmod(np.arange(24), 8)  # three planes of eight
node, anomaly = 2 * np.pi * plane / 3, 2 * np.pi * (place / 8 + plane / 24)
orbits = space.Orbit(a=7.2e6, e=1e-3, i=np.radians(55.0), node=node, anomaly=anomaly)
b = lw.ModelBuilder("craft", gravity=(0, 0, 0))
b.add_body("hub", joint=lw.Free(), shape=lw.shapes.box((1.0, 1.0, 1.0), mass=200.0))
craft, t = b.build(), np.linspace(0.0, 4 * orbits.period[0], 193)
flattened = space.Gravity(craft, "J2")  # the Earth's flattening turns the planes
motion = lw.simulate(craft, craft.neutral(), None, t[-1], control=flattened, frame=orbits, output_times=t, rtol=1e-9)

r, v = orbits.state(t[:, None])  # of the worlds (T, 24, 3), to which the craft come
hubs, along = np.swapaxes(craft.pose(motion.q, "hub"), 0, 1), np.swapaxes(motion.v[..., 3:], 0, 1)
real = space.Orbit.from_state(r + hubs[..., :3, 3], v + np.einsum("...ij,...j", hubs[..., :3, :3], along))
drift = np.ptp(np.unwrap(real.elements[..., 3], axis=0)[[0, -1]], axis=0) / t[-1]
error = np.abs(drift / np.abs(orbits.drift()[0]) - 1).max()  # beside the textbook's mean rate
print(f"24 planes turn by {np.degrees(drift.mean()) * 86400:.2f}° a day, the mean rate within {error:.1%}")

globe = lw.ModelBuilder("globe", gravity=(0, 0, 0))  # the first turn as a film, a megametre as a metre
globe.add_body("Earth", shape=lw.shapes.sphere(6.378, rgba=(0.25, 0.45, 0.8)))
for k, colour in enumerate(np.eye(3)[plane]):
    globe.add_body(f"craft {k}", joint=lw.Free(), shape=lw.shapes.sphere(0.3, mass=1.0, rgba=colour))
seen = np.concatenate([np.tile([1, 0, 0, 0], (49, 24, 1)), r[:49] / 1e6], axis=-1).reshape(49, -1)
film = lw.Trajectory(t[:49], seen, np.zeros((49, 144)), model=globe.build())
film.save_video("constellation.gif", size=(320, 240), fps=12, speed=t[48] / 4, follow=False)
