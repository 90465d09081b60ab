"""Mechanisms with closed loops, and a satellite whose panels bend."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.checks import check_count
from linkwise.errors import InputError
from linkwise.flexible.body import FlexibleBody
from linkwise.joints import Free, Joint, Prismatic, Revolute, Spherical, Universal
from linkwise.mechanism.placement import transform
from linkwise.mechanism.shapes import box
from linkwise.model.model import Model, ModelBuilder
from linkwise.spatial.scalar import cos, sin, sqrt

_Y = (0.0, 1.0, 0.0)


def _rod(along: NDArray[np.float64], mass: float, thickness: float = 0.0) -> dict[str, Any]:
    """A uniform bar of square section from the origin to the end of the vector ``along``."""
    l2 = float(along @ along)
    direction = along / math.sqrt(l2)
    about_axis, across = mass * thickness**2 / 6.0, mass * (l2 + thickness**2) / 12.0
    inertia = across * np.eye(3) + (about_axis - across) * np.outer(direction, direction)
    return {"mass": mass, "com": (along / 2.0).tolist(), "inertia": inertia}


def four_bar(n: int = 1, closure: Joint | None = None) -> Model:
    """The N-four-bar mechanism (IFToMM benchmark A02): N parallelograms side by side; N = 1 is a four-bar linkage.

    N + 1 upright and N horizontal rods of 1 m and 1 kg, in the X–Z plane, gravity along -Z. All upright at q = 0, which
    closes. ``rod0``, …, stand on the ground at x = 0, 1, …; ``coupler1``, …, hang on the rod before and are closed
    (``pin1``, …) with the one after. One freedom, with φ̈ = 3(3N + 1)/(2(4N + 1)) g sin φ exactly; N + 1 of them where
    all rods lie flat.

    Args:
        n: number of parallelograms.
        closure: joint type of the pins; a hinge if not given (5 equations, of rank 2 in a planar loop). ``Spherical``
            gives 3.
    """
    check_count(n=n)
    up, over = np.array([0.0, 0.0, 1.0]), np.array([1.0, 0.0, 0.0])
    builder = ModelBuilder("four_bar")
    for i in range(n + 1):
        ground = transform(xyz=(float(i), 0.0, 0.0))
        builder.add_body(f"rod{i}", "world", Revolute(_Y), ground, joint_name=f"foot{i}", **_rod(up, 1.0))
        if i < n:
            top = transform(xyz=up.tolist())
            name = f"coupler{i + 1}"
            builder.add_body(name, f"rod{i}", Revolute(_Y), top, joint_name=f"hinge{i + 1}", **_rod(over, 1.0))
    for i in range(1, n + 1):
        ends = transform(xyz=over.tolist()), transform(xyz=up.tolist())
        joint = Revolute(_Y) if closure is None else closure
        builder.add_closure(f"pin{i}", f"coupler{i}", ends[0], f"rod{i}", ends[1], joint=joint)
    return builder.build()


def slider_crank(crank: float = 0.1, rod: float = 0.3) -> Model:
    """A crank at the origin, a connecting rod, and a slider along X; gravity along -Z. One freedom; closes at q = 0.

    The closure ``wrist`` is a hinge between rod and slider: 5 equations, of rank 2.

    Args:
        crank: its length, m.
        rod: its length, m.
    """
    if not 0.0 < crank <= rod:
        raise InputError("the crank cannot turn", got=f"crank {crank!r}, rod {rod!r}", allowed="0 < crank <= rod, in m")
    over = np.array([1.0, 0.0, 0.0])
    builder = ModelBuilder("slider_crank")
    builder.add_body("crank", "world", Revolute(_Y), joint_name="main", **_rod(crank * over, 0.5))
    builder.add_body(
        "rod", "crank", Revolute(_Y), transform(xyz=(crank, 0.0, 0.0)), joint_name="pin", **_rod(rod * over, 0.8)
    )
    builder.add_body(
        "slider",
        "world",
        Prismatic((1.0, 0.0, 0.0)),
        transform(xyz=(crank + rod, 0.0, 0.0)),
        joint_name="guide",
        mass=0.6,
        inertia=2e-4 * np.eye(3),
    )
    builder.add_closure("wrist", "rod", transform(xyz=(rod, 0.0, 0.0)), "slider", None, joint=Revolute(_Y))
    return builder.build()


def stewart_platform(base: float = 1.0, platform: float = 0.6, height: float = 1.2) -> Model:
    """A Stewart platform: six legs (universal joint, slide, ball) under a plate; 24 freedoms and 18 equations.

    q has (two angles, extension) of each leg, then the plate's pose relative to its home, [w, x, y, z, px, py, pz].
    Neutral is home, and closes. The slides ``slide1``, …, ``slide6`` are the motors of the real machine.

    Args:
        base: radius of the circle of the lower ends, m.
        platform: radius of that of the upper ends, m.
        height: of the plate's home, m.
    """
    builder = ModelBuilder("stewart_platform")
    lower = np.radians([-12.0, 12.0, 108.0, 132.0, 228.0, 252.0])
    upper = np.radians([-48.0, 48.0, 72.0, 168.0, 192.0, 288.0])
    ends = []
    for i, (low, high) in enumerate(zip(lower, upper, strict=True), 1):
        foot = base * np.array([math.cos(low), math.sin(low), 0.0])
        on_plate = platform * np.array([math.cos(high), math.sin(high), 0.0])
        leg = on_plate + np.array([0.0, 0.0, height]) - foot
        length = float(np.linalg.norm(leg))
        z = leg / length
        x = np.cross([0.0, 1.0, 0.0], z)
        x /= np.linalg.norm(x)
        pose = np.eye(4)
        pose[:3, :3], pose[:3, 3] = np.column_stack([x, np.cross(z, x), z]), foot
        half = np.array([0.0, 0.0, 0.6 * length])
        builder.add_body(
            f"tube{i}", "world", Universal((1, 0, 0), (0, 1, 0)), pose, joint_name=f"foot{i}", **_rod(half, 1.5, 0.04)
        )
        builder.add_body(
            f"piston{i}",
            f"tube{i}",
            Prismatic((0.0, 0.0, 1.0)),
            transform(xyz=(0.0, 0.0, length)),
            joint_name=f"slide{i}",
            **_rod(-half, 1.0, 0.03),
        )
        ends.append(on_plate)
    builder.add_body(
        "plate",
        "world",
        Free(),
        transform(xyz=(0.0, 0.0, height)),
        joint_name="plate_pose",
        mass=12.0,
        inertia=np.diag([1.1, 1.1, 2.2]),
    )
    for i, end in enumerate(ends, 1):
        builder.add_closure(f"ball{i}", f"piston{i}", None, "plate", transform(xyz=end.tolist()), joint=Spherical())
    return builder.build()


def bricard() -> Model:
    """Bricard's mechanism (IFToMM benchmark A04): five rods of 1 m and 1 kg between six hinges; gravity along -Y.

    The rods are edges of a cube, 0.1 m × 0.1 m thick, and so is the ground between the last hinge and the first;
    the axes of neighbouring hinges are at right angles. Closes at q = 0. Five freedoms less five equations leave none
    by Grübler's count; in fact one is left, at every configuration.
    """
    edges = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [-1, 0, 0], [0, -1, 0]], float)
    axes = [(0, 1, 0), (0, 0, 1), (1, 0, 0), (0, 1, 0), (0, 0, 1)]
    builder = ModelBuilder("bricard", gravity=(0.0, -9.81, 0.0))
    parent, at = "world", np.zeros(3)
    for i, (edge, axis) in enumerate(zip(edges, axes, strict=True), 1):
        builder.add_body(
            f"rod{i}",
            parent,
            Revolute(axis),
            transform(xyz=at.tolist()),
            joint_name=f"hinge{i}",
            **_rod(edge, 1.0, 0.1),
        )
        parent, at = f"rod{i}", edge
    builder.add_closure(
        "hinge6", "rod5", transform(xyz=at.tolist()), "world", transform(xyz=(0.0, 0.0, 1.0)), joint=Revolute((1, 0, 0))
    )
    return builder.build()


_Z = (0.0, 0.0, 1.0)
_A, _B, _C = (-0.06934, -0.00227), (-0.03635, 0.03273), (0.014, 0.072)
_E, _EA, _D, _DA, _RR, _RA = 0.02, 0.01421, 0.028, 0.0115, 0.007, 0.00092
_SS, _SA, _SB, _SC, _SD = 0.035, 0.01874, 0.01043, 0.018, 0.02
_TA, _TB, _U, _UA, _UB, _ZF, _ZT, _FA = 0.02308, 0.00916, 0.04, 0.01228, 0.00449, 0.02, 0.04, 0.01421
_DRIVE, _STIFFNESS, _REST = 0.033, 4530.0, 0.07785  # N m, N/m, m

# Body: parent, where its hinge is on it, mass, moment about the mass centre, mass centre, the point that meets the rest
_BODIES: dict[str, tuple[str, tuple[float, float], float, float, tuple[float, float], tuple[float, float] | None]] = {
    "K1": ("world", (0.0, 0.0), 0.04325, 2.194e-6, (_RA, 0.0), None),
    "K2": ("K1", (_RR, 0.0), 0.00365, 4.410e-7, (-_DA, 0.0), (-_D, 0.0)),
    "K3": ("world", _B, 0.02373, 5.255e-6, (_SB, -_SA), (0.0, -_SS)),
    "K5": ("world", _A, 0.07050, 1.169e-5, (_TA, _TB), None),
    "K4": ("K5", (_ZT, 0.0), 0.00706, 5.667e-7, (0.0, _EA - _E), (0.0, -_E)),
    "K7": ("world", _A, 0.05498, 1.912e-5, (-_UB, -_UA), None),
    "K6": ("K7", (0.0, -_U), 0.00706, 5.667e-7, (_ZF - _FA, 0.0), (_ZF, 0.0)),
}
_ANGLES = {"K1": "beta", "K2": "theta", "K3": "gamma", "K5": "delta", "K4": "phi", "K7": "epsilon", "K6": "omega"}


def andrews_squeezer() -> Model:
    """Andrews' squeezer: seven planar bodies in the X–Y plane, no gravity; one freedom.

    q = (β, Θ, γ, δ, Φ, ε, Ω) with the angles of the benchmark, whose order is (β, Θ, γ, Φ, δ, Ω, ε): here a body comes
    after the one it hangs on. K2 meets K3, K4 and K6 at one point, in the hinges ``pin3``, ``pin4`` and ``pin6``. The
    joint forces of the drive and the spring are :func:`squeezer_forces`.
    """
    builder = ModelBuilder("andrews_squeezer", gravity=(0.0, 0.0, 0.0))
    for name, (parent, (x, y), mass, moment, com, _) in _BODIES.items():
        builder.add_body(
            name,
            parent,
            Revolute(_Z),
            transform(xyz=(x, y, 0.0)),
            joint_name=_ANGLES[name],
            mass=mass,
            com=(*com, 0.0),
            inertia=np.diag([moment / 2.0, moment / 2.0, moment]),  # those about X and Y have no effect
        )
    meets = {name: transform(xyz=(*point, 0.0)) for name, (*_, point) in _BODIES.items() if point is not None}
    for name in ("K3", "K4", "K6"):
        builder.add_closure(f"pin{name[1]}", "K2", meets["K2"], name, meets[name], joint=Revolute(_Z))
    return builder.build()


def squeezer_forces(q: Sequence[Any]) -> Any:
    """The joint forces τ (7) of the squeezer's drive on K1 and of the spring between K3 and the ground; any scalars.

    Args:
        q: one configuration of :func:`andrews_squeezer`.
    """
    c, s = cos(q[2]), sin(q[2])
    arm_x, arm_y = _SD * c + _SC * s, _SD * s - _SC * c  # from B to the spring's end on K3
    x, y = arm_x + (_B[0] - _C[0]), arm_y + (_B[1] - _C[1])
    length = sqrt(x * x + y * y)
    pull = (length - _REST) / length * -_STIFFNESS
    return np.array([_DRIVE, 0.0, (arm_x * y - arm_y * x) * pull, 0.0, 0.0, 0.0, 0.0])


def flexible_satellite(modes: int = 2, damping: float = 0.0) -> Model:
    """A hub of 20 kg, free in space, with two panels of 3 m and 4.5 kg that bend, on hinges with springs; no gravity.

    Bodies ``hub``, ``right`` and ``left``; the panels reach along x to both sides and turn about y, on the joints
    ``right hinge`` and ``left hinge`` with springs of 7 N m/rad. Held at its hinge a panel swings at 0.3 Hz across its
    face and 0.5 Hz in its plane. q begins with the pose of the hub (``root_joint``: w, x, y, z and position, m); each
    panel has its modal coordinates, then the angle of its hinge.

    Args:
        modes: bending modes of each panel, across its face and in its plane.
        damping: ratio ζ of every mode.
    """
    panel = FlexibleBody.beam(
        3.0,
        2e4,
        (40.0, 90.0),
        25.0,
        1.5,
        elements=8,
        modes=(modes, modes),
        axial_modes=0,
        torsion_modes=0,
        damping=damping,
    )
    b = ModelBuilder("flexible_satellite", gravity=(0.0, 0.0, 0.0))
    hub = box((1.0, 0.7, 0.6), rgba=(0.8, 0.72, 0.5))
    b.add_body(
        "hub",
        joint=Free(),
        joint_name="root_joint",
        mass=20.0,
        inertia=np.diag([3.0, 4.0, 5.0]),  # more than that of a uniform box: tanks lie outside
        visuals=hub.named("hub").visuals,
        collisions=hub.named("hub").collisions,
    )
    for name, x, turn in (("right", 0.5, 0.0), ("left", -0.5, math.pi)):
        place = transform(xyz=(x, 0.0, 0.0), rpy=(0.0, 0.0, turn))
        b.add_body(name, "hub", Revolute((0, 1, 0)), place, joint_name=f"{name} hinge", flexible=panel, stiffness=7.0)
    return b.build()
