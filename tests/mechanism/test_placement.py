from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from linkwise.mechanism.placement import axis_rotation, cos_sin, rotation_rpy

angles = st.floats(-20.0, 20.0)


@given(angles, angles, angles)
def test_rpy_is_about_fixed_axes_x_then_y_then_z(roll: float, pitch: float, yaw: float) -> None:
    expected = Rotation.from_euler("xyz", [roll, pitch, yaw]).as_matrix()
    np.testing.assert_allclose(rotation_rpy((roll, pitch, yaw)), expected, atol=3e-11)


@given(st.integers(-8, 8), st.floats(-9e-12, 9e-12))
def test_quarter_turns_are_exact(quarters: int, off: float) -> None:
    c, s = cos_sin(quarters * math.pi / 2 + off)
    assert (c, s) == ((1, 0), (0, 1), (-1, 0), (0, -1))[quarters % 4]


@pytest.mark.parametrize("angle", [1.5708, 1.570796327, 3.14159, 2e-11, -2e-11])
def test_other_angles_are_kept_unless_the_snap_is_wider(angle: float) -> None:
    assert cos_sin(angle) == (math.cos(angle), math.sin(angle))
    assert set(map(abs, cos_sin(angle, 1e-5))) == {0.0, 1.0}


def test_there_are_no_negative_zeros() -> None:
    for roll in (0.0, math.pi / 2, -math.pi / 2, math.pi):
        for yaw in (0.0, math.pi / 2, -math.pi / 2, math.pi):
            R = rotation_rpy((roll, math.pi / 2, yaw))
            assert not np.signbit(R[R == 0.0]).any()
            assert set(np.abs(R).ravel()) == {0.0, 1.0}


@given(st.lists(st.floats(-1, 1), min_size=3, max_size=3).filter(lambda a: np.linalg.norm(a) > 1e-3), angles)
def test_axis_rotation(axis: list[float], angle: float) -> None:
    unit = np.array(axis) / np.linalg.norm(axis)
    expected = Rotation.from_rotvec(unit * angle).as_matrix()
    np.testing.assert_allclose(axis_rotation(unit.tolist(), angle), expected, atol=3e-11)
