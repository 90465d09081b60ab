"""The first screen: three machines that move, in 3-D, ten lines of code, and speed beside peers, here and now."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from time import perf_counter
from types import ModuleType

import numpy as np

from linkwise import samples
from linkwise.array_types import Array
from linkwise.mechanism.bodies_and_joints import Named
from linkwise.mechanism.closures.prescribed import Prescribed
from linkwise.model.model import Model
from linkwise.papers.drawings import bar_figure
from linkwise.papers.report_page import ReportPage
from linkwise.sim.actuators import ComputedTorque
from linkwise.sim.simulate import simulate
from linkwise.sim.trajectory import Trajectory
from linkwise.spatial.scalar import Scalar, cos, sin
from linkwise.viz.recording import embedded, motion_html

SWING = 8.0
"""s: the period of the arm's motion."""
ASIDE = np.array([0.3, 0.15, -0.2, 0.2, 0.4, -0.3, 0.5])
"""rad: how far beside its way the arm starts."""
_STATES = 4096

CODE = """
import numpy as np
import linkwise as lw
from linkwise import samples

arm = samples.seven_joint_arm()      # or lw.load("robot.urdf")
home = arm.configurations["home"]
control = lw.PD(arm, home, kp=60.0, kd=20.0, gravity=True)
motion = lw.simulate(arm, np.full(7, 0.5), duration=4.0, control=control)
motion.plot(["q", "tau"]).savefig("arm.png")
motion.save_html("arm.html")         # a player like those above; motion.view() plays it at once
"""


def controlled_arm(duration: float = SWING) -> Trajectory:
    """The arm of seven joints follows a periodic motion under computed torque, from a start beside it."""
    model = samples.seven_joint_arm()
    middle = [0.0, 0.5, 0.0, 1.4, 0.0, 0.9, 0.0]
    reach = [1.0, 0.35, 0.3, 0.45, 0.6, 0.4, 1.5]
    turns = [w * 2.0 * math.pi / SWING for w in (1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 1.0)]
    phases = [0.0, 0.7, -1.2, 1.5, 0.3, 0.0, 0.0]

    def wave(t: Scalar, derivative: int) -> list[Scalar]:
        """The target, or its first or second derivative, at a time that may be traced."""
        found = []
        for m, r, w, phase in zip(middle, reach, turns, phases, strict=True):
            angle = t * w + phase
            found.append((m + r * sin(angle), r * w * cos(angle), -r * w * w * sin(angle))[derivative])
        return found

    control = ComputedTorque(
        model, lambda t, p: wave(t, 0), lambda t, p: wave(t, 1), lambda t, p: wave(t, 2), kp=40.0, kd=12.0
    )
    start = np.array([float(x) for x in wave(0.0, 0)]) + ASIDE
    ideal = model.with_joint_constants(damping=0.0)  # the controller knows of no friction
    return simulate(ideal, start, duration=duration, control=control, output_times=np.linspace(0, duration, 241))


def driven_platform(duration: float = 4.0) -> Trajectory:
    """A Stewart platform whose legs go up and down in turn: its loops are closed at every instant."""
    model = samples.stewart_platform()
    for i in range(1, 7):
        model = model.with_coupling(f"motor{i}", Prescribed(f"slide{i}", _up_and_down(i // 2)))
    start = model.assemble(model.neutral())
    return simulate(model, start, duration=duration, method="rk4", dt=0.02)


def _up_and_down(pair: int) -> Callable[[Scalar], Scalar]:
    """Length of a leg beyond that at rest, m, over time; legs that meet at the plate go together."""
    return lambda t: 0.15 * sin(t * math.pi + pair * 2.0 * math.pi / 3.0)


def swinging_satellite(duration: float = 8.0) -> Trajectory:
    """A satellite that turns, while its panels bend and swing on their hinges."""
    model = samples.flexible_satellite()
    v = np.zeros(model.nv)
    v[:3] = 0.1, 0.25, 0.4
    for name, rate in (("right hinge", 0.8), ("left hinge", 0.5)):
        v[model.joints[name].v_slice] = rate
    return simulate(model, model.neutral(), v, duration=duration, output_times=np.linspace(0, duration, 241))


# Speed.
def nanoseconds(states: int, function: Callable[..., object], *arguments: object, **others: object) -> float:
    """Best time for a state, ns, of calls that each take so many states."""
    function(*arguments, **others)
    best, end = math.inf, perf_counter() + 0.3
    while perf_counter() < end:
        start = perf_counter()
        function(*arguments, **others)
        best = min(best, perf_counter() - start)
    return best / states * 1e9


Times = tuple[float, float]
"""ns for a state: of inverse dynamics, of forward dynamics."""


def own_times(model: Model, states: Array) -> dict[str, Times]:
    """Times of ours, of one call from Python and of a state in a batch."""
    found = {}
    for label, (q, v, x) in (("one state", states[:, 0]), (f"a batch of {_STATES}", states)):
        out, count = np.empty_like(q), q.size // model.nq
        found[f"linkwise, {label}"] = (
            nanoseconds(count, model.inverse_dynamics, q, v, x, out=out),
            nanoseconds(count, model.forward_dynamics, q, v, x, out=out),
        )
    return found


def peers_times(model: Model, states: Array) -> tuple[dict[str, Times], list[str]]:
    """The same of peers that are installed, one state a call from Python, and the names of those that are not."""
    found, missing = {}, []
    q, v, x = states[:, 0]
    with tempfile.TemporaryDirectory() as folder:
        for name, module, measured in (("Pinocchio", "pinocchio", _pinocchio), ("MuJoCo", "mujoco", _mujoco)):
            try:
                library = import_module(module)
            except ImportError:
                missing.append(name)
            else:
                found[f"{name} {library.__version__}, one state"] = measured(library, model, Path(folder), q, v, x)
    return found, missing


def _pinocchio(pin: ModuleType, model: Model, folder: Path, q: Array, v: Array, x: Array) -> Times:
    bare = Named(replace(body, visuals=(), collisions=()) for body in model.bodies)  # URDF has no capsules
    replace(model, bodies=bare).save(folder / "arm.urdf")
    robot = pin.buildModelFromUrdf(str(folder / "arm.urdf"))
    robot.armature = np.asarray(model.joint_constants.armature, float)
    data = robot.createData()
    assert np.allclose(pin.aba(robot, data, q, v, x), model.forward_dynamics(q, v, x), rtol=1e-6, atol=1e-6)
    return nanoseconds(1, pin.rnea, robot, data, q, v, x), nanoseconds(1, pin.aba, robot, data, q, v, x)


def _mujoco(mj: ModuleType, model: Model, folder: Path, q: Array, v: Array, x: Array) -> Times:
    model.save(folder / "arm.xml")
    robot = mj.MjModel.from_xml_path(str(folder / "arm.xml"))
    robot.opt.disableflags |= mj.mjtDisableBit.mjDSBL_CONTACT | mj.mjtDisableBit.mjDSBL_CONSTRAINT
    data = mj.MjData(robot)
    data.qpos[:], data.qvel[:], data.qacc[:], data.qfrc_applied[:] = q, v, x, x
    return nanoseconds(1, mj.mj_inverse, robot, data), nanoseconds(1, mj.mj_forward, robot, data)


def _speed(page: ReportPage) -> None:
    model = samples.seven_joint_arm().with_joint_constants(damping=0.0)
    states = np.random.default_rng(0).uniform(-1.0, 1.0, (3, _STATES, 7))
    peers, missing = peers_times(model, states)
    times = own_times(model, states) | peers
    values = np.array(list(times.values()))
    groups = [
        (f"{way} dynamics", values[:, k], np.stack([values[:, k]] * 2, axis=-1))
        for k, way in enumerate(("inverse", "forward"))
    ]
    said = [f"{' and '.join(missing)} would be here if installed." if missing else ""]
    if any(name.startswith("MuJoCo") for name in peers):
        said.append("MuJoCo's functions compute more for each state than joint forces or accelerations.")
    page.figure(
        "How fast",
        bar_figure(list(times), groups, x_label="ns for one state (shorter is faster)"),
        "The arm of seven joints, measured just now on this machine: one thread, float64, best of many calls. "
        + " ".join(said),
    )


def opening_section(page: ReportPage) -> None:
    """Three players, ten lines of code, one chart."""
    page.section("see", "Machines that move")
    shown = (
        (
            controlled_arm(),
            "seven-joint arm",
            "Computed torque pulls an arm of seven joints onto a periodic motion.",
        ),
        (
            driven_platform(),
            "Stewart platform",
            "A Stewart platform on six driven legs: 24 freedoms, 18 equations.",
        ),
        (swinging_satellite(), "flexible satellite", "A satellite whose panels bend and swing on their hinges."),
    )
    page.text("Each was simulated just now, and drawn from what came out. Turn them with the mouse or a finger.")
    players = []
    for motion, name, words in shown:
        document = motion_html(motion, fps=20.0, closer=1.4)
        # The player asks the reader's system for day or night when it starts, as this page does.
        document = document.replace(
            "{darkMode:false}", '{darkMode:matchMedia("(prefers-color-scheme: dark)").matches}', 1
        )
        players.append(
            (embedded(document, 300, f"{name}, moving"), f"{words} {motion.t[-1]:g} s, {motion.steps} steps.")
        )
    page.gallery(players)
    page.part("Ten lines")
    page.code(CODE)
    _speed(page)
