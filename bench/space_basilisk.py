"""Basilisk's side of the comparison: run with a Python that has ``bsk``, in an environment of its own.

``python bench/space_basilisk.py reference out.json`` flies a hub with two hinged panels, three wheels and a sloshing
particle for one orbit and writes where it ends; ``… speed`` prints microseconds for each step of several craft.
"""

import json
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from Basilisk.architecture import messaging
from Basilisk.simulation import (
    dragDynamicEffector,
    exponentialAtmosphere,
    gravityEffector,
    hingedRigidBodyStateEffector,
    linearSpringMassDamper,
    radiationPressure,
    reactionWheelStateEffector,
    spacecraft,
)
from Basilisk.utilities import SimulationBaseClass, macros, simIncludeRW

MU = 3.986004418e14
CASE = {
    "mass": 750.0,
    "inertia": [900.0, 800.0, 600.0],
    "r": [-4020338.690396649, 7490566.741852513, 5248299.211589362],
    "v": [-5199.77710904224, -3436.681645356935, 1041.576797498721],
    "sigma": [0.0, 0.0, 0.0],
    "omega": [0.01, -0.02, 0.03],
    "panel_mass": 100.0,
    "panel_inertia": [100.0, 50.0, 50.0],
    "panel_length": 1.5,
    "panel_stiffness": 100.0,
    "panel_damping": 0.0,
    "panel_places": [[0.5, 0.0, 1.0], [-0.5, 0.0, 1.0]],
    "panel_angles": [0.05, 0.0],
    "wheel_inertia": 0.159154943,
    "wheel_speeds": [50.0, 20.0, -15.0],
    "slosh_mass": 10.0,
    "slosh_stiffness": 2.0,
    "slosh_place": [0.1, 0.0, -0.1],
    "slosh_axis": [0.0, 1.0, 0.0],
    "slosh_start": 0.05,
    "duration": 5400.0,
}


def column(values):
    return [[float(x)] for x in values]


def harmonics():
    """Our coefficients in a file of theirs."""
    ours = Path(__file__).parents[1] / "linkwise" / "space" / "data" / "jgm3.txt"
    rows = [line.replace(" ", ", ") for line in ours.read_text().splitlines() if not line.startswith("#")]
    head = [
        "6378136.3, 398600441500000.0, 0.0, 20, 20, 1, 0.0, 0.0",
        "0, 0, 1.0, 0.0",
        "1, 0, 0.0, 0.0",
        "1, 1, 0.0, 0.0",
    ]
    theirs = Path(tempfile.gettempdir()) / "jgm3_for_basilisk.txt"
    theirs.write_text("\n".join([*head, *rows]) + "\n")
    return theirs


def craft(dt, panels=2, wheels=True, slosh=True, environment=False):
    c, sim = CASE, SimulationBaseClass.SimBaseClass()
    sim.CreateNewProcess("process").addTask(sim.CreateNewTask("task", macros.sec2nano(dt)))
    body = spacecraft.Spacecraft()
    body.ModelTag = "craft"
    body.hub.mHub = c["mass"]
    body.hub.IHubPntBc_B = np.diag(c["inertia"]).tolist()
    body.hub.r_BcB_B = column([0, 0, 0])
    body.hub.r_CN_NInit, body.hub.v_CN_NInit = column(c["r"]), column(c["v"])
    body.hub.sigma_BNInit, body.hub.omega_BN_BInit = column(c["sigma"]), column(c["omega"])
    kept = [sim, body]
    for k in range(panels):
        panel = hingedRigidBodyStateEffector.HingedRigidBodyStateEffector()
        panel.mass, panel.IPntS_S = c["panel_mass"], np.diag(c["panel_inertia"]).tolist()
        panel.d, panel.k, panel.c = c["panel_length"], c["panel_stiffness"], c["panel_damping"]
        panel.r_HB_B = column(c["panel_places"][k % 2])
        panel.dcm_HB = [[-1.0, 0, 0], [0, -1.0, 0], [0, 0, 1.0]] if k % 2 == 0 else np.eye(3).tolist()
        panel.nameOfThetaState, panel.nameOfThetaDotState = f"theta{k}", f"thetaDot{k}"
        panel.thetaInit, panel.thetaDotInit = c["panel_angles"][k % 2], 0.0
        body.addStateEffector(panel)
        kept.append(panel)
    if wheels:
        factory = simIncludeRW.rwFactory()
        for k in range(3):
            factory.create(
                "custom", np.eye(3)[k].tolist(), Omega=c["wheel_speeds"][k] / macros.RPM, Js=c["wheel_inertia"],
                useRWfriction=False, u_max=10.0, RWModel=messaging.BalancedWheels,
            )  # fmt: skip
        effector = reactionWheelStateEffector.ReactionWheelStateEffector()
        effector.ModelTag = "wheels"
        factory.addToSpacecraft("wheels", effector, body)
        sim.AddModelToTask("task", effector)
        kept += [factory, effector]
    if slosh:
        particle = linearSpringMassDamper.LinearSpringMassDamper()
        particle.k, particle.c = c["slosh_stiffness"], 0.0
        particle.r_PB_B, particle.pHat_B = column(c["slosh_place"]), column(c["slosh_axis"])
        particle.rhoInit, particle.rhoDotInit, particle.massInit = c["slosh_start"], 0.0, c["slosh_mass"]
        body.addStateEffector(particle)
        kept.append(particle)
    earth = gravityEffector.GravBodyData()
    earth.planetName, earth.mu, earth.isCentralBody = "earth_planet_data", MU, True
    if environment:
        earth.useSphericalHarmonicsGravityModel(str(harmonics()), 8)
    body.gravField.gravBodies = spacecraft.GravBodyVector([earth])
    kept.append(earth)
    if environment:
        air = exponentialAtmosphere.ExponentialAtmosphere()
        air.ModelTag, air.planetRadius, air.scaleHeight, air.baseDensity = "air", 6378137.0, 58e3, 1e-9
        air.addSpacecraftToModel(body.scStateOutMsg)
        drag = dragDynamicEffector.DragDynamicEffector()
        drag.coreParams.projectedArea, drag.coreParams.dragCoeff = 2.0, 2.2
        drag.atmoDensInMsg.subscribeTo(air.envOutMsgs[0])
        body.addDynamicEffector(drag)
        light = radiationPressure.RadiationPressure()
        light.area, light.coefficientReflection = 2.0, 1.2
        sun = messaging.SpicePlanetStateMsg().write(
            messaging.SpicePlanetStateMsgPayload(PositionVector=[1.496e11, 0, 0])
        )
        light.sunEphmInMsg.subscribeTo(sun)
        body.addDynamicEffector(light)
        for model in (air, drag, light):
            sim.AddModelToTask("task", model)
        kept += [air, drag, light, sun]
    sim.AddModelToTask("task", body)
    return kept


def fly(dt, seconds, **what):
    kept = craft(dt, **what)
    sim, body = kept[:2]
    log = body.scStateOutMsg.recorder(macros.sec2nano(seconds))
    sim.AddModelToTask("task", log)
    sim.InitializeSimulation()
    sim.ConfigureStopTime(macros.sec2nano(seconds))
    before = time.process_time()  # other work on the machine does not count
    sim.ExecuteSimulation()
    return log, time.process_time() - before


def main():
    if sys.argv[1] == "reference":
        dt = float(sys.argv[3]) if len(sys.argv) > 3 else 0.02
        log, _ = fly(dt, CASE["duration"])
        start, end = (
            {
                "r_BN": log.r_BN_N[k].tolist(),
                "v_BN": log.v_BN_N[k].tolist(),
                "sigma": log.sigma_BN[k].tolist(),
                "omega": log.omega_BN_B[k].tolist(),
            }
            for k in (0, -1)
        )
        with Path(sys.argv[2]).open("w") as file:
            json.dump({"case": CASE, "dt": dt, "start": start, "end": end, "t": log.times()[-1] * 1e-9}, file, indent=1)
        print(end)
        return
    for name, what in (
        ("hub", {"panels": 0, "wheels": False, "slosh": False}),
        ("hub, 2 panels, 3 wheels", {"slosh": False}),
        ("hub, 2 panels, 3 wheels, 8x8, drag, sunlight", {"slosh": False, "environment": True}),
    ):
        taken = min(fly(0.05, 50.0, **what)[1] for _ in range(3))
        print(f"{name}: {taken / 1000 * 1e6:.1f} µs a step")


if __name__ == "__main__":
    main()
