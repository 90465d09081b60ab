"""Starts that overlap, steps that are too long, states that are not numbers: said, and harmless to others."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import linkwise as lw
from tests.contact.scenes import ball, block, one_body, placed, shape


def on_ground(model: lw.Model, **given: object) -> lw.Model:
    return model.with_contacts(lw.Ground(), **given)


@pytest.mark.parametrize(
    "given", [{"only": "thing"}, {"between": [("thing", "thing")]}, {"between": ["thing"]}, {"exclude": [("thing",)]}]
)
def test_bodies_are_given_as_lists_and_pairs(given: dict[str, object]) -> None:
    with pytest.raises(lw.InputError, match="thing") as caught:
        on_ground(block(), **given)
    assert caught.value.allowed


NAN = float("nan")


@pytest.mark.parametrize(
    "given",
    [{"friction": x} for x in ("a", None, (0.1,) * 3, (), (0.1, -0.2), NAN, np.inf, [[0.1, 0.2]], (0.1, NAN))]
    + [{name: x} for name in ("torsion", "rolling", "threshold", "damping", "restitution") for x in ("a", None, NAN)]
    + [{"stiffness": x} for x in ("a", None, 0.0, NAN)]
    + [{"direction": x} for x in ((0, 0, 0), (1, 0), 3, "x", (NAN, 0, 0))]
    + [{"priority": 1.5}, {"priority": NAN}, {"restitution": 1.5}],
)
def test_materials_that_are_none(given: dict[str, object]) -> None:
    with pytest.raises(lw.LinkwiseError, match=next(iter(given))) as caught:
        lw.Material(**given)
    assert caught.value.allowed
    assert caught.value.got


def test_friction_may_be_an_array() -> None:
    assert lw.Material(friction=np.array([0.1, 0.2])).coefficients == (0.1, 0.2)
    assert lw.Material(friction=np.array(0.3)).coefficients == (0.3, 0.3)
    assert lw.Material(friction=np.array([0.1, 0.2])) == lw.Material(friction=(0.1, 0.2))


@pytest.mark.parametrize(
    "given",
    [
        {name: x}
        for name, values in {
            "tolerance": (-1.0, NAN, "a"),
            "recovery": (-1.0, NAN, None, "a", np.inf),
            "overlap": (-1.0, NAN, None),
            "smoothing": (0.0, NAN, "a"),
            "friction_speed": (0.0, NAN, None),
            "joint_limits": ("x", 2),
            "joint_friction": (None,),
            "passive": (3,),
        }.items()
        for x in values
    ],
)
def test_rules_that_are_none(given: dict[str, object]) -> None:
    with pytest.raises(lw.InputError, match=next(iter(given)).split("_")[0]) as caught:
        lw.ContactRules(**given)
    assert caught.value.allowed


@pytest.mark.parametrize("given", [{"only": 3}, {"between": 3}, {"exclude": 3}, {"between": [3]}, {"rules": 3}])
def test_scenes_that_are_none(given: dict[str, object]) -> None:
    with pytest.raises(lw.InputError) as caught:
        on_ground(block(), **given)
    assert caught.value.allowed


@pytest.mark.parametrize("given", [3, "rubber", {"thing": lw.Material()}])
def test_grounds_are_of_a_material(given: object) -> None:
    with pytest.raises(lw.InputError, match="not a material"):
        lw.Ground(material=given)


SIZES = {
    "sphere": [(), (-1.0,), (NAN,), (np.inf,), ("a",), (1.0, 1.0), None, "a"],
    "box": [(1.0, 1.0), (1.0, 1.0, -1.0), (1.0,) * 4],
    "capsule": [(1.0,), (0.1, -1.0)],
    "cylinder": [(1.0,), (0.1, NAN)],
    "ellipsoid": [(1.0, 1.0), (0.1, 0.1, 0.0)],
    "convex": [()],
}


@pytest.mark.parametrize(("kind", "size"), [(kind, size) for kind, sizes in SIZES.items() for size in sizes])
def test_shapes_without_a_surface_are_refused_by_name(kind: str, size: tuple[float, ...]) -> None:
    with pytest.raises(lw.InputError, match=f"(?s){kind} of 'thing'") as caught:
        on_ground(one_body(kind, size, 1.0, [0.01] * 3))
    assert caught.value.allowed
    with pytest.raises(lw.InputError, match=f"{kind} of"):
        ball().with_contacts(lw.Ground(shape=shape(kind, size)))


@pytest.mark.parametrize("shape", ['sphere radius="-0.1"', 'box size="1 -1 1"', 'cylinder radius="0.1" length="-2"'])
def test_files_with_negative_sizes_are_refused_at_their_line(shape: str) -> None:
    link = f'<link name="l">\n<collision><geometry><{shape}/></geometry></collision></link>'
    with pytest.raises(lw.errors.ModelFileError, match=r"(?s):2: .*of link 'l' has a negative size"):
        lw.loads(f'<robot name="r">{link}</robot>')


@pytest.mark.parametrize("dt", [0.0, -0.002, np.nan, np.inf, [0.002, 0.0], np.array([0.002, -1.0])])
def test_steps_that_lead_nowhere_are_refused(dt: Any) -> None:
    model, many = on_ground(ball()), (len(dt),) if np.ndim(dt) else ()
    q, v = (np.broadcast_to(x, (*many, len(x))) for x in (placed(0.1), np.zeros(6)))
    for step in (model.contact_step, model.contacts.linearize_step):
        with pytest.raises(lw.InputError, match="dt of contact_step is not a positive number"):
            step(q, v, v, dt=dt)


def test_sizes_may_be_lists_arrays_and_numbers() -> None:
    for size in ([0.2, 0.2, 0.1], np.array([0.2, 0.2, 0.1])):
        model = on_ground(one_body("box", size, 1.0, [0.004, 0.004, 0.006]))
        assert model.distances(placed(0.3))[0] == pytest.approx(0.25)
    assert on_ground(one_body("sphere", 0.1, 1.0, [0.004] * 3)).distances(placed(0.3))[0] == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("heights", "size"), [([["a", 1], [1, 0]], (1, 1)), ([[0, 1], [1]], (1, 1)), ([[0, 1], [1, 0]], (1,)), (None, 1)]
)
def test_hills_that_are_none(heights: object, size: object) -> None:
    with pytest.raises(lw.InputError) as caught:
        lw.shapes.heightfield(heights, size)
    assert caught.value.allowed


@pytest.mark.parametrize("faces", [[[0, 1, 2.5]], [[0, 1, 3]], [[0, 1, -1]], [["a", 1, 2]], [[0, 1]], None])
def test_triangles_that_are_none(faces: object) -> None:
    with pytest.raises(lw.InputError, match="triangles"):
        lw.shapes.terrain([[0, 0, 0], [1, 0, 0], [0, 1, 0]], faces)


@pytest.mark.filterwarnings("error")
def test_a_box_on_a_slope_has_room_for_its_corners() -> None:
    """Its four lower corners touch to within rounding, and four slots hold them: nothing is left over."""
    pose = lw.transform(rpy=(0.2, 0.25, 0.7))
    model = block(0.17, 0.24, 0.05, mass=1.3).with_contacts(lw.Ground(pose), material=lw.Material(friction=0.9))
    x, y, z, w = Rotation.from_matrix(np.asarray(pose)[:3, :3]).as_quat()
    start = [w, x, y, z, *(np.asarray(pose)[:3, 2] * 0.025)]
    run = lw.simulate(model, start, duration=0.5, dt=0.003, method="moreau")
    assert run.contacts.overflow.max() == 0.0
    stood = lw.Ground(lw.transform(xyz=(0, 0, 0.06)))
    deep = block(0.2, 0.2, 0.1).with_contacts(stood, rules=lw.ContactRules(overlap=1.0))
    assert deep.contact_step(placed(0.0), np.zeros(6), np.zeros(6)).overflow == 4.0


def test_small_overlaps_are_resolved_gently() -> None:
    """5 mm deep: surfaces part at the speed of recovery, and the block lies still afterwards."""
    run = lw.simulate(on_ground(block()), placed(0.045), duration=1.0, dt=0.002, method="moreau")
    assert np.abs(run.v).max() < 0.11
    assert abs(run.q[-1, 6] - 0.05) < 1e-8
    assert np.abs(run.v[-1]).max() < 1e-9


def test_overlaps_at_the_start_are_noted() -> None:
    """The worst of a batch, by name, with what becomes of it."""
    model = on_ground(block())
    starts = np.array([placed(0.05), placed(0.03), placed(0.06)])
    note = lw.simulate(model, starts, duration=0.01, dt=0.005).note
    assert note == "'thing on ground': surfaces overlap at the start by 0.02 m; they are parted at 0.1 m/s"
    assert not lw.simulate(model, starts[::2], duration=0.01, dt=0.005).note
    soft = on_ground(block(), material=lw.Material(stiffness=1e4))
    assert not lw.simulate(soft, starts, duration=0.01, dt=0.005, method="moreau").note


def test_rules_of_contacts_have_their_place() -> None:
    with pytest.raises(lw.InputError, match=r"with_contacts\(…, rules=…\)"):
        lw.simulate(on_ground(block()), placed(0.05), duration=0.01, rules=lw.ContactRules())  # type: ignore[arg-type]


def test_a_start_by_name_says_where_configurations_are() -> None:
    with pytest.raises(lw.InputError, match=r"model\.configurations\['home'\]"):
        lw.simulate(on_ground(block()), "home", duration=0.01)


def test_deep_overlaps_are_refused_by_name() -> None:
    model = on_ground(block())
    with pytest.raises(lw.InputError, match=r"(?s)'thing on ground'.*0\.06 m.*recovery"):
        lw.simulate(model, placed(-0.01), duration=0.1, method="moreau")
    with pytest.raises(lw.InputError, match=r"of state 1"):
        lw.simulate(model, [placed(0.05), placed(-0.01)], duration=0.1, method="moreau")
    with pytest.raises(lw.InputError, match="overlap at the start"):
        lw.Simulation(model, placed(-0.01), method="moreau")
    allowed = on_ground(block(), rules=lw.ContactRules(overlap=0.1))
    run = lw.simulate(allowed, placed(-0.01), duration=1.0, dt=0.002, method="moreau")
    assert np.abs(run.v).max() < 0.11
    assert abs(run.q[-1, 6] - 0.05) < 1e-8


def test_overlaps_that_nothing_can_part_are_said() -> None:
    """A drum that turns within a fixed ring: no turn parts them."""
    b = lw.ModelBuilder("drum")
    drum = [shape("sphere", (0.1,))]
    b.add_body("drum", joint=lw.Revolute(axis=(0, 0, 1)), mass=1.0, inertia=np.eye(3), collisions=drum)
    ring = lw.Ground(lw.transform(xyz=(0, 0, -0.12)), shape=shape("sphere", (0.03,)), name="ring")
    model = b.build().with_contacts(ring)
    with pytest.warns(lw.errors.IntegrationWarning, match=r"(?s)'drum on ring'.*do not part.*0\.01 m.*exclude"):
        lw.simulate(model, duration=0.5, dt=0.002, method="moreau")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lw.simulate(on_ground(block()), placed(0.04), duration=0.5, dt=0.002, method="moreau")  # which parts


def plate_and_bullet(thickness: float) -> lw.Model:
    b = lw.ModelBuilder("bullet", gravity=(0, 0, 0))
    b.add_body("bullet", joint=lw.Free(), mass=0.01, inertia=np.eye(3) * 1e-6, collisions=[shape("sphere", (0.005,))])
    plate = lw.Ground(shape=shape("box", (1.0, 1.0, thickness)), name="plate")
    return b.build().with_contacts(plate)


def test_steps_too_long_for_the_speed_are_said() -> None:
    model = plate_and_bullet(0.002)
    start, speed = [1, 0, 0, 0, 0, 0, 0.3], [0, 0, 0, 0, 0, -50.0]
    with pytest.warns(lw.errors.IntegrationWarning, match=r"(?s)'bullet on plate': the step is too long.*shorter dt"):
        fast = lw.simulate(model, start, speed, duration=0.02, dt=0.002, method="moreau")
    assert "pass through" in fast.note
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        slow = lw.simulate(model, start, speed, duration=0.02, dt=5e-5, method="moreau")  # the plate stops it
        aside = lw.simulate(model, [1, 0, 0, 0, 5, 0, 0.3], speed, duration=0.02, dt=0.002, method="moreau")
        lw.simulate(on_ground(ball()), placed(1.0), [0, 0, 0, 0, 0, -500.0], duration=0.02, dt=0.002, method="moreau")
    assert slow.q[-1, 6] > 0.0
    assert "pass through" not in aside.note


def test_steps_go_in_parts_where_surfaces_are_fast() -> None:
    """A bullet that would be through a plate within a step is stopped by it, and one beside it goes on."""
    whole = plate_and_bullet(0.002)
    model = whole.with_contacts(
        lw.Ground(shape=shape("box", (1.0, 1.0, 0.002)), name="plate"), rules=lw.ContactRules(substeps=1000)
    )
    start = [[1, 0, 0, 0, 0, 0, 0.301], [1, 0, 0, 0, 5, 0, 0.301]]
    speed = [[0, 0, 0, 2.0, 0, -50.0]] * 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run = lw.simulate(model, start, speed, duration=0.02, dt=0.002, method="moreau", account=True)
    assert abs(run.q[0, -1, 6] - 0.006) < 1e-5
    assert run.q[1, -1, 6] == pytest.approx(0.301 - 50.0 * 0.02)
    np.testing.assert_allclose(run.t, np.linspace(0, 0.02, 11))
    struck = run[0].contacts.count.argmax()
    assert run[0].contacts.step[struck] < 1e-4
    lost = run[0].energy_account().work["contact"][-1]
    assert lost == pytest.approx(run.energy[0, -1] - run.energy[0, 0], rel=1e-6)


def test_a_state_that_is_too_fast_for_numbers_harms_only_itself() -> None:
    model = on_ground(block())
    q, v = np.tile(placed(0.05), (5, 1)), np.zeros((5, 6))
    v[:, 3] = np.arange(5)
    good = lw.simulate(model, q, v, duration=0.02, dt=0.004, method="moreau")
    v[3, 0] = 1e300
    with pytest.warns(lw.errors.IntegrationWarning, match="state 3 of the batch .* diverged"):
        bad = lw.simulate(model, q, v, duration=0.02, dt=0.004, method="moreau")
    others = [0, 1, 2, 4]
    np.testing.assert_array_equal(bad.q[others], good.q[others])
    assert np.isnan(bad.q[3, -1]).all()


def test_full_slots_are_said_once() -> None:
    """A cylinder's flat end has eight corners' worth of points on a box, and four slots."""
    b = lw.ModelBuilder("prism")
    angles = np.arange(12) * np.pi / 6
    rim = [(0.1 * np.cos(a), 0.1 * np.sin(a), z) for a in angles for z in (-0.05, 0.05)]
    prism = lw.Geometry("convex", (), None, (1, 1, 1), lw.transform(), "prism", vertices=tuple(rim))
    b.add_body("prism", joint=lw.Free(), mass=1.0, inertia=np.eye(3) * 0.01, collisions=[prism])
    model = b.build().with_contacts(lw.Ground())
    with pytest.warns(lw.errors.IntegrationWarning, match="found no room") as caught:
        run = lw.simulate(model, placed(0.05), duration=0.05, dt=0.002, method="moreau")
    assert len(caught) == 1
    assert run.contacts.overflow.max() > 0


@pytest.mark.filterwarnings("ignore::linkwise.errors.IntegrationWarning")
def test_states_that_are_not_numbers_harm_only_themselves() -> None:
    model = on_ground(one_body("box", (0.2, 0.2, 0.1), 1.0, [0.004, 0.004, 0.006]))
    q = np.array([placed(0.3), placed(0.2), placed(0.1)])
    v = np.zeros((3, 6))
    v[1, 3] = np.inf
    alone = lw.simulate(model, q[[0, 2]], v[[0, 2]], duration=0.5, dt=0.002, method="moreau")
    sim = lw.Simulation(model, q, np.zeros((3, 6)), dt=0.002, method="moreau")
    sim.set(v=np.where(np.isfinite(v), v, 1e300))  # it overflows on its way
    sim.advance(0.5)
    assert list(sim.status) == ["running", "failed", "running"]
    np.testing.assert_array_equal(sim.q[[0, 2]], alone.q[:, -1])


def test_no_point_is_faster_than_the_bound() -> None:
    model = on_ground(block(0.2, 0.3, 0.4))
    rng = np.random.default_rng(0)
    corners = np.array([[x, y, z] for x in (-0.1, 0.1) for y in (-0.15, 0.15) for z in (-0.2, 0.2)])
    v = rng.normal(size=(50, 6))
    speeds = np.linalg.norm(v[:, None, 3:] + np.cross(v[:, None, :3], corners), axis=-1).max(axis=-1)
    bound = model.contacts.surface_speed(np.tile(placed(1.0), (50, 1)), v)
    assert (bound >= speeds - 1e-12).all()
    assert (bound < 3.0 * speeds).all()


def test_a_batch_of_no_states_touches_nothing() -> None:
    run = lw.simulate(on_ground(ball()), np.zeros((0, 7)), duration=0.02, dt=0.002, method="moreau")
    assert run.contacts.force.shape == (0, 11, 1, 3)
    assert run.contacts.force_on("thing").shape == (0, 11, 3)


def test_steps_are_in_the_precision_of_their_states() -> None:
    model = on_ground(ball())
    q, v = np.array(placed(0.1), np.float32), np.zeros(6, np.float32)
    assert model.contact_step(q, v, v).q.dtype == np.float32
    assert model.contact_step(q, v, v, None, 0.001).v.dtype == np.float32
    assert model.contacts.linearize_step(q, v, v).dq.dtype == np.float32
    assert model.contact_step(q, v, np.zeros(6)).q.dtype == np.float64


def test_what_else_is_refused() -> None:
    model = on_ground(ball())
    masked = np.ma.masked_array(placed(0.1), mask=[0] * 6 + [1])
    with pytest.raises(lw.InputError, match="q0"):
        lw.simulate(model, masked, duration=0.02)
    for margin in ("a", np.nan, None):
        with pytest.raises(lw.InputError, match="margin"):
            model.collides(placed(0.1), margin=margin)
    with pytest.raises(lw.InputError, match="impacts are those of a model"):
        lw.impacts(3)
    with pytest.raises(lw.InputError, match="bodies touch"):
        lw.impacts(ball())


def test_configurations_that_are_no_numbers_collide() -> None:
    """So that no planner takes them for free."""
    found = on_ground(ball()).collides([placed(1.0), placed(NAN), placed(0.05)])
    np.testing.assert_array_equal(found, [False, True, True])


def test_shapes_of_no_kind_are_refused_by_name() -> None:
    with pytest.raises(lw.InputError, match=r"(?s)pyramid of 'thing' is of no known kind.*sphere"):
        on_ground(one_body("pyramid", (0.1,), 1.0, [0.01] * 3))


@pytest.mark.parametrize("faces", [[[0, 2, 1]], [[0, 1, 1]]])
def test_terrains_on_which_nothing_could_stand(faces: list[list[int]]) -> None:
    with pytest.raises(lw.InputError, match=r"(?s)looks up.*counterclockwise"):
        lw.shapes.terrain([[0, 0, 0], [1, 0, 0], [0, 1, 0]], faces)


def test_what_can_be_asked_of_a_file_with_a_floor_is_said() -> None:
    """Another ground is not what such a model lacks."""
    floor = '<mujoco><worldbody><geom type="plane" size="1 1 1"/><body pos="0 0 1"><freejoint/>'
    model = lw.loads(floor + '<geom size="0.1"/></body></worldbody></mujoco>')
    with pytest.raises(lw.InputError, match=r"with_contacts\(\), with the ground of its file"):
        model.distances(model.start)
    with pytest.raises(lw.InputError, match=r"with_contacts\(lw.Ground"):
        ball().distances(placed(0.1))


def test_points_that_only_come_near_are_not_counted() -> None:
    """Of a foot with twelve corners on its rim four are kept; the others count where they touch, not before."""
    angles = np.arange(12) * np.pi / 6
    rim = tuple((0.1 * np.cos(a), 0.1 * np.sin(a), 0.0) for a in angles)
    foot = lw.Geometry("convex", (), None, (1, 1, 1), lw.transform(), "foot", vertices=(*rim, (0.0, 0.0, 0.1)))
    b = lw.ModelBuilder("foot")
    b.add_body("foot", joint=lw.Free(), mass=1.0, inertia=np.eye(3) * 0.01, collisions=[foot])
    none = np.zeros(6)
    for solver in ("dual", "primal"):
        model = on_ground(b.build(), rules=lw.ContactRules(solver=solver))
        tilted = [np.cos(0.001), np.sin(0.001), 0, 0, 0, 0, 0.1 * np.sin(0.002)]
        assert model.contact_step(placed(0.0), none, none).overflow == 8
        assert model.contact_step(tilted, none, none).overflow == 0
        assert model.contact_step(placed(0.001), none, none).overflow == 0


@pytest.mark.parametrize("name", ["contact_step", "distances", "contact_forces"])
def test_functions_of_contacts_are_refused_where_there_are_none(name: str) -> None:
    with pytest.raises(lw.InputError, match=f"{name} is for models whose bodies touch"):
        ball().function(name)


def test_hills_are_said_in_a_line() -> None:
    """In messages and notebooks, whatever the number of their heights."""
    hills = lw.shapes.heightfield(np.zeros((81, 41)), (8.0, 4.0))
    assert repr(hills) == "<Geometry: heightfield, size (8.0, 4.0), 81 x 41 heights>"
    assert len(repr(lw.Ground(shape=hills))) < 300


def test_all_pairs_that_belong_into_each_other_are_listed_to_be_excluded() -> None:
    """Links of a robot with hulls that overlap: one message, its list as it can be copied."""
    b = lw.ModelBuilder("arm")
    b.add_body("trunk", joint=lw.Free(), mass=1.0, inertia=np.eye(3), collisions=[shape("sphere", (0.1,))])
    for side, y in (("left", 0.17), ("right", -0.17)):
        hip = lw.transform(xyz=(0, y, 0))
        b.add_body(f"{side} hip", "trunk", lw.Revolute(axis=(0, 1, 0)), hip, mass=0.1, inertia=0.01 * np.eye(3))
        given = {"mass": 1.0, "inertia": np.eye(3), "collisions": [shape("sphere", (0.1,))]}
        b.add_body(f"{side} thigh", f"{side} hip", lw.Revolute(axis=(0, 1, 0)), **given)
    model = b.build()
    apart = "exclude=[('trunk', 'left thigh'), ('trunk', 'right thigh')]"
    start = model.start + np.eye(model.nq)[6]
    with pytest.warns(lw.errors.IntegrationWarning) as told:
        lw.simulate(model.with_contacts(), start, duration=1.0, dt=0.01)
    assert apart in str(told[0].message)
    with pytest.raises(lw.InputError) as refused:
        lw.simulate(model.with_contacts(rules=lw.ContactRules(overlap=0.01)), start, duration=1.0, dt=0.01)
    assert apart in str(refused.value)
