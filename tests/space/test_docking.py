"""Docking: capture with a residual, what momentum does, and what is refused a capture."""

import numpy as np
import pytest

import linkwise as lw
from linkwise import space

ORBIT = space.Orbit(7e6, 0.01, 0.9)
STEPS = {"method": "rk4", "dt": 0.02}


def two():
    b = lw.ModelBuilder("two", gravity=(0, 0, 0))
    b.add_body("target", joint=lw.Free(), mass=400.0, inertia=np.diag([100.0, 120.0, 80.0]))
    b.add_body("chaser", joint=lw.Free(), mass=100.0, inertia=np.diag([10.0, 12.0, 8.0]))
    ahead = lw.transform(xyz=(0, 0, 1.0))
    behind = lw.transform(xyz=(0, 0, -0.5))
    space.Dock.add(b, "dock", "target", "chaser", port_placement=ahead, probe_placement=behind)
    return b.build()


MODEL = two()


def start(ahead=1.0, aside=0.003, tilt=0.01, closing=0.05):
    q, v = MODEL.neutral(), np.zeros(12)
    q[7:11] = np.cos(tilt / 2), np.sin(tilt / 2), 0, 0
    # The chaser's origin, so that its probe is ahead of the port by so much.
    probe = np.array([0, 0.5 * np.sin(tilt), -0.5 * np.cos(tilt)])
    q[11:14] = np.array([aside, 0, 1.0 + ahead]) - probe
    v[9:12] = 0, -closing * np.sin(tilt), -closing * np.cos(tilt)
    v[9:12] = lw_rotation(tilt).T @ [0, 0, -closing]
    return q, v


def lw_rotation(tilt):
    return lw.transform(rpy=(tilt, 0, 0))[:3, :3]


def test_how_a_probe_stands_to_its_port():
    q, v = start()
    seen = space.Dock(MODEL, "dock").approach(0.0, q, v)
    assert [float(x) for x in seen] == pytest.approx([1.0, 0.003, 0.01, 0.05, 0.05], abs=1e-12)


@pytest.mark.parametrize("latch", [0.0, 5.0])
def test_capture_keeps_momentum_and_holds(latch):
    dock = space.Dock(MODEL, "dock", reach=0.01, tilt=0.02, speed=0.1, latch=latch)
    q0, v0 = start()
    given = {"events": dock.events, "released": "dock", **STEPS}
    motion = lw.simulate(MODEL, q0, v0, 40.0, **given)
    assert [event.name for event in motion.events] == ["dock captured"]
    (event,) = motion.events
    assert event.t == pytest.approx(19.8, abs=0.05)
    before, after = (MODEL.centroidal.momentum(event.q, v) for v in (event.v, event.v_after))
    assert np.abs(before - after).max() < 1e-13 * np.abs(before).max() + 1e-14
    assert MODEL.kinetic_energy(event.q, event.v_after) < MODEL.kinetic_energy(event.q, event.v)
    assert event.impulses is not None and np.abs(event.impulses).max() == pytest.approx(4.0, rel=0.05)
    momentum = MODEL.centroidal.momentum(motion.q, motion.v)
    assert np.abs(momentum - momentum[0]).max() < 1e-9 * np.abs(momentum[0]).max()
    seen = dock.approach(0.0, motion.q[-1], motion.v[-1])
    if latch:
        assert float(seen.ahead**2 + seen.aside**2) ** 0.5 < 1e-6 and float(seen.tilt) < 1e-6
    else:
        at = dock.approach(0.0, event.q, event.v)
        assert float(seen.ahead) == pytest.approx(float(at.ahead), abs=1e-7)
        assert float(seen.tilt) == pytest.approx(float(at.tilt), abs=1e-6)
    assert float(seen.speed) < 1e-6


def test_in_a_world_that_falls():
    dock = space.Dock(MODEL, "dock", reach=0.02, tilt=0.05, speed=0.1)
    q0, v0 = start(0.3)
    motion = lw.simulate(MODEL, q0, v0, 20.0, events=dock.events, released="dock", frame=ORBIT, **STEPS)
    assert [event.name for event in motion.events] == ["dock captured"]


def test_too_fast_hits():
    dock = space.Dock(MODEL, "dock", reach=0.01, speed=0.04)
    q0, v0 = start()
    motion = lw.simulate(MODEL, q0, v0, 40.0, events=dock.events, released="dock", **STEPS)
    assert [event.name for event in motion.events] == ["dock hit"] and motion.t[-1] < 20.0


def test_leaving_the_corridor_is_told():
    dock = space.Dock(MODEL, "dock", corridor=np.radians(10), radius=0.05)
    q0, v0 = start(ahead=5.0)
    v0[9] = 0.05
    motion = lw.simulate(MODEL, q0, v0, 40.0, events=dock.events, released="dock", **STEPS)
    assert motion.events[0].name == "dock left the corridor"
    t = motion.events[0].t
    assert 0.003 + 0.05 * t == pytest.approx(np.tan(np.radians(10)) * (5.0 - 0.05 * t) + 0.05, abs=1e-3)


def test_a_dock_that_is_not_there():
    with pytest.raises(lw.LinkwiseError, match="no "):
        space.Dock(MODEL, "door")
