"""Models that come with the library: arms, machines on legs, a satellite, and mechanisms with closed loops.

>>> from linkwise import samples
>>> samples.stanford_arm().nv
6
"""

from linkwise.samples.arms import flexible_arm, planar_arm, seven_joint_arm, stanford_arm
from linkwise.samples.legged import humanoid, quadruped
from linkwise.samples.mechanisms import (
    andrews_squeezer,
    bricard,
    flexible_satellite,
    four_bar,
    slider_crank,
    squeezer_forces,
    stewart_platform,
)

__all__ = [
    "andrews_squeezer",
    "bricard",
    "flexible_arm",
    "flexible_satellite",
    "four_bar",
    "humanoid",
    "planar_arm",
    "quadruped",
    "seven_joint_arm",
    "slider_crank",
    "squeezer_forces",
    "stanford_arm",
    "stewart_platform",
]
