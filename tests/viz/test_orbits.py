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
    planet, velocity, sun, _ = surroundings(motion, ORBIT, size=2.0)
    assert planet.name == "Earth"
    assert np.arctan(planet.radius / 16.0) == pytest.approx(np.arcsin(6378137.0 / 7e6), rel=1e-6)
    r, v = ORBIT.state(motion.t)
    assert np.allclose(planet.places[:, 0], -16.0 * r / 7e6, atol=1e-6)
    assert np.allclose(velocity.vectors[:, 0], 2.0 * v / np.linalg.norm(v, axis=1, keepdims=True))
    dark = ~np.isfinite(sun.vectors[:, 0, 0])
    assert dark.sum() == pytest.approx(41 * 2126 / ORBIT.period, abs=2)
    assert (r[dark, 0] < 0).all()


@pytest.mark.parametrize(("east", "covered"), [(20.0, True), (-150.0, False), (-60.0, True), (80.0, False)])
def test_land_is_where_it_is_on_the_globe(east, covered):
    """Above the equator: Congo, the Pacific, Brazil, the Indian Ocean."""
    b = lw.ModelBuilder("craft", gravity=(0, 0, 0))
    b.add_body("hub", joint=lw.Free(), mass=1.0, inertia=np.eye(3))
    orbit = space.Orbit(6.8e6)
    still = lw.simulate(b.build(), duration=1.0, frame=orbit, output_times=[0.0, 1.0])
    *_, land = surroundings(still, orbit, sky=space.StillSky(angle=-np.radians(east)), size=1.0)
    place = land.places[0][np.isfinite(land.places[0]).all(axis=-1)]
    # Where lines of sight meet the globe: 8 m away the planet's disc stands for it.
    toward = place / np.linalg.norm(place, axis=-1, keepdims=True)
    down = -toward[:, 0]
    far = 6.8e6 * down - np.sqrt((6.8e6 * down) ** 2 - 6.8e6**2 + space.EARTH.radius**2)
    ground = [6.8e6, 0, 0] + far[:, None] * toward
    near = np.degrees(np.arccos(ground[:, 0] / space.EARTH.radius))
    assert (near.min(initial=90.0) < 6.0) == covered
    latitude = np.degrees(np.arcsin(ground[:, 2] / space.EARTH.radius))
    rows = (latitude - 2.5) / 5.0
    assert np.allclose(rows, np.rint(rows), atol=1e-6)


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
