"""What a model keeps besides its mechanics: actuators, sensors, springs across joints, named configurations."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import linkwise as lw


def _builder() -> lw.ModelBuilder:
    b = lw.ModelBuilder("leg")
    b.add_body("hull", joint=lw.Free(), mass=3.0, inertia=np.eye(3), joint_name="root")
    b.add_body("thigh", "hull", lw.Revolute(axis=(0, 1, 0)), mass=1.0, com=(0, 0, -0.3), joint_name="hip")
    b.add_body("shin", "thigh", lw.Spherical(), mass=1.0, inertia=np.eye(3), com=(0, 0, -0.3), joint_name="knee")
    return b


def test_kept_found_by_name_and_pickled() -> None:
    b = _builder()
    b.add_actuator(lw.equipment.Actuator("motor", lw.equipment.JointTransmission({"hip": 2.0}), force_range=(-1, 1)))
    b.add_sensor(lw.equipment.Sensor("effort", "actuator_force", "motor"))
    b.add_spring(
        lw.equipment.Spring("band", lw.equipment.JointTransmission({"hip": 1.0, "knee": (1, 0, 0)}), stiffness=3.0)
    )
    b.add_configuration("bent", {"hip": 0.5})
    model = b.build()
    assert model.actuators["motor"].transmission.joints == ("hip",)
    assert model.springs[0].transmission.gears[1] == ("knee", (1.0, 0.0, 0.0))
    bent = model.configurations["bent"]
    assert bent[model.joints["hip"].q_slice] == 0.5
    assert np.array_equal(bent[:4], [1, 0, 0, 0])
    with pytest.raises(ValueError, match="read-only"):
        bent[0] = 2.0
    again = pickle.loads(pickle.dumps(model))
    assert again == model
    assert again.configurations == model.configurations
    assert model.with_equipment(actuators=()).sensors == ()
    assert list(model.with_configuration("up", model.neutral()).configurations) == ["bent", "up"]


@pytest.mark.parametrize(
    ("add", "message"),
    [
        (lambda b: b.add_actuator(lw.equipment.Actuator("m", lw.equipment.JointTransmission({"hop": 1.0}))), "hip"),
        (
            lambda b: b.add_actuator(lw.equipment.Actuator("m", lw.equipment.JointTransmission({"root": 1.0}))),
            "FrameTransmission",
        ),
        (
            lambda b: b.add_actuator(lw.equipment.Actuator("m", lw.equipment.JointTransmission({"hip": (1, 2)}))),
            "wrong length",
        ),
        (lambda b: b.add_actuator(lw.equipment.Actuator("m", lw.equipment.FrameTransmission("hul", (0,) * 6))), "hull"),
        (lambda b: b.add_actuator("m"), "what is needed is an Actuator"),
        (lambda b: [b.add_sensor(lw.equipment.Sensor("s", "clock")) for _ in range(2)], "taken"),
        (lambda b: b.add_sensor(lw.equipment.Sensor("s", "joint_position", "knee")), "cannot read"),
        (lambda b: b.add_sensor(lw.equipment.Sensor("s", "actuator_force", "m")), "no actuator"),
        (lambda b: b.add_sensor(lw.equipment.Sensor("s", "gyroscope", "hat")), "no body or frame"),
        (lambda b: b.add_configuration("c", [0.0]), "the configuration 'c' is not possible"),
        (lambda b: b.add_configuration("c", {"hop": 0.0}), "hip"),
    ],
)
def test_what_does_not_fit_is_refused(add: Any, message: str) -> None:
    b = _builder()
    with pytest.raises(lw.LinkwiseError, match=message):  # some are refused at once, some when built
        add(b)
        b.build()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: lw.equipment.JointTransmission({}), "moves no joint"),
        (lambda: lw.equipment.JointTransmission({"a": float("nan")}), "gear of joint 'a' is not possible"),
        (lambda: lw.equipment.FrameTransmission("a", (1, 2)), "6 finite numbers"),
        (lambda: lw.equipment.Actuator("m", "a"), "no transmission"),  # type: ignore[arg-type]
        (lambda: lw.equipment.Actuator("m", lw.equipment.JointTransmission({"a": 1}), gain=(1, 2)), "3 finite numbers"),  # type: ignore[arg-type]
        (lambda: lw.equipment.Actuator("m", lw.equipment.JointTransmission({"a": 1}), force_range=(1, -1)), "no room"),
        (lambda: lw.equipment.Activation("thyristor"), "integrator"),  # type: ignore[arg-type]
        (lambda: lw.equipment.Activation("filter", 0.0), "time constant"),
        (lambda: lw.equipment.Sensor("s", "nose", "hull"), "no kind of sensor"),
        (lambda: lw.equipment.Sensor("s", "gyroscope"), "fixed to nothing"),
        (lambda: lw.equipment.Sensor("s", "clock", "hull"), "whole mechanism"),
        (lambda: lw.equipment.Spring("s", lw.equipment.JointTransmission({"a": 1}), stiffness=-1.0), "not possible"),
    ],
)
def test_impossible_descriptions_are_refused(make: Any, message: str) -> None:
    with pytest.raises(lw.LinkwiseError, match=message):
        make()
