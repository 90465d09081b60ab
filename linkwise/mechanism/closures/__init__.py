"""What closes a mechanism, one file for each kind: closures between frames, relations between joints."""

from linkwise.mechanism.closures.base import Closure, Relation, RelativePose
from linkwise.mechanism.closures.coupling import Coupling
from linkwise.mechanism.closures.cylindrical import CylindricalClosure
from linkwise.mechanism.closures.distance import Distance
from linkwise.mechanism.closures.from_joint import closure_of
from linkwise.mechanism.closures.helical import HelicalClosure
from linkwise.mechanism.closures.instances import ClosureInstance, RelationInstance
from linkwise.mechanism.closures.joint_function import JointFunction
from linkwise.mechanism.closures.planar import PlanarClosure
from linkwise.mechanism.closures.point_on_curve import PointOnCurve
from linkwise.mechanism.closures.point_on_plane import PointOnPlane
from linkwise.mechanism.closures.point_on_surface import PointOnSurface
from linkwise.mechanism.closures.polynomial import PolynomialCoupling
from linkwise.mechanism.closures.prescribed import Prescribed
from linkwise.mechanism.closures.prescribed_frame import PrescribedFrame
from linkwise.mechanism.closures.prismatic import PrismaticClosure
from linkwise.mechanism.closures.rate_function import RateFunction
from linkwise.mechanism.closures.revolute import RevoluteClosure
from linkwise.mechanism.closures.rolling import Rolling
from linkwise.mechanism.closures.spherical import SphericalClosure
from linkwise.mechanism.closures.universal import UniversalClosure
from linkwise.mechanism.closures.weld import WeldClosure

__all__ = [
    "Closure",
    "ClosureInstance",
    "Coupling",
    "CylindricalClosure",
    "Distance",
    "HelicalClosure",
    "JointFunction",
    "PlanarClosure",
    "PointOnCurve",
    "PointOnPlane",
    "PointOnSurface",
    "PolynomialCoupling",
    "Prescribed",
    "PrescribedFrame",
    "PrismaticClosure",
    "RateFunction",
    "Relation",
    "RelationInstance",
    "RelativePose",
    "RevoluteClosure",
    "Rolling",
    "SphericalClosure",
    "UniversalClosure",
    "WeldClosure",
    "closure_of",
]
