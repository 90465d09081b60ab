"""Machines that walk: a quadruped and a humanoid, of no particular make. Their dimensions and masses are our own."""

from __future__ import annotations

import math
from typing import Literal

from linkwise.errors import InputError
from linkwise.joints import Free, Revolute
from linkwise.mechanism.description import JointLimits
from linkwise.mechanism.placement import transform
from linkwise.mechanism.shapes import BodyShape, box, capsule, cylinder, sphere
from linkwise.model.model import Model, ModelBuilder

Touching = Literal["feet", "all"]
Triple = tuple[float, float, float]

_X, _Y, _Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
_DARK, _LIGHT, _ACCENT = (0.22, 0.24, 0.28), (0.86, 0.88, 0.9), (0.95, 0.55, 0.15)


def quadruped(touching: Touching = "feet") -> Model:
    """A quadruped of 15.4 kg on four legs of three joints, free in space; x is ahead, z is up.

    Legs ``front_left``, ``front_right``, ``rear_left`` and ``rear_right``, each with the joints ``…_abduction`` (about
    x), ``…_swing`` and ``…_knee`` (about y) between the bodies ``trunk``, ``…_hip``, ``…_thigh`` and ``…_shank``, and
    the frame ``…_foot`` in the middle of a ball of 22 mm. Thighs and shanks are 0.22 m long. q is the pose of the trunk
    (``root_joint``: w, x, y, z and position, m), then the twelve angles, leg by leg.

    The configuration ``stand`` has all feet level on z = 0 below the hips; ``crouch`` is a lower one.

    Args:
        touching: bodies with outlines for contact: the ``"feet"`` alone (four balls), or ``"all"``.
    """
    limbs = _limbs_touch(touching)
    length, foot = 0.22, 0.022
    b = ModelBuilder("quadruped")
    trunk = box((0.42, 0.18, 0.11), mass=7.0, rgba=_LIGHT, collides=limbs)
    head = box((0.08, 0.1, 0.08), mass=0.8, placement=(0.25, 0.0, 0.02), rgba=_ACCENT, collides=limbs)
    b.add_body("trunk", joint=Free(), joint_name="root_joint", shape=trunk + head)
    for end, x in (("front", 0.19), ("rear", -0.19)):
        for side, y in (("left", 1.0), ("right", -1.0)):
            leg = f"{end}_{side}"
            b.add_body(
                f"{leg}_hip",
                "trunk",
                Revolute(_X),
                transform(xyz=(x, 0.07 * y, 0.0)),
                joint_name=f"{leg}_abduction",
                limits=JointLimits(-0.8, 0.8, velocity=20.0, effort=24.0),
                armature=0.005,
                shape=capsule(0.038, ends=((0, 0.02 * y, 0), (0, 0.05 * y, 0)), mass=0.6, rgba=_DARK, collides=False),
            )
            b.add_body(
                f"{leg}_thigh",
                f"{leg}_hip",
                Revolute(_Y),
                transform(xyz=(0.0, 0.085 * y, 0.0)),
                joint_name=f"{leg}_swing",
                limits=JointLimits(-1.2, 2.8, velocity=20.0, effort=24.0),
                armature=0.005,
                shape=sphere(0.04, mass=0.45, rgba=_DARK, collides=False)
                + capsule(0.024, ends=((0, 0, -0.03), (0, 0, -length)), mass=0.5, rgba=_LIGHT, collides=limbs),
            )
            b.add_body(
                f"{leg}_shank",
                f"{leg}_thigh",
                Revolute(_Y),
                transform(xyz=(0.0, 0.0, -length)),
                joint_name=f"{leg}_knee",
                limits=JointLimits(-2.6, -0.4, velocity=20.0, effort=40.0),
                armature=0.008,
                shape=capsule(0.014, ends=((0, 0, -0.02), (0, 0, 0.03 - length)), mass=0.3, rgba=_DARK, collides=limbs)
                + sphere(foot, mass=0.05, placement=(0, 0, -length), rgba=_ACCENT),
            )
            b.add_frame(f"{leg}_foot", f"{leg}_shank", transform(xyz=(0.0, 0.0, -length)))
    for name, bend in (("stand", 0.75), ("crouch", 1.2)):
        height = 2 * length * math.cos(bend) + foot
        b.add_configuration(name, [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, height, *[0.0, bend, -2 * bend] * 4])
    return b.build()


def humanoid(touching: Touching = "feet") -> Model:
    """A humanoid of 1.47 m and 48.4 kg with 29 joints, free in space; x is ahead, y to its left, z up.

    Six joints a leg (``left_hip_yaw``, ``…_hip_roll``, ``…_hip_pitch``, ``…_knee``, ``…_ankle_pitch``,
    ``…_ankle_roll``), three at the waist (``waist_yaw``, ``waist_roll``, ``waist_pitch``), seven an arm
    (``left_shoulder_pitch``, ``…_shoulder_roll``, ``…_shoulder_yaw``, ``…_elbow``, ``…_wrist_roll``,
    ``…_wrist_pitch``, ``…_wrist_yaw``). Roll is about x, pitch, knee and elbow about y, yaw about z (at the wrists,
    roll is about the forearm and yaw about x); all limbs hang down at zero. q is the pose of the pelvis
    (``root_joint``: w, x, y, z and position, m), then the angles in this order, left before right. Frames
    ``left_foot``, ``right_foot`` (on the sole, below the ankle), ``left_hand``, ``right_hand``, ``head``.

    Each foot stands on four balls of 12 mm at its corners, 0.2 m × 0.08 m apart. The configuration ``stand`` has
    slightly bent knees, the mass centre above the feet and both soles level on z = 0.

    Args:
        touching: bodies with outlines for contact: the ``"feet"`` alone (eight balls), or ``"all"``, with capsules for
            the limbs.
    """
    limbs = _limbs_touch(touching)
    b = ModelBuilder("humanoid")
    hips = capsule(0.075, ends=((0, -0.07, 0), (0, 0.07, 0)), mass=5.0, rgba=_DARK, collides=limbs)
    b.add_body("pelvis", joint=Free(), joint_name="root_joint", shape=hips)
    for side, y in (("left", 1.0), ("right", -1.0)):
        _add_leg(b, side, y, limbs)
    _add_torso(b, limbs)
    for side, y in (("left", 1.0), ("right", -1.0)):
        _add_arm(b, side, y, limbs)
    bend = 0.25
    standing: dict[str, list[float]] = {}
    for side, y in (("left", 1.0), ("right", -1.0)):
        standing |= {f"{side}_hip_pitch": [-bend], f"{side}_knee": [2 * bend], f"{side}_ankle_pitch": [-bend]}
        standing |= {f"{side}_shoulder_pitch": [0.2], f"{side}_shoulder_roll": [0.12 * y], f"{side}_elbow": [-0.5]}
    height = _HIP[2] + 2 * _LEG * math.cos(bend) + _ANKLE
    b.add_configuration("stand", standing | {"root_joint": [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, height]})
    return b.build()


_HIP = (0.0, 0.1, 0.06)
"""Of the humanoid, m: how far a hip is from the middle of the pelvis: ahead, aside, below."""
_LEG, _ANKLE = 0.35, 0.075
"""Length of a thigh and of a shank, and height of the ankles above the ground, m."""
_SOLE = ((0.14, 0.04), (0.14, -0.04), (-0.06, 0.04), (-0.06, -0.04))
"""Places x, y of the balls under a foot, from the ankle, m."""
_BALL = 0.012
_UPPER_ARM, _FOREARM = 0.25, 0.22


def _add_leg(b: ModelBuilder, side: str, y: float, limbs: bool) -> None:
    """Six links from the hip down; y is 1 on the left, -1 on the right."""
    inward, outward = 0.5, 0.7
    roll = (-inward, outward) if y > 0 else (-outward, inward)
    knee, heel = (0.0, 0.0, -_LEG), (0.0, 0.0, -_LEG)
    foot = box((0.24, 0.1, 0.03), mass=0.8, placement=(0.04, 0, 0.027 - _ANKLE), rgba=_DARK, collides=False)
    for x, aside in _SOLE:
        foot += sphere(_BALL, mass=0.03, placement=(x, aside, _BALL - _ANKLE), rgba=_ACCENT)
    thigh = capsule(0.06, ends=((0, 0, -0.12), (0, 0, 0.06 - _LEG)), mass=3.0, rgba=_LIGHT, collides=limbs)
    thigh += capsule(0.05, ends=((0, 0, 0), (0, 0, -0.12)), mass=0.6, rgba=_LIGHT, collides=False)
    shank = capsule(0.045, ends=((0, 0, -0.05), (0, 0, 0.06 - _LEG)), mass=2.2, rgba=_LIGHT, collides=limbs)
    at_hip = (_HIP[0], _HIP[1] * y, -_HIP[2])
    _add_link(b, f"{side}_hip_frame", "pelvis", f"{side}_hip_yaw", _Z, at_hip, (-0.8, 0.8), 80.0, _motor(0.05, 1.0))
    _add_link(
        b, f"{side}_hip_cross", f"{side}_hip_frame", f"{side}_hip_roll", _X, _HERE, roll, 120.0, _motor(0.05, 1.2)
    )
    _add_link(b, f"{side}_thigh", f"{side}_hip_cross", f"{side}_hip_pitch", _Y, _HERE, (-2.0, 0.7), 120.0, thigh)
    _add_link(b, f"{side}_shank", f"{side}_thigh", f"{side}_knee", _Y, knee, (0.0, 2.4), 140.0, shank)
    _add_link(
        b, f"{side}_ankle", f"{side}_shank", f"{side}_ankle_pitch", _Y, heel, (-0.9, 0.6), 60.0, _motor(0.03, 0.3)
    )
    _add_link(b, f"{side}_sole", f"{side}_ankle", f"{side}_ankle_roll", _X, _HERE, (-0.35, 0.35), 40.0, foot)
    b.add_frame(f"{side}_foot", f"{side}_sole", transform(xyz=(0.0, 0.0, -_ANKLE)))


def _add_torso(b: ModelBuilder, limbs: bool) -> None:
    chest = capsule(0.1, ends=((0, -0.05, 0.24), (0, 0.05, 0.24)), mass=7.5, rgba=_LIGHT, collides=limbs)
    chest += capsule(0.085, ends=((0, 0, 0.08), (0, 0, 0.16)), mass=4.0, rgba=_DARK, collides=limbs)
    chest += capsule(0.05, ends=((0, -0.14, 0.3), (0, 0.14, 0.3)), mass=1.0, rgba=_LIGHT, collides=False)
    chest += cylinder(0.035, ends=((0, 0, 0.33), (0, 0, 0.38)), mass=0.2, rgba=_DARK, collides=False)
    chest += sphere(0.095, mass=2.0, placement=(0.01, 0, 0.44), rgba=_ACCENT, collides=limbs)
    _add_link(b, "waist", "pelvis", "waist_yaw", _Z, (0, 0, 0.08), (-1.8, 1.8), 80.0, _motor(0.05, 0.8))
    _add_link(b, "waist_cross", "waist", "waist_roll", _X, (0, 0, 0.02), (-0.4, 0.4), 80.0, _motor(0.05, 0.8))
    _add_link(b, "torso", "waist_cross", "waist_pitch", _Y, _HERE, (-0.4, 0.9), 80.0, chest)
    b.add_frame("head", "torso", transform(xyz=(0.01, 0.0, 0.44)))


def _add_arm(b: ModelBuilder, side: str, y: float, limbs: bool) -> None:
    """Seven links from the shoulder out."""
    shoulder, elbow, wrist = (0.0, 0.21 * y, 0.31), (0.0, 0.0, -_UPPER_ARM), (0.0, 0.0, -_FOREARM)
    roll = (-0.3, 2.6) if y > 0 else (-2.6, 0.3)
    upper = capsule(0.04, ends=((0, 0, -0.04), (0, 0, 0.04 - _UPPER_ARM)), mass=1.3, rgba=_LIGHT, collides=limbs)
    fore = capsule(0.033, ends=((0, 0, -0.03), (0, 0, 0.05 - _FOREARM)), mass=0.8, rgba=_LIGHT, collides=limbs)
    hand = capsule(0.03, ends=((0, 0, -0.04), (0, 0, -0.1)), mass=0.4, rgba=_ACCENT, collides=limbs)
    rows = (
        ("shoulder", "torso", "shoulder_pitch", _Y, shoulder, (-2.9, 2.0), 40.0, _motor(0.045, 0.8)),
        ("shoulder_cross", "shoulder", "shoulder_roll", _X, _HERE, roll, 40.0, _motor(0.045, 0.7)),
        ("upper_arm", "shoulder_cross", "shoulder_yaw", _Z, _HERE, (-1.8, 1.8), 30.0, upper),
        ("forearm", "upper_arm", "elbow", _Y, elbow, (-2.3, 0.1), 30.0, fore),
        ("wrist", "forearm", "wrist_roll", _Z, wrist, (-1.9, 1.9), 12.0, _motor(0.03, 0.2)),
        ("wrist_cross", "wrist", "wrist_pitch", _Y, _HERE, (-1.4, 1.4), 8.0, _motor(0.03, 0.15)),
        ("palm", "wrist_cross", "wrist_yaw", _X, _HERE, (-1.4, 1.4), 8.0, hand),
    )
    for name, parent, joint, axis, at, turns, effort, shape in rows:
        on = parent if parent == "torso" else f"{side}_{parent}"
        _add_link(b, f"{side}_{name}", on, f"{side}_{joint}", axis, at, turns, effort, shape)
    b.add_frame(f"{side}_hand", f"{side}_palm", transform(xyz=(0.0, 0.0, -0.07)))


_HERE = (0.0, 0.0, 0.0)


def _motor(radius: float, mass: float) -> BodyShape:
    return sphere(radius, mass=mass, rgba=_DARK, collides=False)


def _add_link(
    b: ModelBuilder,
    name: str,
    parent: str,
    joint: str,
    axis: Triple,
    at: Triple,
    turns: tuple[float, float],
    effort: float,
    shape: BodyShape,
) -> None:
    """A link on a hinge that turns so far, rad, and pushes so much, N m."""
    b.add_body(
        name,
        parent,
        Revolute(axis),
        transform(xyz=at),
        joint_name=joint,
        limits=JointLimits(*turns, velocity=15.0, effort=effort),
        armature=3e-4 * effort,
        shape=shape,
    )


def _limbs_touch(touching: Touching) -> bool:
    if touching not in ("feet", "all"):
        raise InputError("these outlines are not known", got=repr(touching), allowed="'feet' or 'all'")
    return touching == "all"
