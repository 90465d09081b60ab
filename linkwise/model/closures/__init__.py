"""What closes a mechanism, one file for each kind: closures between frames, relations between joints."""

from linkwise.model.closures.base import Closure, Relation, RelativePose
from linkwise.model.closures.coupling import Coupling
from linkwise.model.closures.cylindrical import CylindricalClosure
from linkwise.model.closures.distance import Distance
from linkwise.model.closures.from_joint import closure_of
from linkwise.model.closures.helical import HelicalClosure
from linkwise.model.closures.instances import ClosureInstance, RelationInstance
from linkwise.model.closures.joint_function import JointFunction
from linkwise.model.closures.planar import PlanarClosure
from linkwise.model.closures.point_on_curve import PointOnCurve
from linkwise.model.closures.point_on_plane import PointOnPlane
from linkwise.model.closures.point_on_surface import PointOnSurface
from linkwise.model.closures.polynomial import PolynomialCoupling
from linkwise.model.closures.prescribed import Prescribed
from linkwise.model.closures.prescribed_frame import PrescribedFrame
from linkwise.model.closures.prismatic import PrismaticClosure
from linkwise.model.closures.rate_function import RateFunction
from linkwise.model.closures.revolute import RevoluteClosure
from linkwise.model.closures.rolling import Rolling
from linkwise.model.closures.spherical import SphericalClosure
from linkwise.model.closures.universal import UniversalClosure
from linkwise.model.closures.weld import WeldClosure

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
