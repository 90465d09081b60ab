"""Models that come with the library: the two arms of Saha 1999 §6, one that bends, and mechanisms with closed loops.

>>> from linkwise import samples
>>> samples.stanford_arm().nv
6
"""

from linkwise.samples.arms import flexible_arm, planar_arm, stanford_arm
from linkwise.samples.legged import humanoid, quadruped
from linkwise.samples.mechanisms import bricard, four_bar, slider_crank, stewart_platform
from linkwise.samples.squeezer import andrews_squeezer, squeezer_forces

__all__ = [
    "andrews_squeezer",
    "bricard",
    "flexible_arm",
    "four_bar",
    "humanoid",
    "planar_arm",
    "quadruped",
    "slider_crank",
    "squeezer_forces",
    "stanford_arm",
    "stewart_platform",
]
