"""A servicer and a tumbling target: it flies to the port as that turns, is captured, is drawn in, and stops the tumble.

Both fly in a world that falls along their orbit. Capture takes hold where the probe is, a latch draws it in; the
momentum of both is what it was.
"""

import sys
from typing import Any

import numpy as np

import linkwise as lw
from linkwise import space
from linkwise.viz.orbits import surroundings

ORBIT = space.Orbit(a=6.9e6, i=np.radians(97.0))
LENGTH, CLOSING = 2.0, 0.05  # m from the port at the start, m/s


def pair() -> lw.Model:
    b = lw.ModelBuilder("servicer and target", gravity=(0, 0, 0))
    b.add_body("target", joint=lw.Free(), shape=lw.shapes.box((1.6, 1.6, 2.4), mass=900.0))
    b.add_body("servicer", joint=lw.Free(), shape=lw.shapes.box((1.0, 1.0, 1.0), mass=300.0))
    port, probe = lw.transform(xyz=(0, 0, 1.2)), lw.transform(xyz=(0, 0, -0.5))
    space.Dock.add(b, "dock", "target", "servicer", port_placement=port, probe_placement=probe)
    return b.build()


MODEL = pair()
DOCK = space.Dock(MODEL, "dock", reach=0.005, tilt=0.02, speed=0.08, latch=5.0)


class Follow(lw.Element):
    """Thrust and moment that keep the servicer before the port, ever nearer; it knows how the target moves."""

    def wrench(self, t, q, v, x, p):
        """At the origin of the servicer, in its axes."""
        X, Y = (MODEL.pose(q, name) for name in ("target", "servicer"))
        V, W = (MODEL.velocity(q, v, name) for name in ("target", "servicer"))
        left = lw.math.maximum(LENGTH - CLOSING * t, 0.0)
        arm = X[:3, :3] @ np.array([0, 0, 1.7 + left])
        rate = V[3:] + np.cross(V[:3], arm) - X[:3, 2] * lw.math.where(left > 0.0, CLOSING, 0.0)
        fall = np.cross(V[:3], np.cross(V[:3], arm))
        force = 300.0 * (0.5 * (X[:3, 3] + arm - Y[:3, 3]) + 1.4 * (rate - W[3:]) + fall)
        R = Y[:3, :3].T @ X[:3, :3]
        error = 0.5 * np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])
        moment = 50.0 * (0.5 * error + 1.4 * (Y[:3, :3].T @ (V[:3] - W[:3])))
        return {"servicer": [*moment, *(Y[:3, :3].T @ force)]}


def start() -> tuple[np.ndarray, np.ndarray]:
    q, v = MODEL.neutral(), np.zeros(MODEL.nv)
    q[13] = 1.7 + LENGTH
    v[:3] = np.radians([0.6, -0.4, 0.8])
    v[6:9] = v[:3]
    v[9:12] = np.cross(v[:3], [0, 0, 1.7 + LENGTH]) - [0, 0, CLOSING]
    return q, v


def fly(quick: bool) -> tuple[lw.Trajectory, lw.Trajectory]:
    """The way to the port and into the latch; the tumble of both, stopped by the servicer's thrusters."""
    q0, v0 = start()
    docking = lw.simulate(
        MODEL, q0, v0, 50.0, control=Follow(), events=DOCK.events, released="dock", frame=ORBIT, rtol=1e-8
    )
    slow = space.BodyMoment(MODEL, "servicer", lambda t, q, v, p: -30.0 * v[6:9])
    given = {"control": slow, "frame": ORBIT, "rtol": 1e-7, "t0": docking.t[-1]}
    stopping = lw.simulate(MODEL, docking.q[-1], docking.v[-1], 60.0 if quick else 300.0, **given)
    return docking, stopping


def main(quick: bool = False) -> dict[str, Any]:
    docking, stopping = fly(quick)
    (event,) = docking.events
    kick = float(np.linalg.norm(event.impulses[3:]))
    left = DOCK.approach(0.0, docking.q[-1], docking.v[-1])
    first, last = (np.degrees(np.linalg.norm(v[:3])) for v in (docking.v[0], stopping.v[-1]))
    print(f"{event.name} after {event.t:.1f} s with an impulse of {kick:.2f} N s, then drawn in")
    print(f"the target tumbled at {first:.2f} °/s, now both turn at {last:.3f} °/s")
    momentum = [MODEL.centroidal.momentum(event.q, v) for v in (event.v, event.v_after)]
    jump = float(np.abs(momentum[0] - momentum[1]).max() / np.abs(momentum[0]).max())
    return {"name": event.name, "first": first, "last": last, "jump": jump, "open": float(abs(left.ahead))}


def draw(axes: Any) -> None:
    docking, _ = fly(True)
    away = [float(DOCK.approach(0.0, q, v).ahead) for q, v in zip(docking.q, docking.v, strict=True)]
    axes.plot(docking.t, away)
    axes.set_xlabel("s")
    axes.set_ylabel("m to the port")


def page(path: str) -> None:
    """The motion in the browser, with Earth, velocity and Sun around it."""
    docking, _ = fly(True)
    docking.save_html(path, fps=10, markers=surroundings(docking, ORBIT, size=3.0))


if __name__ == "__main__":
    main()
    if sys.argv[1:]:
        page(sys.argv[1])
