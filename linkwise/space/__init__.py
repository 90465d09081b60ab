"""Spacecraft: orbits, what acts up there, actuators, sensors, control and docking; all traced, so that it batches."""

from linkwise.space.atmosphere import Exponential, Layers
from linkwise.space.control import (
    BodyMoment,
    MRPFeedback,
    QuaternionFeedback,
    RateFilter,
    ThrusterShares,
    WheelShares,
    bounded_shares,
    detumbling_dipole,
    dumping_dipole,
    least_fuel,
    mrp,
    rate_between,
    thruster_matrix,
)
from linkwise.space.craft_sensors import GNSS, Gyro, Magnetometer, RangeAndBearing, StarTracker, SunSensor
from linkwise.space.docking import Approach, Dock
from linkwise.space.gravity import Gravity
from linkwise.space.harmonics import Harmonics, jgm3, oblateness
from linkwise.space.kepler import EARTH, MARS, MOON, SUN, Planet, lambert
from linkwise.space.magnetism import MagneticField, Torquer
from linkwise.space.orbit import Orbit, hill_transfer, hill_transition
from linkwise.space.placed import Placed
from linkwise.space.propulsion import Propulsion, Thruster
from linkwise.space.sky import Sky, StillSky, sunlit
from linkwise.space.surfaces import Drag, Facet, Sunlight
from linkwise.space.tanks import Tank, add_particle, add_pendulum
from linkwise.space.wheels import BalancedWheel, ControlMomentGyro, Motor, Wheel, add_gyro, add_wheel

__all__ = [
    "EARTH",
    "GNSS",
    "MARS",
    "MOON",
    "SUN",
    "Approach",
    "BalancedWheel",
    "BodyMoment",
    "ControlMomentGyro",
    "Dock",
    "Drag",
    "Exponential",
    "Facet",
    "Gravity",
    "Gyro",
    "Harmonics",
    "Layers",
    "MRPFeedback",
    "MagneticField",
    "Magnetometer",
    "Motor",
    "Orbit",
    "Placed",
    "Planet",
    "Propulsion",
    "QuaternionFeedback",
    "RangeAndBearing",
    "RateFilter",
    "Sky",
    "StarTracker",
    "StillSky",
    "SunSensor",
    "Sunlight",
    "Tank",
    "Thruster",
    "ThrusterShares",
    "Torquer",
    "Wheel",
    "WheelShares",
    "add_gyro",
    "add_particle",
    "add_pendulum",
    "add_wheel",
    "bounded_shares",
    "detumbling_dipole",
    "dumping_dipole",
    "hill_transfer",
    "hill_transition",
    "jgm3",
    "lambert",
    "least_fuel",
    "mrp",
    "oblateness",
    "rate_between",
    "sunlit",
    "thruster_matrix",
]
