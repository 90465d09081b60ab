"""Studies that the tests run; functions stand in a module so that any process can unpickle them."""

import numpy as np

import linkwise as lw
from bench.robots import ROBOTS


def panda():
    robot = ROBOTS["panda"]
    model = lw.load(robot.path, locked=list(robot.locked))
    return model.with_joint_constants(damping=0.0, friction=0.0).with_parameters(["panda_link7.mass"])


def pull(t, q, v, p):
    """Towards zero, with a stiffness that differs from member to member."""
    return [-p[1] * a - 0.1 * p[1] * b for a, b in zip(q, v, strict=True)]


def speed(trajectory):
    return np.abs(trajectory.v).max(axis=(1, 2))


def panda_study(members, duration=0.05, **more):
    """Arguments of lw.ensemble."""
    import scipy.stats as st  # here: workers need it not, and it takes long to import

    inputs = {
        "q0": st.uniform(-0.5, 1.0),
        "v0": st.norm(0.0, 0.3),
        "panda_link7.mass": st.norm(1.0, 0.1),
        "stiffness": st.uniform(20.0, 80.0),
    }
    settings = {"duration": duration, "method": "rk4", "dt": 1e-3, "control": pull, "limits": "ignore"}
    return {"model": panda(), "inputs": inputs, "members": members, "seed": 11, "keep": "final", **settings, **more}


def same_bits(a, b):
    """Whether two results hold the same members, bit for bit; checksums are checked as they are read."""
    names = [*a.inputs, *a.outcomes, "status"]
    assert names == [*b.inputs, *b.outcomes, "status"]
    return all(
        x.tobytes() == y.tobytes() for name in names for x, y in zip(a.blocks(name), b.blocks(name), strict=True)
    )
