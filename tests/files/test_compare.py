"""Two models compared: closures by what they allow, equipment by what it says."""

from __future__ import annotations

from typing import Any

import pytest

import linkwise as lw
from linkwise import samples
from linkwise.files.compare import compare
from tests.closures.mechanisms import BETWEEN, RELATIONS, closed_tree

END = lw.transform(xyz=(0.4, 0.1, -0.2), rpy=(0.3, -0.8, 1.1))
FOOT = lw.transform(xyz=(-0.1, 0.5, 0.3), rpy=(1.0, 0.2, -0.4))


def _arm(joint: Any, end: Any = END, foot: Any = FOOT, body: str = "link3", name: str = "pin") -> lw.Model:
    return samples.planar_arm(4).with_closure(name, "world", foot, body, end, joint=joint)


def _turned(joint: Any, end: Any = END, foot: Any = FOOT, name: str = "other") -> lw.Model:
    """The same closure with its two sides the other way round."""
    return samples.planar_arm(4).with_closure(name, "link3", end, "world", foot, joint=joint)


def _same(a: lw.Model, b: lw.Model) -> bool:
    return compare(a, b, states=2).same


@pytest.mark.parametrize("kind", [*BETWEEN, *RELATIONS])
def test_a_closure_is_the_same_as_itself(kind: str) -> None:
    case = closed_tree(1, [kind], n=5, types=("revolute", "prismatic", "spherical"))
    assert not compare(case.model, case.model, states=1).differences


def test_the_same_in_other_words() -> None:
    slid = lw.transform(xyz=(0, 0.7, 0))  # along the axis of the hinge, on both bodies
    assert _same(_arm(lw.Revolute((0, 1, 0))), _arm(lw.Revolute((0, 1, 0)), END @ slid, FOOT @ slid, name="x"))
    assert _same(_arm(lw.Revolute((0, 1, 0))), _arm(lw.Revolute((0, -1, 0))))
    assert _same(_arm(lw.Revolute((0, 1, 0))), _turned(lw.Revolute((0, 1, 0))))
    spun = lw.transform(rpy=(0.5, 0.1, 0.9))  # a ball has no directions
    assert _same(_arm(lw.Spherical()), _turned(lw.Spherical(), END @ spun))
    assert _same(_arm(lw.closures.Distance(0.8)), _turned(lw.closures.Distance(0.8), END, FOOT @ spun))
    raised = lw.transform(xyz=(3.0, 1.0, 0.0))  # within the plane
    assert _same(
        _arm(lw.closures.PointOnPlane((0, 0, 1))), _arm(lw.closures.PointOnPlane((0, 0, 2)), END, FOOT @ raised)
    )
    assert not _same(
        _arm(lw.closures.PointOnPlane((0, 0, 1))), _turned(lw.closures.PointOnPlane((0, 0, 1)))
    )  # the plane moves instead


def test_order_and_names_do_not_matter() -> None:
    model = samples.four_bar(3)
    first = model.closures[0]
    names = [body.name for body in model.bodies]
    other = model.without(first.name)
    sides = (names[first.body_b], first.placement_b, names[first.body_a], first.placement_a)
    assert _same(model, other.with_closure("last", *sides, joint=lw.Revolute((0, 1, 0))))
    assert _same(model, model.renamed(lambda name: f"other_{name}"))


def test_body_frames_do_not_matter(tmp_path: Any) -> None:
    model = samples.slider_crank()
    model.save(tmp_path / "a.urdf")
    assert _same(model, lw.load(tmp_path / "a.urdf", loops=tmp_path / "a.loops.yaml"))


@pytest.mark.parametrize(
    ("a", "b", "says"),
    [
        (
            _arm(lw.Spherical()),
            _arm(lw.Revolute((0, 1, 0))),
            "closure 'pin' is Spherical and Revolute, between 'world'",
        ),
        (
            _arm(lw.Spherical()),
            _arm(lw.Spherical(), body="link4"),
            "between 'world' and 'link3' and between 'world' and",
        ),
        (
            _arm(lw.closures.Distance(0.8)),
            _arm(lw.closures.Distance(0.9)),
            "the length of closure 'pin' is 0.8 and 0.9",
        ),
        (_arm(lw.Helical(0.1)), _arm(lw.Helical(-0.1)), "the pitch of closure 'pin' is 0.1 and -0.1"),
        (
            _arm(lw.Revolute((0, 1, 0))),
            _arm(lw.Revolute((0, 1, 0)), END @ lw.transform(xyz=(1e-3, 0, 0))),
            "closure 'pin' is in another place on 'link3', 0.001 m away",
        ),
        (
            _arm(lw.Revolute((0, 1, 0))),
            _arm(lw.Revolute((0, 1, 0)), END, FOOT @ lw.transform(rpy=(0.01, 0, 0))),
            "closure 'pin' is turned by 0.01 rad on 'world'",
        ),
        (
            _arm(lw.Revolute((0, 1, 0))),
            _arm(lw.Revolute((0, 0, 1))),
            "closure 'pin' does not hold where that of the other model does",
        ),
        (
            _arm(lw.Spherical()),
            samples.planar_arm(4),
            "'pin' (Spherical between 'world' and 'link3') is in the first only",
        ),
        (samples.planar_arm(4), _arm(lw.Spherical()), "'pin' (Spherical between 'world' and 'link3') is in the second"),
        (
            samples.planar_arm(4).with_coupling("gear", lw.closures.Coupling.gear("joint1", "joint2", 2.0)),
            samples.planar_arm(4).with_coupling("gear", lw.closures.Coupling.gear("joint1", "joint2", 3.0)),
            "the coefficients of coupling 'gear' are (1, -2) and (1, -3)",
        ),
        (
            samples.planar_arm(4).with_coupling("gear", lw.closures.Coupling.gear("joint1", "joint2", 2.0)),
            samples.planar_arm(4).with_coupling("gear", lw.closures.Coupling.gear("joint1", "joint3", 2.0)),
            "coupling 'gear' is of 'joint1', 'joint2' and of 'joint1', 'joint3'",
        ),
    ],
    ids=lambda x: x[:30] if isinstance(x, str) else "",
)
def test_one_line_for_each_difference(a: lw.Model, b: lw.Model, says: str) -> None:
    (line,) = compare(a, b, states=1).differences
    assert says in line


def test_couplings_in_other_words() -> None:
    arm = samples.planar_arm(4)
    gear = arm.with_coupling("gear", lw.closures.Coupling.gear("joint1", "joint2", 2.0, 0.5))
    assert _same(gear, arm.with_coupling("belt", lw.closures.Coupling({"joint2": 4.0, "joint1": -2.0}, -1.0)))
    assert _same(gear, arm.with_coupling("f", lambda q: q[0] - 2.0 * q[1] - 0.5, joints=["joint1", "joint2"]))


def test_equipment() -> None:
    arm = samples.planar_arm(3)
    motor = lw.equipment.Actuator("motor", lw.equipment.JointTransmission({"joint2": 50.0}))
    servo = lw.equipment.Actuator(
        "servo", lw.equipment.JointTransmission({"joint1": 1.0}), (9.0, 0, 0), (0, -9.0, -1.0)
    )
    spring = lw.equipment.Spring("spring", lw.equipment.PathTransmission(((("world", "link3"), 1.0),)), 100.0)
    gyro = lw.equipment.Sensor("gyro", "gyroscope", "link2")
    effort = lw.equipment.Sensor("effort", "actuator_force", "motor")
    whole = (
        arm.with_equipment(actuators=[motor, servo])
        .with_equipment(springs=[spring])
        .with_equipment(sensors=[gyro, effort])
    )
    whole = whole.with_configuration("home", [0.1, 0.2, 0.3])
    assert _same(whole, whole.renamed(lambda name: f"other_{name}"))
    assert _same(whole, whole.with_equipment(actuators=[servo, motor]))
    back = lw.equipment.Spring("b", lw.equipment.PathTransmission(((("link3", "world"), 1.0),)), 100.0)
    assert _same(whole, whole.with_equipment(springs=[back]))

    def lines(other: lw.Model) -> list[str]:
        return compare(whole, other, states=1).differences

    def motors(*actuators: lw.equipment.Actuator) -> lw.Model:
        return whole.with_equipment(actuators=actuators).with_equipment(sensors=[gyro, effort])

    stronger = lw.equipment.Actuator("motor", lw.equipment.JointTransmission({"joint2": 60.0}), force_range=(-1.0, 1.0))
    assert lines(motors(stronger, servo)) == [
        "the gear of actuator 'motor' is 50 and 60",
        "the force range of actuator 'motor' is (-inf, inf) and (-1, 1)",
    ]
    moved = lw.equipment.Actuator("motor", lw.equipment.JointTransmission({"joint3": 50.0}))
    assert lines(motors(moved, servo)) == ["actuator 'motor' is along 'joint2' and along 'joint3'"]
    assert lines(motors(motor)) == ["actuator 'servo' (along 'joint1') is in the first only"]
    softer = lw.equipment.Spring("spring", spring.transmission, 90.0)
    assert lines(whole.with_equipment(springs=[softer])) == ["the stiffness of spring 'spring' is 100 and 90"]
    noisy = lw.equipment.Sensor("gyro", "gyroscope", "link2", noise=0.1)
    assert lines(whole.with_equipment(sensors=[noisy, effort])) == ["the noise of sensor 'gyro' is 0 and 0.1"]
    away = lw.equipment.Sensor("gyro", "gyroscope", "link3")
    assert lines(whole.with_equipment(sensors=[away, effort])) == [
        "sensor 'gyro' is gyroscope on 'link2' and gyroscope on 'link3'"
    ]
    assert lines(whole.with_configuration("home", [0.1, 0.2, 0.4])) == [
        "the q of configuration 'home' is (0.1, 0.2, 0.3) and (0.1, 0.2, 0.4)"
    ]
