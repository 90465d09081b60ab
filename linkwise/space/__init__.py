"""Spacecraft: orbits, what acts up there, actuators, sensors, control and docking; all traced, so that it batches."""

from linkwise.space.atmosphere import Exponential, Layers
from linkwise.space.gravity import Gravity
from linkwise.space.harmonics import Harmonics, jgm3, oblateness
from linkwise.space.lambert import lambert
from linkwise.space.magnetism import MagneticField
from linkwise.space.orbit import Orbit
from linkwise.space.placed import Placed
from linkwise.space.planets import EARTH, MARS, MOON, SUN, Planet
from linkwise.space.propulsion import Propulsion, Thruster
from linkwise.space.relative import hill_transfer, hill_transition
from linkwise.space.shadow import sunlit
from linkwise.space.sky import Sky, StillSky
from linkwise.space.surfaces import Drag, Facet, Sunlight
from linkwise.space.tanks import Tank, add_particle, add_pendulum
from linkwise.space.torquers import Torquer
from linkwise.space.wheels import ControlMomentGyro, Wheel, add_gyro, add_wheel

__all__ = [
    "EARTH",
    "MARS",
    "MOON",
    "SUN",
    "ControlMomentGyro",
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
    "Propulsion",
    "Sky",
    "StillSky",
    "Sunlight",
    "Tank",
    "Thruster",
    "Torquer",
    "Wheel",
    "add_gyro",
    "add_particle",
    "add_pendulum",
    "add_wheel",
    "hill_transfer",
    "hill_transition",
    "jgm3",
    "lambert",
    "oblateness",
    "sunlit",
]
