"""The joint types, one file each."""

from linkwise.model.joints.base import Joint
from linkwise.model.joints.custom import CustomJoint
from linkwise.model.joints.cylindrical import Cylindrical
from linkwise.model.joints.fixed import Fixed
from linkwise.model.joints.free import Free
from linkwise.model.joints.helical import Helical
from linkwise.model.joints.planar import Planar
from linkwise.model.joints.prismatic import Prismatic
from linkwise.model.joints.revolute import Revolute
from linkwise.model.joints.spherical import Spherical
from linkwise.model.joints.universal import Universal

__all__ = [
    "CustomJoint",
    "Cylindrical",
    "Fixed",
    "Free",
    "Helical",
    "Joint",
    "Planar",
    "Prismatic",
    "Revolute",
    "Spherical",
    "Universal",
]
