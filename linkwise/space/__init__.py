"""Spacecraft: orbits, what acts up there, actuators, sensors, control and docking; all traced, so that it batches."""

from linkwise.space.atmosphere import Exponential, Layers
from linkwise.space.gravity import Gravity
from linkwise.space.harmonics import Harmonics, jgm3, oblateness
from linkwise.space.lambert import lambert
from linkwise.space.magnetism import MagneticField
from linkwise.space.orbit import Orbit
from linkwise.space.placed import Placed
from linkwise.space.planets import EARTH, MARS, MOON, SUN, Planet
from linkwise.space.relative import hill_transfer, hill_transition
from linkwise.space.shadow import sunlit
from linkwise.space.sky import Sky, StillSky
from linkwise.space.surfaces import Drag, Facet, Sunlight

__all__ = [
    "EARTH",
    "MARS",
    "MOON",
    "SUN",
    "Drag",
    "Exponential",
    "Facet",
    "Gravity",
    "Harmonics",
    "Layers",
    "MagneticField",
    "Orbit",
    "Placed",
    "Planet",
    "Sky",
    "StillSky",
    "Sunlight",
    "hill_transfer",
    "hill_transition",
    "jgm3",
    "lambert",
    "oblateness",
    "sunlit",
]
