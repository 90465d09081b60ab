"""The joint types, one file each."""

from linkwise.joints.base import Handle, Joint, SeriesJoint, joint_types
from linkwise.joints.custom import CustomJoint
from linkwise.joints.cylindrical import Cylindrical
from linkwise.joints.fixed import Fixed
from linkwise.joints.free import Free
from linkwise.joints.helical import Helical
from linkwise.joints.mirrored import Mirrored, MirrorImage
from linkwise.joints.planar import Planar
from linkwise.joints.prismatic import Prismatic
from linkwise.joints.revolute import Revolute
from linkwise.joints.spherical import Spherical
from linkwise.joints.universal import Universal

__all__ = [
    "CustomJoint",
    "Cylindrical",
    "Fixed",
    "Free",
    "Handle",
    "Helical",
    "Joint",
    "MirrorImage",
    "Mirrored",
    "Planar",
    "Prismatic",
    "Revolute",
    "SeriesJoint",
    "Spherical",
    "Universal",
    "joint_types",
]
