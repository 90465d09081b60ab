"""Closures of mechanisms, one file for each kind: closures between frames, relations between joints."""

from linkwise.joints.directions import RelativePose
from linkwise.mechanism.closures.constraint import Closure, Relation
from linkwise.mechanism.closures.coupling import Coupling, JointFunction, PolynomialCoupling, RateFunction
from linkwise.mechanism.closures.from_joint import JointClosure, closure_of
from linkwise.mechanism.closures.instances import ClosureInstance, RelationInstance
from linkwise.mechanism.closures.point_on import Distance, PointOnCurve, PointOnPlane, PointOnSurface, Rolling
from linkwise.mechanism.closures.prescribed import CapturedClosure, Prescribed, PrescribedFrame

__all__ = [
    "CapturedClosure",
    "Closure",
    "ClosureInstance",
    "Coupling",
    "Distance",
    "JointClosure",
    "JointFunction",
    "PointOnCurve",
    "PointOnPlane",
    "PointOnSurface",
    "PolynomialCoupling",
    "Prescribed",
    "PrescribedFrame",
    "RateFunction",
    "Relation",
    "RelationInstance",
    "RelativePose",
    "Rolling",
    "closure_of",
]
