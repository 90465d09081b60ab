"""Shapes of bodies made by hand: against MuJoCo's inertias from geometry, trimesh's, and random points."""

import re
import struct

import numpy as np
import pytest

import linkwise as lw
from linkwise import shapes

TURNED = lw.transform(xyz=(0.1, -0.2, 0.3), rpy=(0.4, -0.7, 1.1))
SHAPES = {
    "box": (shapes.box((0.3, 0.2, 0.5), density=700.0, placement=TURNED), "box", "0.15 0.1 0.25"),
    "sphere": (shapes.sphere(0.12, density=700.0, placement=TURNED), "sphere", "0.12"),
    "cylinder": (shapes.cylinder(0.1, 0.4, density=700.0, placement=TURNED), "cylinder", "0.1 0.2"),
    "capsule": (shapes.capsule(0.1, 0.4, density=700.0, placement=TURNED), "capsule", "0.1 0.2"),
}


def numbers(values):
    return " ".join(repr(float(x)) for x in np.ravel(values))


def of_mujoco(*geoms):
    """Mass, mass centre and inertia about it, in the axes of the body, as MuJoCo works them out from shapes."""
    mujoco = pytest.importorskip("mujoco")
    text = f"<mujoco><worldbody><body><freejoint/>{''.join(geoms)}</body></worldbody></mujoco>"
    m = mujoco.MjModel.from_xml_string(text)
    R = np.zeros(9)
    mujoco.mju_quat2Mat(R, m.body_iquat[1])
    R = R.reshape(3, 3)
    return m.body_mass[1], m.body_ipos[1], R @ np.diag(m.body_inertia[1]) @ R.T


def geom(kind, size, density=700.0, X=TURNED):
    x, y = X[:3, 0], X[:3, 1]
    return (
        f'<geom type="{kind}" size="{size}" density="{density}" pos="{numbers(X[:3, 3])}" xyaxes="{numbers([x, y])}"/>'
    )


def agree(shape, mass, com, inertia):
    assert shape.mass == pytest.approx(mass, rel=1e-9)
    assert np.allclose(shape.com, com, atol=1e-9)
    assert np.allclose(shape.inertia, inertia, rtol=1e-7, atol=1e-9 * mass)


@pytest.mark.parametrize("kind", SHAPES)
def test_mujoco_gives_the_same_mass_and_inertia(kind):
    shape, name, size = SHAPES[kind]
    agree(shape, *of_mujoco(geom(name, size)))


def test_shapes_add_up_as_in_mujoco():
    whole = sum((shape for shape, *_ in list(SHAPES.values())[1:]), SHAPES["box"][0].placed((0.5, 0.0, 0.0)))
    moved = TURNED.copy()
    moved[0, 3] += 0.5
    parts = [geom("box", SHAPES["box"][2], X=moved), *(geom(n, s) for _, n, s in list(SHAPES.values())[1:])]
    agree(whole, *of_mujoco(*parts))
    assert [each.kind for each in whole.collisions] == ["box", "sphere", "cylinder", "capsule"]


def test_a_mass_instead_of_a_density_scales_all():
    light, heavy = shapes.capsule(0.1, 0.4, mass=1.0), shapes.capsule(0.1, 0.4, mass=5.0)
    assert np.allclose(heavy.inertia, 5.0 * light.inertia)
    assert shapes.sphere(0.1).mass == 0.0


def test_between_two_points():
    """A thin rod turns about its end with m l²/3, whichever way it points."""
    end = np.array([0.3, -0.4, 1.2])
    rod = shapes.rod((0, 0, 0), end, 1e-6, mass=2.0)
    assert np.allclose(rod.com, end / 2)
    about_end = rod.inertia + 2.0 * (rod.com @ rod.com * np.eye(3) - np.outer(rod.com, rod.com))
    across = np.cross(end, [0, 0, 1.0])
    across /= np.linalg.norm(across)
    assert across @ about_end @ across == pytest.approx(2.0 * (end @ end) / 3.0, rel=1e-9)
    assert end @ about_end @ end == pytest.approx(0.0, abs=1e-9)
    placement = np.array(rod.visuals[0].placement)
    assert np.allclose(placement[:3, 2], end / np.linalg.norm(end))


def write_stl(path, corners):
    facets = b"".join(struct.pack("<12fH", *([0.0] * 3), *np.ravel(each), 0) for each in corners)
    path.write_bytes(b" " * 80 + struct.pack("<I", len(corners)) + facets)


@pytest.fixture
def part(tmp_path):
    """A closed surface with no symmetry: the hull of random points; and the same by trimesh."""
    trimesh = pytest.importorskip("trimesh")
    points = np.random.default_rng(5).normal(size=(40, 3)) * (0.3, 0.2, 0.1) + (0.5, 0.1, -0.2)
    hull = trimesh.convex.convex_hull(points)
    write_stl(tmp_path / "part.stl", hull.triangles)
    return tmp_path / "part.stl", hull


def test_a_mesh_weighs_what_it_encloses(part):
    path, hull = part
    shape = shapes.mesh(path, density=2700.0)
    hull.density = 2700.0
    assert shape.mass == pytest.approx(hull.mass, rel=1e-6)  # the file has single precision
    assert np.allclose(shape.com, hull.center_mass, atol=1e-6)
    assert np.allclose(shape.inertia, hull.moment_inertia, rtol=1e-5, atol=1e-6 * shape.mass)
    small = shapes.mesh(path, scale=0.5, density=2700.0)
    assert small.mass == pytest.approx(shape.mass / 8) and np.allclose(small.inertia, shape.inertia / 32)
    mirrored = shapes.mesh(path, scale=(-1, 1, 1), mass=shape.mass)
    assert np.allclose(mirrored.com, shape.com * (-1, 1, 1)) and np.allclose(
        np.diag(mirrored.inertia), np.diag(shape.inertia)
    )


def test_an_open_mesh_has_no_mass(part):
    path, hull = part
    write_stl(path, hull.triangles[:-8])
    with pytest.raises(lw.InputError, match="encloses nothing"):
        shapes.mesh(path, density=1.0)
    assert shapes.mesh(path).visuals[0].mesh == str(path)


def test_a_body_in_one_word():
    b = lw.ModelBuilder("drop")
    b.add_body("crate", joint=lw.Free(), shape=lw.shapes.box((1, 1, 1), density=600, rgba=(1, 0, 0), visible=True))
    crate = b.build().bodies["crate"]
    assert crate.mass == 600.0 and np.allclose(crate.inertia, 100.0 * np.eye(3))
    (seen,), (outline,) = crate.visuals, crate.collisions
    assert seen == outline and seen.kind == "box" and seen.size == (1.0, 1.0, 1.0) and seen.name == "crate"
    assert seen.rgba == (1.0, 0.0, 0.0, 1.0)
    ghost = shapes.sphere(0.1, collides=False)
    assert ghost.visuals and not ghost.collisions
    assert not shapes.sphere(0.1, visible=False).visuals
    slick = lw.Material(friction=0.1)
    (sole,) = shapes.sphere(0.1, label="sole", contype=2, conaffinity=4, material=slick).collisions
    assert (sole.label, sole.contype, sole.conaffinity, sole.material) == ("sole", 2, 4, slick)
    with pytest.raises(lw.InputError, match="this is not a material"):
        shapes.sphere(0.1, material=0.5)


def test_a_shape_goes_through_files(tmp_path):
    b = lw.ModelBuilder("pair")
    b.add_body("arm", joint=lw.Revolute((0, 1, 0)), shape=SHAPES["capsule"][0] + SHAPES["box"][0])
    model = b.build()
    for name in ("pair.lw.json", "pair.xml"):
        model.save(tmp_path / name)
        again = lw.load(tmp_path / name).bodies["arm"]
        assert np.allclose(again.inertia, model.bodies["arm"].inertia)
        assert sorted(each.kind for each in again.collisions) == ["box", "capsule"]


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: shapes.box((1, 1, 0), mass=1.0), "an edge of a box is not possible"),
        (lambda: shapes.box((1, 1)), "the size of a box"),
        (lambda: shapes.sphere(-1.0), "the radius of a sphere is not possible"),
        (lambda: shapes.sphere(1.0, mass=1.0, density=2.0), "a sphere has a mass and a density"),
        (lambda: shapes.sphere(1.0, mass=-1.0), "the mass of a sphere is not possible"),
        (lambda: shapes.sphere(1.0, colour="red"), "a sphere has no 'colour'"),
        (lambda: shapes.sphere(1.0, rgba=(255, 0, 0)), "a colour is not usable"),
        (lambda: shapes.capsule(0.1), "there is neither a length nor two ends"),
        (lambda: shapes.capsule(0.1, 1.0, ends=((0, 0, 0), (0, 0, 1))), "two ends say where it is"),
        (lambda: shapes.rod((0, 0, 0), (0, 0, 0), 0.1), "the ends are in one place"),
        (lambda: shapes.mesh("part.stl", scale=0.0), "the scale of a mesh is not usable"),
        (lambda: lw.ModelBuilder().add_body("a", shape="box"), "the shape of body 'a' is none"),
        (lambda: lw.ModelBuilder().add_body("a", mass=1.0, shape=shapes.sphere(1.0)), "is that of its shape"),
    ],
)
def test_what_makes_no_sense_is_refused(make, says):
    with pytest.raises(lw.LinkwiseError, match=re.escape(says)):
        make()
