"""Spacecraft: orbits, what acts up there, actuators, sensors, control and docking; all traced, so that it batches."""

from linkwise.space.atmosphere import Exponential, Layers
from linkwise.space.harmonics import Harmonics, jgm3, oblateness
from linkwise.space.lambert import lambert
from linkwise.space.magnetism import MagneticField
from linkwise.space.orbit import Orbit
from linkwise.space.planets import EARTH, MARS, MOON, SUN, Planet
from linkwise.space.relative import hill_transfer, hill_transition
from linkwise.space.shadow import sunlit

__all__ = [
    "EARTH",
    "MARS",
    "MOON",
    "SUN",
    "Exponential",
    "Harmonics",
    "Layers",
    "MagneticField",
    "Orbit",
    "Planet",
    "hill_transfer",
    "hill_transition",
    "jgm3",
    "lambert",
    "oblateness",
    "sunlit",
]
