"""What bodies look like where files say so, where they do not, and where files are missing."""

import warnings

import numpy as np
import pytest

import linkwise as lw
from linkwise import samples
from linkwise.errors import ModelWarning
from linkwise.mechanism.placement import quaternions_of
from linkwise.viz.bending import bending
from linkwise.viz.looks import looks_of
from linkwise.viz.meshes import placeholder
from linkwise.viz.solids import box
from linkwise.viz.stage import floor_height

ROBOT = """<robot name="r"><link name="base"/>
<material name="paint"><color rgba="0.2 0.4 0.6 0.5"/></material>
<link name="a"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>{}</link>
<joint name="j" type="continuous"><parent link="base"/><child link="a"/></joint></robot>"""
MESH = '<visual><geometry><mesh filename="{}"/></geometry></visual>'


def robot(visual, path):
    file = path / "r.urdf"
    file.write_text(ROBOT.format(visual))
    return lw.load(file)


def test_a_missing_mesh_is_a_placeholder_and_one_warning(tmp_path):
    model = robot(MESH.format("package://nowhere/gone.stl") + MESH.format("meshes/lost.stl"), tmp_path)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        looks = looks_of(model)
    (warning,) = caught
    text = str(warning.message)
    assert warning.category is ModelWarning
    assert "package://nowhere/gone.stl" in text and "meshes/lost.stl" in text
    assert str(tmp_path / "nowhere" / "gone.stl") in text  # where it looked
    colours = {solid.colour for solid in looks.bodies[0]}
    assert colours == {placeholder(1.0).colour} and len(looks.missing) == 2


def test_a_damaged_mesh_is_a_placeholder_too(tmp_path):
    (tmp_path / "bad.stl").write_bytes(b"not a mesh")
    with pytest.warns(ModelWarning, match=r"bad\.stl"):
        looks = looks_of(robot(MESH.format("bad.stl"), tmp_path))
    assert looks.bodies[0][0].colour == placeholder(1.0).colour


@pytest.mark.parametrize(
    ("material", "colour"),
    [
        ('<material name="paint"/>', (51, 102, 153)),
        ('<material name=""><color rgba="1 0 0 1"/></material>', (255, 0, 0)),
        ('<material name="unknown"/>', None),
        ('<material name="x"><color rgba="red"/></material>', None),
    ],
)
def test_colours_of_a_urdf_file(tmp_path, material, colour):
    model = robot(f'<visual><geometry><box size="1 2 3"/></geometry>{material}</visual>', tmp_path)
    (solid,) = looks_of(model).bodies[0]
    assert solid.colour == colour
    np.testing.assert_allclose(np.ptp(solid.vertices, axis=0), [1, 2, 3])
    assert solid.opacity == (0.5 if colour == (51, 102, 153) else 1.0)


def test_contact_shapes_serve_where_there_are_no_others(tmp_path):
    model = robot('<collision><geometry><sphere radius="0.3"/></geometry></collision>', tmp_path)
    (solid,) = looks_of(model).bodies[0]
    np.testing.assert_allclose(np.ptp(solid.vertices, axis=0), 0.6, rtol=0.02)


def test_a_body_without_shapes_is_rods_and_a_small_ellipsoid():
    b = lw.ModelBuilder("arm")
    heavy = 4.0 * np.eye(3)  # a ball of 3 m, were it drawn as it is
    b.add_body("upper", joint=lw.Revolute(axis=(0, 1, 0)), mass=1.0, com=(0.5, 0, 0), inertia=heavy)
    b.add_body("lower", parent="upper", joint=lw.Revolute(axis=(0, 1, 0)), placement=lw.transform(xyz=(1, 0, 0)),
               mass=1.0, com=(0, 0, -0.5), inertia=0.01 * np.eye(3))  # fmt: skip
    looks = looks_of(b.build())
    upper, lower = looks.bodies
    low, high = (np.min, np.max)
    corners = [f([f(solid.vertices, axis=0) for solid in upper], axis=0) for f in (low, high)]
    np.testing.assert_allclose([corners[0][0], corners[1][0]], [0.0, 1.0], atol=0.05 * looks.size)  # joint to joint
    assert np.abs(np.array(corners)[:, 1:]).max() < 0.06 * looks.size  # and slender
    assert min(solid.vertices[:, 2].min() for solid in lower) < -0.5  # to its mass centre, where no joint follows
    assert np.ptp(looks.ellipsoids[0].vertices, axis=0).min() > 3.0  # the true one is still to be had


def test_rods_go_to_closures_too():
    model = samples.four_bar()
    (closure,) = model.closures
    tied = [(closure.body_a, closure.placement_a), (closure.body_b, closure.placement_b)]
    looks = looks_of(model)
    for body, placement in tied:
        if body >= 0:
            vertices = np.concatenate([solid.vertices for solid in looks.bodies[body]])
            nearest = np.linalg.norm(vertices - np.array(placement)[:3, 3], axis=1).min()
            assert nearest < 0.02 * looks.size


def test_a_body_that_flies_alone_is_its_ellipsoid():
    b = lw.ModelBuilder("rock")
    b.add_body("rock", joint=lw.Free(), mass=2.0, inertia=np.diag([1.0, 2.0, 2.5]))
    looks = looks_of(b.build())
    (solid,) = looks.bodies[0]
    np.testing.assert_allclose(solid.vertices, looks.ellipsoids[0].vertices)


def test_bodies_that_slide_have_a_rail_on_what_they_slide_on():
    b = lw.ModelBuilder("gantry")
    b.add_body("beam", joint=lw.Revolute(axis=(0, 0, 1)), mass=1.0, inertia=np.eye(3))
    b.add_body("cart", parent="beam", joint=lw.Prismatic(axis=(1, 0, 0)), mass=1.0, inertia=0.1 * np.eye(3),
               limits=lw.JointLimits(-0.5, 0.7))  # fmt: skip
    beam = looks_of(b.build()).bodies[0]
    x = np.concatenate([solid.vertices for solid in beam])[:, 0]
    np.testing.assert_allclose([x.min(), x.max()], [-0.5, 0.7], atol=1e-9)


def test_inertias_are_those_of_the_parameters():
    model = samples.stanford_arm()
    looks = looks_of(model)
    assert all(looks.bodies) and all(each is not None for each in looks.ellipsoids)
    for body in model.bodies:
        mass, com, inertia = body.mass, body.com, body.inertia
        m, h, J = _parameters(model, body.index)
        np.testing.assert_allclose([mass, *(mass * com)], [m, *h], atol=1e-12)
        np.testing.assert_allclose(inertia + mass * (com @ com * np.eye(3) - np.outer(com, com)), J, atol=1e-12)


def _parameters(model, k):
    m, hx, hy, hz, xx, xy, yy, xz, yz, zz = model.inertial_parameters[10 * k : 10 * k + 10]
    return m, (hx, hy, hz), np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def test_tubes_bend_through_the_nodes():
    model = samples.flexible_arm()
    looks = looks_of(model)
    q = model.random_configuration(3)
    for body in model.bodies:
        (tube,) = looks.bent[body.index]
        X = model.pose(q, body.name)
        drawn = tube.vertices(q[body.q_slice]) @ X[:3, :3].T + X[:3, 3]
        for node in body.flexible.nodes:
            at = model.pose(q, body.name, node=node.key)[:3, 3]
            ring = np.linalg.norm(drawn - at, axis=1) < 0.0135  # the tube's radius is 0.012 of its length
            assert ring.sum() in (10, 20)  # one for each piece of tube that ends there
            np.testing.assert_allclose(drawn[ring].mean(axis=0), at, atol=1e-9)


def test_given_surfaces_follow_the_nodes():
    body = samples.flexible_arm().bodies[0].flexible
    (skin,) = bending(body, [box(1.0, 0.02, 0.02).placed(lw.transform(xyz=(0.5, 0.0, 0.0)))], 1.0)
    eta = 1e-3 * np.ones(body.modes)
    tip = body.node("tip")
    end = np.abs(skin.solid.vertices[:, 0] - 1.0) < 1e-9
    moved = (skin.vertices(eta) - skin.solid.vertices)[end].mean(axis=0)
    np.testing.assert_allclose(
        moved, tip.Gamma @ eta + 0.5 * (tip.Q @ eta) @ eta, atol=0.06 * np.abs(tip.Gamma @ eta).max()
    )
    assert np.abs((skin.vertices(eta) - skin.solid.vertices)[np.abs(skin.solid.vertices[:, 0]) < 1e-9]).max() < 1e-4


def test_colours_of_sdf_and_mjcf_files():
    sdf = """<sdf version="1.9"><model name="m"><link name="a"><inertial><mass>1</mass></inertial><visual name="v">
      <geometry><sphere><radius>0.1</radius></sphere></geometry><material><diffuse>0 1 0 1</diffuse></material></visual>
      </link><joint name="j" type="revolute"><parent>world</parent><child>a</child><axis><xyz>0 0 1</xyz></axis></joint>
      </model></sdf>"""
    assert looks_of(lw.loads(sdf)).bodies[0][0].colour == (0, 255, 0)
    pytest.importorskip("mujoco")
    mjcf = """<mujoco><asset><material name="m" rgba="0 0 1 1"/></asset><worldbody><body><joint type="hinge"/>
      <geom type="sphere" size="0.1" material="m"/><geom type="box" size="0.1 0.1 0.1" rgba="1 0 0 0.5"/></body>
      </worldbody></mujoco>"""
    assert {solid.colour for solid in looks_of(lw.loads(mjcf)).bodies[0]} == {(0, 0, 255), (255, 0, 0)}


def test_a_model_without_bodies_can_be_seen():
    b = lw.ModelBuilder("table")
    b.add_body(
        "top", joint=lw.Fixed(), mass=1.0, visuals=[lw.Geometry("box", (1.0, 1.0, 0.1), None, (1, 1, 1), PLACE, "top")]
    )
    looks = looks_of(b.build())
    assert looks.bodies == () and len(looks.base) == 1


PLACE = tuple(tuple(row) for row in np.eye(4).tolist())


def test_turns_are_those_of_the_matrices():
    """Against SciPy's, at random, at no turn, and near half turns about every axis, where a formula may fail."""
    from scipy.spatial.transform import Rotation

    rng = np.random.default_rng(0)
    half = np.concatenate([(np.pi - gap) * np.eye(3) for gap in (0.0, 1e-9, 1e-4)])
    turns = Rotation.concatenate([Rotation.random(100, rng=rng), Rotation.identity(1), Rotation.from_rotvec(half)])
    found = quaternions_of(turns.as_matrix())
    np.testing.assert_allclose(np.linalg.norm(found, axis=-1), 1.0, atol=1e-15)
    np.testing.assert_allclose(Rotation.from_quat(found[:, [1, 2, 3, 0]]).as_matrix(), turns.as_matrix(), atol=1e-14)
    assert quaternions_of(np.eye(3)[None, None]).shape == (1, 1, 4)


def test_a_rod_in_the_frame_of_its_chord():
    """Its tube is bent like a sine between ends that stay where they are."""
    chord = [("root", "tx"), ("root", "ty"), ("root", "tz"), ("root", "rx"), ("tip", "ty"), ("tip", "tz")]
    rod = lw.FlexibleBody.beam(1.0, 1e5, 20.0, 9.0, 0.5, elements=8, modes=(1, 0), axial_modes=0, held=chord)
    (tube,) = bending(rod, [], 1.0)
    moved = tube.vertices(np.array([0.01])) - tube.solid.vertices
    x, middle = tube.solid.vertices[:, 0], np.abs(rod.node(4).Gamma[1, 0]) * 0.01
    bent = np.abs(moved[:, 1])
    np.testing.assert_allclose(bent, middle * np.sin(np.pi * x), atol=2e-2 * middle)


def test_hills_are_drawn_in_place_of_the_floor():
    b = lw.ModelBuilder("ball")
    b.add_body("ball", joint=lw.Free(), shape=lw.shapes.sphere(0.1, density=500))
    ball = b.build()
    hills = lw.Ground(lw.transform(xyz=(0, 0, 2)), shape=lw.shapes.heightfield([[0.0, 1.0], [0.0, 1.0]], (4, 4)))
    looks = looks_of(ball.with_contacts(hills))
    (ground,) = looks.ground
    np.testing.assert_allclose([ground.vertices.min(axis=0), ground.vertices.max(axis=0)], [[-2, -2, 2], [2, 2, 3]])
    assert floor_height(ball.with_contacts(hills), looks, 0.0, 0.0) is None
    both = ball.with_contacts(hills, lw.Ground())
    assert floor_height(both, looks_of(both), 0.0, 0.0) == 0.0
    assert not looks_of(ball.with_contacts(lw.Ground())).ground
