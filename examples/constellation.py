"""A constellation as one batch: twenty-four craft in three planes, each in a world that falls along its own orbit.

The Earth's flattening turns their planes, as the textbook's mean rates say, and keeps their distances.
"""

from typing import Any

import numpy as np

import linkwise as lw
from linkwise import space

PLANES, EACH = 3, 8


def constellation() -> space.Orbit:
    plane, place = np.meshgrid(np.arange(PLANES), np.arange(EACH), indexing="ij")
    node = 2 * np.pi * plane / PLANES
    anomaly = 2 * np.pi * (place / EACH + plane / (PLANES * EACH))
    return space.Orbit(a=7.2e6, e=1e-3, i=np.radians(55.0), node=node.ravel(), anomaly=anomaly.ravel())


def fly(turns: int) -> tuple[space.Orbit, lw.Trajectory, np.ndarray]:
    """Orbits, motions beside them, and the nodes (24, T) along them."""
    b = lw.ModelBuilder("craft", gravity=(0, 0, 0))
    b.add_body("hub", joint=lw.Free(), shape=lw.shapes.box((1.0, 1.0, 1.0), mass=200.0))
    craft, orbits = b.build(), constellation()
    duration = turns * float(orbits.period[0])
    times = np.linspace(0.0, duration, 20 * turns + 1)
    gravity = space.Gravity(craft, "J2")
    motion = lw.simulate(
        craft, craft.neutral(), None, duration, control=gravity, frame=orbits, output_times=times, rtol=1e-9
    )
    nodes = []
    for k, t in enumerate(times):
        r, v = orbits.state(t)
        speed = np.einsum("nij,nj->ni", craft.pose(motion.q[:, k], "hub")[:, :3, :3], motion.v[:, k, 3:])
        nodes.append(space.Orbit.from_state(r + motion.q[:, k, 4:], v + speed, t=t).elements[:, 3])
    return orbits, motion, np.unwrap(np.array(nodes).T, axis=1)


def main(quick: bool = False) -> dict[str, Any]:
    turns = 4 if quick else 15
    orbits, motion, nodes = fly(turns)
    seconds = motion.t[-1]
    drift = (nodes[:, -1] - nodes[:, 0]) / seconds
    expected = orbits.drift()[0]
    error = np.abs(drift / expected - 1).max()
    print(
        f"{len(nodes)} planes turn by {np.degrees(drift.mean()) * 86400:.3f}° a day, the mean rate within {error:.1%}"
    )
    return {"error": error, "craft": len(nodes)}


def draw(axes: Any) -> None:
    _, motion, nodes = fly(4)
    axes.plot(motion.t / 3600, np.degrees(nodes[::EACH] - nodes[::EACH, :1]).T)
    axes.set_xlabel("h")
    axes.set_ylabel("turn of the planes, °")


if __name__ == "__main__":
    main()
