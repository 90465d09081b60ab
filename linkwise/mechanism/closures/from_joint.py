"""The closure that leaves free what a joint leaves free."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from linkwise.errors import InputError
from linkwise.joints import (
    Cylindrical,
    Fixed,
    Free,
    Helical,
    Joint,
    Planar,
    Prismatic,
    Revolute,
    Spherical,
    Universal,
)
from linkwise.mechanism.closures.base import Closure, Relation
from linkwise.mechanism.closures.cylindrical import CylindricalClosure
from linkwise.mechanism.closures.helical import HelicalClosure
from linkwise.mechanism.closures.planar import PlanarClosure
from linkwise.mechanism.closures.prismatic import PrismaticClosure
from linkwise.mechanism.closures.revolute import RevoluteClosure
from linkwise.mechanism.closures.spherical import SphericalClosure
from linkwise.mechanism.closures.universal import UniversalClosure
from linkwise.mechanism.closures.weld import WeldClosure

# By the very type: a subclass may move in another way.
_CLOSURES: dict[type[Joint], Callable[[Any], Closure]] = {
    Fixed: lambda joint: WeldClosure(),
    Revolute: lambda joint: RevoluteClosure(joint.axis),
    Spherical: lambda joint: SphericalClosure(),
    Prismatic: lambda joint: PrismaticClosure(joint.axis),
    Universal: lambda joint: UniversalClosure(joint.axis1, joint.axis2),
    Cylindrical: lambda joint: CylindricalClosure(joint.axis),
    Planar: lambda joint: PlanarClosure(joint.axis),
    # A screw without pitch is a hinge.
    Helical: lambda joint: HelicalClosure(joint.pitch, joint.axis) if joint.pitch else RevoluteClosure(joint.axis),
}
_ALLOWED = (
    f"{', '.join(kind.__name__ for kind in _CLOSURES)}; or PointOnPlane, PointOnSurface, PointOnCurve, Distance, "
    "Rolling, PrescribedFrame"
)


def closure_of(joint: Joint | Closure) -> Closure:
    """The closure of a joint: frame a is the joint's frame, frame b the child's. A closure is its own."""
    if isinstance(joint, Closure):
        return joint
    if type(joint) in _CLOSURES:
        return _CLOSURES[type(joint)](joint)
    if isinstance(joint, Free):
        raise InputError("a Free joint leaves everything free: there is nothing to close", allowed=_ALLOWED)
    if isinstance(joint, Joint):
        # A residual would need the coordinates that come nearest to a pose: for an arbitrary transform a search,
        # with a result that is neither smooth nor unique.
        raise InputError(
            "a user-defined joint gives a pose from coordinates, and a closure needs equations for the pose",
            got=repr(joint),
            allowed=_ALLOWED,
            do="open the loop at another of its joints and make this one a joint of the tree, "
            "or subclass lw.Closure and write the equations",
        )
    raise InputError(
        "what closes two frames is a joint type or a closure",
        got=repr(joint),
        allowed=_ALLOWED,
        do="use add_coupling for relations between joints" if isinstance(joint, Relation) else None,
    )
