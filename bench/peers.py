"""linkwise, Pinocchio and MuJoCo behind one interface.

A library gives each quantity as a `Call` on a sample of states: its own function with its own arguments, so that the
timer sees what a user of that library would write, and no adapter stands between.

The robots of this bench have one-degree joints and a fixed base, so that q, v and τ differ between libraries by the
order of the joints only. Each adapter reorders the sample before the timed call; `in_order` reorders the results.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import DTypeLike, NDArray

from bench.robots import Robot
from bench.timing import Call

Array = NDArray[Any]

QUANTITIES = ("inverse_dynamics", "forward_dynamics", "mass_matrix")


@dataclass(frozen=True)
class Sample:
    """States of a robot: q, v and a third quantity (v̇ or τ), of shape (n,) or (batch, n), and the joints' order."""

    joints: tuple[str, ...]
    q: Array
    v: Array
    w: Array

    @classmethod
    def random(
        cls, joints: Sequence[str], batch: int | None = None, dtype: DTypeLike = np.float64, seed: int = 0
    ) -> Sample:
        """States drawn evenly from -1 to 1; without a batch, one state."""
        shape = (len(joints),) if batch is None else (batch, len(joints))
        rng = np.random.default_rng(seed)
        return cls(tuple(joints), *(rng.uniform(-1, 1, shape).astype(dtype) for _ in range(3)))

    def ordered(self, joints: Sequence[str]) -> Sample:
        """The same states with the joints in another order, each array contiguous."""
        order = [self.joints.index(name) for name in joints]
        return Sample(tuple(joints), *(np.ascontiguousarray(a[..., order]) for a in (self.q, self.v, self.w)))

    def args(self, quantity: str) -> tuple[Array, ...]:
        """The arguments that the quantity takes."""
        return (self.q,) if quantity == "mass_matrix" else (self.q, self.v, self.w)


class Peer(Protocol):
    """What a library must give to be measured."""

    name: str
    joints: tuple[str, ...]

    def single(self, quantity: str, sample: Sample) -> Call:
        """The call for one state; it returns the quantity, in the library's order of joints."""

    def batch(self, quantity: str, sample: Sample, threads: int, out: Array) -> Call | None:
        """The call for many states, or None where the library has none; it fills ``out``, of shape (batch, n)."""


class Linkwise:
    """linkwise by its public names."""

    name = "linkwise"

    def __init__(self, robot: Robot) -> None:
        import linkwise as lw

        self.model: Any = lw.load(robot.path, locked=list(robot.locked))
        self.joints = tuple(joint.name for joint in self.model.joints if joint.v_slice.stop > joint.v_slice.start)

    def single(self, quantity: str, sample: Sample) -> Call:
        args = sample.ordered(self.joints).args(quantity)
        getattr(self.model, quantity)(*args)  # the first call compiles, and puts the compiled function in its place
        return Call(getattr(self.model, quantity), args)

    def batch(self, quantity: str, sample: Sample, threads: int, out: Array) -> Call | None:
        args = sample.ordered(self.joints).args(quantity)
        return Call(getattr(self.model, quantity), args, {"threads": threads, "out": out}, states=len(sample.q))


class Pinocchio:
    """Pinocchio by its Python bindings."""

    name = "pinocchio"

    def __init__(self, robot: Robot) -> None:
        import pinocchio as pin

        self.pin: Any = pin
        model = pin.buildModelFromUrdf(str(robot.path))
        if robot.locked:
            locked = [model.getJointId(name) for name in robot.locked]
            model = pin.buildReducedModel(model, locked, pin.neutral(model))
        self.model: Any = model
        self.data: Any = model.createData()
        self.joints = tuple(model.names)[1:]  # the first is the universe

    def single(self, quantity: str, sample: Sample) -> Call:
        functions = dict(zip(QUANTITIES, (self.pin.rnea, self.pin.aba, self.pin.crba), strict=True))
        return Call(functions[quantity], (self.model, self.data, *sample.ordered(self.joints).args(quantity)))

    def batch(self, quantity: str, sample: Sample, threads: int, out: Array) -> Call | None:
        # A state is a column there: the transpose of our row-major arrays is the same memory, without a copy.
        functions = {"inverse_dynamics": "rneaInParallel", "forward_dynamics": "abaInParallel"}
        function = getattr(self.pin, functions.get(quantity, ""), None)  # absent when built without OpenMP
        if function is None:
            return None
        columns = [a.T for a in sample.ordered(self.joints).args(quantity)]
        pool = self.pin.ModelPool(self.model, threads)
        return Call(function, (threads, pool, *columns, out.T), states=len(sample.q))


class Mujoco:
    """MuJoCo by its Python bindings, with all that is not rigid-body dynamics switched off.

    Its functions fill a data object, so a call is: write the state, run, read the result.
    """

    name = "mujoco"

    def __init__(self, robot: Robot) -> None:
        import mujoco

        self.mujoco: Any = mujoco
        self.model: Any = mujoco.MjModel.from_xml_string(_bare_urdf(robot))
        self.model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT | mujoco.mjtDisableBit.mjDSBL_CONTACT
        self.data: Any = mujoco.MjData(self.model)
        self.joints = tuple(self.model.joint(k).name for k in range(self.model.njnt))

    def single(self, quantity: str, sample: Sample) -> Call:
        return Call(getattr(self, f"_{quantity}"), sample.ordered(self.joints).args(quantity))

    def batch(self, quantity: str, sample: Sample, threads: int, out: Array) -> Call | None:
        return None  # its batches are whole simulations

    def _inverse_dynamics(self, q: Array, v: Array, vdot: Array) -> Array:
        data = self.data
        data.qpos, data.qvel, data.qacc = q, v, vdot
        self.mujoco.mj_inverse(self.model, data)
        return data.qfrc_inverse.copy()  # type: ignore[no-any-return]

    def _forward_dynamics(self, q: Array, v: Array, tau: Array) -> Array:
        data = self.data
        data.qpos, data.qvel, data.qfrc_applied = q, v, tau
        self.mujoco.mj_forward(self.model, data)
        return data.qacc.copy()  # type: ignore[no-any-return]

    def _mass_matrix(self, q: Array) -> Array:
        mujoco, model, data = self.mujoco, self.model, self.data
        data.qpos = q
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        mujoco.mj_makeM(model, data)
        M = np.empty((model.nv, model.nv))
        mujoco.mj_fullM(model, data, M)
        return M


PEERS: dict[str, type[Linkwise] | type[Pinocchio] | type[Mujoco]] = {
    peer.name: peer for peer in (Linkwise, Pinocchio, Mujoco)
}


def in_order(peer: Peer, quantity: str, value: Array, sample: Sample) -> Array:
    """What a library returned, with the joints in the sample's order: to see that the libraries agree."""
    order = [peer.joints.index(name) for name in sample.joints]
    if quantity != "mass_matrix":
        return value[..., order]
    upper = np.triu(value)  # Pinocchio fills the upper triangle only
    return (upper + np.triu(value, 1).T)[np.ix_(order, order)]


def _bare_urdf(robot: Robot) -> str:
    """The file without shapes, joint friction and mimicry, which MuJoCo would honour and the comparison leaves out."""
    root = ET.parse(robot.path).getroot()
    for parent, tags in (("link", ("visual", "collision")), ("joint", ("dynamics", "mimic"))):
        for element in root.findall(parent):
            for tag in tags:
                for unwanted in element.findall(tag):
                    element.remove(unwanted)
            if element.get("name") in robot.locked:
                element.set("type", "fixed")
    return ET.tostring(root, encoding="unicode")
