"""Planet, velocity and Sun around a craft in orbit, and a picture of them."""

import numpy as np
import pytest

import linkwise as lw
from linkwise import space
from linkwise.viz.orbits import surroundings

ORBIT = space.Orbit(7e6, i=0.3)


@pytest.fixture(scope="module")
def motion():
    b = lw.ModelBuilder("craft", gravity=(0, 0, 0))
    b.add_body("hub", joint=lw.Free(), shape=lw.shapes.box((1.0, 1.0, 1.0), mass=100.0))
    times = np.linspace(0, ORBIT.period, 41)
    return lw.simulate(b.build(), duration=times[-1], frame=ORBIT, output_times=times)


def test_planet_is_as_large_as_it_looks_and_the_sun_sets(motion):
    planet, velocity, sun = surroundings(motion, ORBIT, size=2.0)
    assert planet.name == "Earth"
    assert np.arctan(planet.radius / 16.0) == pytest.approx(np.arcsin(6378137.0 / 7e6), rel=1e-6)
    r, v = ORBIT.state(motion.t)
    assert np.allclose(planet.places[:, 0], -16.0 * r / 7e6, atol=1e-6)
    assert np.allclose(velocity.vectors[:, 0], 2.0 * v / np.linalg.norm(v, axis=1, keepdims=True))
    dark = ~np.isfinite(sun.vectors[:, 0, 0])
    assert dark.sum() == pytest.approx(41 * 2126 / ORBIT.period, abs=2)
    assert (r[dark, 0] < 0).all()


def test_they_are_drawn(motion, tmp_path):
    pytest.importorskip("matplotlib")
    file = tmp_path / "orbit.gif"
    motion.save_video(file, size=(160, 120), fps=5, speed=ORBIT.period / 2, markers=surroundings(motion, ORBIT))
    assert file.stat().st_size > 1000


def test_many_motions_are_refused():
    b = lw.ModelBuilder("craft", gravity=(0, 0, 0))
    b.add_body("hub", joint=lw.Free(), mass=1.0, inertia=np.eye(3))
    model = b.build()
    many = lw.simulate(model, np.tile(model.neutral(), (2, 1)), duration=1.0, frame=ORBIT)
    with pytest.raises(lw.InputError, match="one motion"):
        surroundings(many, ORBIT)
