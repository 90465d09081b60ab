"""MJCF files with random switches and options: the motion is MuJoCo's, and what is left out is said, nothing else."""

from __future__ import annotations

import importlib.util
import warnings

import numpy as np

import linkwise as lw
from campaign.trial import Log, Trial, said

Rng = np.random.Generator
ON = ("override", "energy", "fwdinv", "invdiscrete", "sleep", "diagexact", "speculative")
"""Flags that are off where the file does not say; "ipc" needs an integrator whose accelerations are those of a step."""
OPTIONS = {
    "timestep": "0.01", "gravity": "1 2 3", "magnetic": "1 2 3", "wind": "3 0 0", "impratio": "2", "cone": "elliptic",
    "o_margin": "0.1", "o_solref": "0.1 1", "o_friction": "2 2 1 1 1", "ccd_iterations": "9", "jacobian": "sparse",
    "solver": "CG", "iterations": "9", "tolerance": "1e-3", "noslip_iterations": "9", "integrator": "implicitfast",
    "density": "1.2", "viscosity": "1e-3", "actuatorgroupdisable": "4", "sleep_tolerance": "1",
}  # fmt: skip


def random_file(rng: Rng) -> str:
    """A chain or a tree with springs, losses, limits, an equality, drives and sensors, each there or not."""
    from linkwise.files.mjcf.options import FLAGS

    def perhaps(text: str, chance: float = 0.5) -> str:
        return text if rng.random() < chance else ""

    def numbers(count: int, low: float = -1.0, high: float = 1.0) -> str:
        return " ".join(f"{x:.4g}" for x in rng.uniform(low, high, count))

    flags = [name for name in FLAGS if name != "ipc" and rng.random() < 0.15]
    flag = " ".join(f'{name}="{"enable" if name in ON else "disable"}"' for name in flags)
    option = " ".join(f'{name}="{value}"' for name, value in OPTIONS.items() if rng.random() < 0.08)
    single, bodies, ends = [], "", ""
    for k in range(int(rng.integers(1, 5))):
        kind = str(rng.choice(["hinge", "slide", "hinge", "ball", "free" if k == 0 else "slide"]))
        losses = perhaps(f' damping="{numbers(1, 0, 2)}"') + perhaps(f' armature="{numbers(1, 0, 1)}"')
        losses += perhaps(f' frictionloss="{numbers(1, 0.1, 1)}"')
        one = perhaps(f' stiffness="{numbers(1, 1, 9)}" springref="{numbers(1)}"')
        one += perhaps(' range="-10 15"' if kind == "hinge" else ' range="-0.2 0.3"')
        joint = f'<freejoint name="j{k}"/>'
        if kind == "ball":
            joint = f'<joint name="j{k}" type="ball" pos="{numbers(3)}"{losses}/>'
        elif kind != "free":
            single.append(f"j{k}")
            joint = f'<joint name="j{k}" type="{kind}" axis="{numbers(3, 0.1, 1)}" pos="{numbers(3)}"{losses}{one}/>'
        lifted = perhaps(' gravcomp="0.5"', 0.05)
        bodies += f'<body name="b{k}" pos="{numbers(3)}" euler="{numbers(3, -90, 90)}"{lifted}>{joint}'
        bodies += f'<geom type="box" size="{numbers(3, 0.05, 0.3)}" pos="{numbers(3)}"/><site name="s{k}"/>'
        if rng.random() < 0.6:
            ends += "</body>"
        else:
            bodies += "</body>"
    more = ""
    if len(single) > 1:
        a, b = single[:2]
        more += perhaps(f'<equality><joint joint1="{a}" joint2="{b}" polycoef="0 {numbers(1)} 0 0 0"/></equality>')
        more += perhaps(
            f'<tendon><fixed name="band" stiffness="{numbers(1, 1, 9)}" damping="{numbers(1, 0, 1)}">'
            f'<joint joint="{a}" coef="0.7"/><joint joint="{b}" coef="-1"/></fixed></tendon>'
        )
    if single:
        drives = f'<motor name="m" joint="{single[0]}" gear="{numbers(1, 1, 4)}" ctrlrange="-1 1"/>'
        drives += f'<position name="p" joint="{single[-1]}" kp="20" group="4" armature="0.01" damping="0.3"/>'
        more += perhaps(f"<actuator>{drives}</actuator>")
    more += perhaps('<sensor><framepos name="where" objtype="site" objname="s0"/></sensor>')
    return (
        f'<mujoco><compiler angle="degree"/><option {option}><flag {flag}/></option>'
        f"<worldbody>{bodies}{ends}</worldbody>{more}</mujoco>"
    )


def switch_problem(text: str, rng: Rng) -> str:
    """What is wrong with how a file was read, or ""."""
    from tests.files.mujoco_of_mjcf import motion_problem

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = lw.loads(text)
    said = [line for each in caught for line in (str(each.message), *getattr(each.message, "left_out", ()))]
    heard = "\n".join(said)

    def off(flag: str) -> bool:
        return f'{flag}="disable"' in text

    expected = {
        "fall asleep": 'sleep="enable"' in text,
        "all actuators": "<actuator>" in text and off("actuation"),
        "actuator 'p'": "<actuator>" in text and not off("actuation") and "actuatorgroupdisable" in text,
        "all sensors": "<sensor>" in text and off("sensor"),
    }
    for sentence, due in expected.items():
        if (sentence in heard) != due:
            return f"{sentence!r} is{'' if due else ' not'} due, and was{'' if not due else ' not'} said"
    if heard and not any(expected.values()):
        return f"warns without need: {heard}"
    if bool(model.sensors) != ("<sensor>" in text and not off("sensor")):
        return "sensors are there, or not, against the file"
    return motion_problem(model, text, rng)


class Switches(Trial):
    """Random MJCF files with every flag."""

    name, unit, target, chunk = "switches", "MJCF files with random flags and options against MuJoCo", 10**5, 10**4

    def unavailable(self) -> str | None:
        """Needs MuJoCo."""
        return None if importlib.util.find_spec("mujoco") else "mujoco is not installed"

    def run(self, seed: int, numbers: range, log: Log) -> None:
        """Read and compare."""
        for number in log.numbers(numbers):
            rng = np.random.default_rng([seed, number])
            text = random_file(rng)
            log.begin(number, text)
            try:
                problem = switch_problem(text, rng)
            except Exception as error:
                problem = said(error)
            if problem:
                log.fail(number, f"{problem}\n{text}")
