"""A station with flexible arrays: its arm berths a vehicle, and it is reboosted with the vehicle on its port.

The arm's joints are driven to where the vehicle meets the port; capture holds it there and a latch draws it in. Then
thrusters burn from a tank that empties, the orbit rises, and the arrays bend back and swing.
"""

import sys
from typing import Any

import numpy as np

import linkwise as lw
from linkwise import space
from linkwise.viz.orbits import surroundings

ORBIT = space.Orbit(a=6778137.0, i=np.radians(51.6))
FROM, TO = np.array([0.6, 1.2, -0.9]), np.array([0.2, 0.9, 0.5])
THRUST, IMPULSE = 900.0, 300.0
TANK = space.Tank.sphere("propellant", 0.8, 800.0)


def builder() -> lw.ModelBuilder:
    b = lw.ModelBuilder("station", gravity=(0, 0, 0))
    b.add_body("hub", joint=lw.Free(), shape=lw.shapes.box((12.0, 4.0, 4.0), mass=20e3))
    TANK.add(b, "hub")
    for side, sign in (("left", 1), ("right", -1)):
        wing = lw.FlexibleBody.beam(
            length=15.0, EA=1e6, EI=(1e5, 2e5), GJ=5e4, mass_per_length=15.0, elements=4, modes=1, damping=0.02
        )
        place = lw.transform(xyz=(-3, 2.0 * sign, 0), rpy=(0, 0, np.pi / 2 * sign))
        b.add_body(side, "hub", lw.Fixed(), place, flexible=wing)
    parent, place = "hub", lw.transform(xyz=(3, 0, 2))
    for k, length in enumerate((4.0, 4.0, 1.0)):
        bar = lw.shapes.capsule(0.15, length, mass=60.0 * length, placement=lw.transform(xyz=(0, 0, length / 2)))
        b.add_body(f"arm{k}", parent, lw.Revolute((0, 1, 0)), place, shape=bar)
        parent, place = f"arm{k}", lw.transform(xyz=(0, 0, length))
    b.add_body("vehicle", parent, placement=place, shape=lw.shapes.box((2.0, 2.0, 2.0), mass=3000.0))
    return b


def station() -> lw.Model:
    """The station with its port where the arm brings the vehicle, open to where it comes from."""
    bare = builder().build()
    q = bare.neutral()
    q[-3:] = TO
    way = (bare.jacobian(q, "vehicle") @ np.concatenate([np.zeros(bare.nv - 3), TO - FROM]))[3:]
    z = -way / np.linalg.norm(way)
    y = np.array([0.0, 1.0, 0.0])
    port, hub, vehicle = np.eye(4), bare.pose(q, "hub"), bare.pose(q, "vehicle")
    port[:3, :3], port[:3, 3] = np.stack([np.cross(y, z), y, z], axis=1), vehicle[:3, 3]
    b = builder()
    placements = {"port_placement": np.linalg.inv(hub) @ port, "probe_placement": np.linalg.inv(vehicle) @ port}
    space.Dock.add(b, "berth", "hub", "vehicle", **placements)
    return b.build()


MODEL = station()
BERTH = space.Dock(MODEL, "berth", reach=0.02, tilt=0.05, speed=0.2, latch=5.0)
HOLD = space.BodyMoment(MODEL, "hub", space.QuaternionFeedback(MODEL, "hub", kp=2e4, kd=2e5))


def drive(t, q, v, p):
    """Joint torques of the arm along a smooth way of a hundred seconds, which ends just beyond the port."""
    s = lw.math.clip(t / 100.0, 0.0, 1.0)
    part, rate = s * s * s * (10 - 15 * s + 6 * s * s), 30 * s * s * (1 - s) * (1 - s) / 100.0
    goal, wanted = FROM + 1.005 * (TO - FROM) * part, 1.005 * (TO - FROM) * rate
    push = 2e4 * (goal - q[-3:]) + 4e4 * (wanted - v[-3:])
    return np.concatenate([np.zeros(MODEL.nv - 3), push])


def fly(burn: float) -> tuple[lw.Trajectory, lw.Trajectory]:
    """The berthing, and the reboost."""
    q0 = MODEL.neutral()
    q0[-3:] = FROM
    berthing = lw.simulate(
        MODEL, q0, None, 115.0, control=[drive, HOLD], events=BERTH.events, released="berth", frame=ORBIT, rtol=1e-6
    )
    nozzle = space.Thruster("hub", (1, 0, 0), THRUST, impulse=IMPULSE, place=(-6, 0, 0))
    control = [space.Propulsion(MODEL, nozzle, TANK), HOLD]
    reboost = lw.simulate(
        MODEL, berthing.q[-1], berthing.v[-1], burn, control=control, frame=ORBIT, rtol=1e-6, t0=berthing.t[-1]
    )
    return berthing, reboost


def bent(motion: lw.Trajectory) -> np.ndarray:
    """How far a wing's tip is bent back along the hub's axis (T), m."""
    root, tip = (MODEL.pose(motion.q, "left", node=node) for node in ("root", "tip"))
    hub = MODEL.pose(motion.q, "hub")[:, :3, 0]
    return np.einsum("ti,ti->t", tip[:, :3, 3] - root[:, :3, 3], hub)


def main(quick: bool = False) -> dict[str, Any]:
    burn = 60.0 if quick else 300.0
    berthing, reboost = fly(burn)
    event = berthing.events[0]
    gained = reboost.v[-1, 3] - reboost.v[0, 3]
    used = reboost.x[0, 0] - reboost.x[-1, 0]
    total = MODEL.mass
    expected = IMPULSE * 9.80665 * np.log(total / (total - used))
    swing = np.abs(bent(reboost)).max()
    print(f"{event.name} after {event.t:.1f} s; the reboost gives {gained:.3f} m/s (alone in space {expected:.3f})")
    print(f"for {used:.1f} kg, and the tips of the wings bend by {1e3 * swing:.1f} mm")
    return {"name": event.name, "gained": gained, "expected": expected, "swing": swing}


def draw(axes: Any) -> None:
    _, reboost = fly(60.0)
    axes.plot(reboost.t, 1e3 * bent(reboost))
    axes.set_xlabel("s")
    axes.set_ylabel("tip of a wing, mm")


def page(path: str) -> None:
    """The motion in the browser, with Earth, velocity and Sun around it."""
    berthing, _ = fly(60.0)
    berthing.save_html(path, fps=10, markers=surroundings(berthing, ORBIT, size=10.0))


if __name__ == "__main__":
    main()
    if sys.argv[1:]:
        page(sys.argv[1])
