"""A hub with panels, wheels and slosh beside Basilisk, whose numbers ``bench/space_basilisk.py`` wrote."""

import json
from pathlib import Path

import numpy as np

import linkwise as lw
from linkwise import space


class PullAtTheCentre(lw.Element):
    """Gravity as Basilisk has it: the same everywhere, as it is at the mass centre."""

    is_actuator = False

    def __init__(self, model):
        self.model = model

    def acceleration(self, t, q, v, x, p):
        r = self.model.center_of_mass(q)
        return -space.EARTH.mu * r / (r @ r) ** 1.5


def test_one_orbit_of_a_craft_with_everything():
    told = json.loads((Path(__file__).parents[1] / "golden" / "space_basilisk.json").read_text())
    c, start, end = told["case"], told["start"], told["end"]
    J = c["wheel_inertia"]
    b = lw.ModelBuilder("craft", gravity=(0, 0, 0))
    # Its hub has the wheels' inertia along their axes; here that is the wheels'.
    b.add_body("hub", joint=lw.Free(), mass=c["mass"], inertia=np.diag(c["inertia"]) - J * np.eye(3))
    for k in range(2):
        place = lw.transform(xyz=c["panel_places"][k], rpy=(0, 0, np.pi * (1 - k)))
        com, inertia = (-c["panel_length"], 0, 0), np.diag(c["panel_inertia"])
        hinge, stiff = lw.Revolute((0, 1, 0)), c["panel_stiffness"]
        b.add_body(f"panel{k}", "hub", hinge, place, c["panel_mass"], com, inertia, stiffness=stiff)
    space.add_particle(
        b, "slosh", "hub", c["slosh_axis"], mass=c["slosh_mass"], stiffness=c["slosh_stiffness"], place=c["slosh_place"]
    )
    model = b.build()
    wheels = [
        lw.space.BalancedWheel(model, "hub", np.eye(3)[k], 0.0, start=J * (c["wheel_speeds"][k] + c["omega"][k]))
        for k in range(3)
    ]
    q0 = [1, 0, 0, 0, *start["r_BN"], *c["panel_angles"], c["slosh_start"]]
    v0 = [*c["omega"], *start["v_BN"], 0, 0, 0]
    control = [PullAtTheCentre(model), *wheels]
    motion = lw.simulate(model, q0, v0, told["t"], control=control, rtol=1e-12, atol=1e-12, output_times=[told["t"]])
    q, v = motion.q[-1], motion.v[-1]
    sigma = np.array(list(space.mrp(q[:4])))
    assert np.abs(sigma - end["sigma"]).max() < 1e-9
    assert np.abs(v[:3] - end["omega"]).max() < 1e-7  # its steps of 0.02 s; they fall with the fourth power
    assert np.abs(q[4:7] - end["r_BN"]).max() < 1e-5
