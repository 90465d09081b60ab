"""Gravity-gradient capture: a satellite with a long boom swings, a damper takes its swing, and it ends upright.

A hub and a tip mass on a boom want to hang along the vertical. A small wheel about the orbit's normal, without a motor,
turns in a viscous bearing: it keeps its own momentum while the satellite swings about it, and their difference is lost.
"""

from typing import Any

import numpy as np

import linkwise as lw
from linkwise import space

ORBIT = space.Orbit(a=7e6, i=np.radians(60.0))


def satellite() -> lw.Model:
    b = lw.ModelBuilder("satellite", gravity=(0, 0, 0))
    b.add_body("hub", joint=lw.Free(), mass=60.0, inertia=np.diag([4.0, 5.0, 4.0]))
    b.add_body("tip", "hub", placement=lw.transform(xyz=(6.0, 0, 0)), mass=5.0, inertia=0.05 * np.eye(3))
    space.add_wheel(b, "damper", "hub", (0, 0, 1), inertia=20.0, across=20.0, mass=10.0)
    return b.build()


def fly(degrees: float, turns: float) -> tuple[lw.Trajectory, np.ndarray]:
    """A motion from a pitch angle, and the angle of the boom from the vertical along it."""
    model = satellite()
    half, n = np.radians(degrees) / 2, ORBIT.mean_motion
    vertical = ORBIT.local_axes(0.0)
    turned = vertical @ lw.transform(rpy=(0, 0, 2 * half))[:3, :3]
    q0, v0 = model.neutral(), np.zeros(model.nv)
    q0[:4] = quaternion(turned)
    v0[2] = n
    bearing = space.Wheel(model, "damper", 0.0, viscous=0.02)
    times = np.linspace(0.0, turns * ORBIT.period, int(100 * turns) + 1)
    motion = lw.simulate(model, q0, v0, times[-1], control=bearing, frame=ORBIT, output_times=times, rtol=1e-9)
    boom = model.pose(motion.q, "hub")[:, :3, 0]
    away = ORBIT.local_axes(motion.t)[:, :, 0]
    return motion, np.degrees(np.arccos(np.clip((boom * away).sum(axis=1), -1, 1)))


def quaternion(R: np.ndarray) -> np.ndarray:
    from scipy.spatial.transform import Rotation

    x, y, z, w = Rotation.from_matrix(R).as_quat()
    return np.array([w, x, y, z])


def main(quick: bool = False) -> dict[str, Any]:
    turns = 12.0 if quick else 40.0
    _, off = fly(40.0, turns)
    first, last = off[:100].max(), off[-100:].max()
    print(f"the boom swings by {first:.1f}° in the first turn and by {last:.2f}° after {turns:.0f}")
    return {"first": first, "last": last}


def draw(axes: Any) -> None:
    motion, off = fly(40.0, 12.0)
    axes.plot(motion.t / ORBIT.period, off)
    axes.set_xlabel("turns")
    axes.set_ylabel("angle from the vertical, °")


if __name__ == "__main__":
    main()
