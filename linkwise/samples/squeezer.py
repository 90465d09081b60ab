"""Andrews' squeezing mechanism (IFToMM benchmark A03; IVP test set)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from linkwise.joints import Revolute
from linkwise.mechanism.placement import transform
from linkwise.model.model import Model, ModelBuilder
from linkwise.spatial.scalar import cos, sin, sqrt

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
