"""Pinocchio's answers in our conventions.

Pinocchio puts linear before angular, [x, y, z, w] in quaternions, (cos, sin) for joints without limits, and sorts
children by name; joints that follow others enter through the matrix G of v_independent = G v. All of that is in two
maps: ``q`` of ours to theirs, and a constant matrix ``A`` with v_theirs = A v. Then M = A* M_theirs A, and so on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pinocchio as pin

import linkwise as lw
from linkwise.joints.directions import turn_z_to

Array = np.ndarray[Any, Any]
SWAP = np.array([3, 4, 5, 0, 1, 2])  # linear first <-> angular first
_IDENTITY = pin.SE3.Identity()


@dataclass(frozen=True)
class _Joint:
    """One of our joints over there: its number, our body's frame in its child frame, our joint frame in its own."""

    index: int
    ours: Any
    to_body: Any
    from_joint: Any = _IDENTITY


class Oracle:
    """Answers for one model, one state at a time."""

    def __init__(self, model: lw.Model, theirs: Any, joints: list[_Joint], names: dict[str, str] | None = None) -> None:
        self.model, self.theirs, self.joints = model, theirs, joints
        self.data = theirs.createData()
        self.has_mimics = any(j.ours.mimic for j in joints)
        self.A = np.zeros((theirs.nv, model.nv))
        for joint in joints:
            own = joint.ours
            scale = own.mimic.multiplier if own.mimic else 1.0
            at = theirs.joints[joint.index].idx_v
            block = _velocity_block(own.type, joint.to_body) * scale
            self.A[at : at + own.nv, own.v_slice] += block
        self.theirs.armature = self._armature()

    def _armature(self) -> Array:
        values = np.zeros(self.theirs.nv)
        for joint in self.joints:
            at, own = self.theirs.joints[joint.index].idx_v, joint.ours
            values[at : at + own.nv] = np.abs(_velocity_block(own.type, _IDENTITY)) @ own.armature
        return values

    def q(self, q: Array) -> Array:
        out = pin.neutral(self.theirs)
        for joint in self.joints:
            own, theirs = joint.ours, self.theirs.joints[joint.index]
            x = np.asarray(q, float)[own.q_slice]
            if own.mimic:
                x = own.mimic.multiplier * x + own.mimic.offset
            out[theirs.idx_q : theirs.idx_q + theirs.nq] = _coordinates(own.type, x, theirs, joint)
        return out

    # The quantities, under the names of our methods.
    def inverse_dynamics(self, q: Array, v: Array, vdot: Array, f_ext: Array | None = None) -> Array:
        forces = self._forces(f_ext)
        more = () if forces is None else (forces,)
        return self.A.T @ pin.rnea(self.theirs, self.data, self.q(q), self.A @ v, self.A @ vdot, *more)

    def joint_wrenches(self, q: Array, v: Array, vdot: Array, f_ext: Array | None = None) -> Array:
        self.inverse_dynamics(q, v, vdot, f_ext)
        return np.array([j.to_body.actInv(self.data.f[j.index]).vector[SWAP] for j in self.joints])

    def forward_dynamics(self, q: Array, v: Array, tau: Array, f_ext: Array | None = None) -> Array:
        if self.has_mimics:
            return np.linalg.solve(self.mass_matrix(q), tau - self.bias_force(q, v, f_ext))
        forces = self._forces(f_ext)
        more = () if forces is None else (forces,)
        A_inverse = np.linalg.inv(self.A)
        return A_inverse @ pin.aba(self.theirs, self.data, self.q(q), self.A @ v, A_inverse.T @ tau, *more)

    def bias_force(self, q: Array, v: Array, f_ext: Array | None = None) -> Array:
        return self.inverse_dynamics(q, v, np.zeros(self.model.nv), f_ext)

    def gravity_force(self, q: Array) -> Array:
        return self.A.T @ pin.computeGeneralizedGravity(self.theirs, self.data, self.q(q))

    def mass_matrix(self, q: Array) -> Array:
        M = np.triu(np.array(pin.crba(self.theirs, self.data, self.q(q))).reshape(self.theirs.nv, -1))
        return self.A.T @ (M + np.triu(M, 1).T) @ self.A

    def poses(self, q: Array) -> Array:
        pin.forwardKinematics(self.theirs, self.data, self.q(q))
        return np.array([(self.data.oMi[j.index] * j.to_body).homogeneous for j in self.joints])

    def pose(self, q: Array, body: str) -> Array:
        return self.poses(q)[self.model.bodies[body].index]

    def jacobian(self, q: Array, body: str) -> Array:
        joint = self.joints[self.model.bodies[body].index]
        pin.computeJointJacobians(self.theirs, self.data, self.q(q))
        J = pin.getJointJacobian(self.theirs, self.data, joint.index, pin.LOCAL_WORLD_ALIGNED)
        arm = self.data.oMi[joint.index].rotation @ joint.to_body.translation
        J = np.array(J).reshape(6, -1)
        J[:3] += np.cross(J[3:], arm, axisa=0, axisb=0, axisc=0)
        return J[SWAP] @ self.A

    def velocity(self, q: Array, v: Array, body: str) -> Array:
        return self.jacobian(q, body) @ v

    def kinetic_energy(self, q: Array, v: Array) -> float:
        # Pinocchio 4.1 forgets the rotors of some joint types (helical about any axis): they are added here.
        v, rotors = self.A @ v, self.theirs.armature.copy()
        self.theirs.armature = 0.0 * rotors
        energy = float(pin.computeKineticEnergy(self.theirs, self.data, self.q(q), v))
        self.theirs.armature = rotors
        return energy + 0.5 * float(rotors @ v**2)

    def potential_energy(self, q: Array) -> float:
        return float(pin.computePotentialEnergy(self.theirs, self.data, self.q(q)))

    def center_of_mass(self, q: Array) -> Array:
        return pin.centerOfMass(self.theirs, self.data, self.q(q)).copy()

    def centroidal_momentum(self, q: Array, v: Array) -> Array:
        pin.computeCentroidalMomentum(self.theirs, self.data, self.q(q), self.A @ v)
        return self.data.hg.vector[SWAP]

    def momentum(self, q: Array, v: Array) -> Array:
        h = self.centroidal_momentum(q, v)
        com = self.center_of_mass(q)
        return np.concatenate([h[:3] + np.cross(com, h[3:]), h[3:]])

    def centroidal_momentum_matrix(self, q: Array) -> Array:
        A_G = np.array(pin.computeCentroidalMap(self.theirs, self.data, self.q(q))).reshape(6, -1)
        return A_G[SWAP] @ self.A

    def _forces(self, f_ext: Array | None) -> Any:
        if f_ext is None:
            return None
        forces = [pin.Force.Zero() for _ in range(self.theirs.njoints)]
        for joint, f in zip(self.joints, f_ext, strict=True):
            forces[joint.index] = joint.to_body.act(pin.Force(np.asarray(f, float)[SWAP]))
        return forces


def _velocity_block(kind: lw.Joint, to_body: Any) -> Array:
    """Their velocity of a joint from ours; the free joint's at the origin of our body."""
    if isinstance(kind, lw.Planar):
        return np.eye(3)[[1, 2, 0]]
    if isinstance(kind, lw.Free):
        return to_body.toActionMatrix() @ np.eye(6)[SWAP]
    return np.eye(kind.nv)


def _coordinates(kind: lw.Joint, x: Array, theirs: Any, joint: _Joint) -> Array:
    if isinstance(kind, lw.Spherical):
        return np.roll(x / np.linalg.norm(x), -1)
    if isinstance(kind, lw.Free):
        pose = pin.SE3(pin.Quaternion(np.roll(x[:4] / np.linalg.norm(x[:4]), -1)), x[4:])
        return np.array(pin.SE3ToXYZQUAT(joint.from_joint * pose * joint.to_body.inverse()))
    if isinstance(kind, lw.Planar):
        return np.array([x[1], x[2], np.cos(x[0]), np.sin(x[0])])
    if theirs.nq == 2 and kind.nq == 1:
        return np.array([np.cos(x[0]), np.sin(x[0])])
    return x


def from_urdf(model: lw.Model, file: Path, *, floating: bool) -> Oracle:
    """Pinocchio's own reading of the file; joints are paired by name, those that we do not have are held."""
    root = (pin.JointModelFreeFlyer(),) if floating else ()
    theirs = pin.buildModelFromUrdf(str(file), *root)
    ours = {joint.name for joint in model.joints}
    held = [name for name in theirs.names if name != "universe" and name not in ours]
    if held:
        q = pin.neutral(theirs)
        for name, offset in _mimic_offsets(file).items():
            if name in held:  # it follows a joint held at zero
                q[theirs.joints[theirs.getJointId(name)].idx_q] = offset
        theirs = pin.buildReducedModel(theirs, [theirs.getJointId(name) for name in held], q)
    theirs.gravity.linear = np.array(model.gravity)
    joints = []
    for body, joint in zip(model.bodies, model.joints, strict=True):
        index = theirs.getJointId(joint.name)
        frame = theirs.frames[theirs.getFrameId(body.name, pin.BODY)]
        assert frame.parentJoint == index, (body.name, joint.name)
        # Where the link "world" is the root, Pinocchio frees it, and we free the link that is fixed to it.
        place = pin.SE3(np.array(body.placement)) if body.parent < 0 and floating else _IDENTITY
        joints.append(_Joint(index, joint, frame.placement, place))
    assert len(joints) == theirs.njoints - 1
    return Oracle(model, theirs, joints)


def _mimic_offsets(file: Path) -> dict[str, float]:
    joints = ElementTree.fromstring(file.read_bytes()).iter("joint")
    found = {joint.get("name", ""): joint.find("mimic") for joint in joints}
    return {name: float(mimic.get("offset", 0)) for name, mimic in found.items() if mimic is not None}


def from_model(model: lw.Model) -> Oracle:
    """The same mechanism put together over there, joint by joint."""
    theirs = pin.Model()
    theirs.gravity.linear = np.array(model.gravity)
    made: dict[int, _Joint] = {}
    for body in _depth_first(model):  # Pinocchio's composite bodies need every subtree in one piece
        joint = model.joints[body.index]
        kind = joint.type
        parent = made[body.parent] if body.parent >= 0 else None
        place = pin.SE3(np.array(body.placement))
        if parent is not None:
            place = parent.to_body * place
        turned = turn_z_to(np.array(kind.axis)) if isinstance(kind, lw.Planar) else np.eye(3)
        index = theirs.addJoint(
            0 if parent is None else parent.index,
            _joint_model(kind),
            place * pin.SE3(turned, np.zeros(3)),
            joint.name,
        )
        to_body = pin.SE3(turned.T, np.zeros(3))
        for part in body.parts:
            xx, yy, zz, xy, xz, yz = part.inertia
            inertia = pin.Inertia(part.mass, np.array(part.com), np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]))
            theirs.appendBodyToJoint(index, inertia, to_body * pin.SE3(np.array(part.placement)))
        made[body.index] = _Joint(index, joint, to_body)
    return Oracle(model, theirs, [made[body.index] for body in model.bodies])


def _depth_first(model: lw.Model, parent: int = -1) -> Iterator[Any]:
    for body in model.bodies:
        if body.parent == parent:
            yield body
            yield from _depth_first(model, body.index)


def _joint_model(kind: lw.Joint) -> Any:
    axis = np.array(kind.axis if kind.axis is not None else (0.0, 0.0, 1.0))
    if isinstance(kind, lw.Revolute):
        return pin.JointModelRevoluteUnaligned(axis)
    if isinstance(kind, lw.Prismatic):
        return pin.JointModelPrismaticUnaligned(axis)
    if isinstance(kind, lw.Helical):
        return pin.JointModelHelicalUnaligned(axis, kind.pitch)
    if isinstance(kind, lw.Planar):
        return pin.JointModelPlanar()
    if isinstance(kind, lw.Spherical):
        return pin.JointModelSpherical()
    if isinstance(kind, lw.Free):
        return pin.JointModelFreeFlyer()
    if isinstance(kind, lw.Cylindrical):
        pair = pin.JointModelRevoluteUnaligned(axis), pin.JointModelPrismaticUnaligned(axis)
    elif isinstance(kind, lw.Universal):
        axis1, axis2 = np.array(kind.axis1), np.array(kind.axis2)
        if abs(axis1 @ axis2) < 1e-15:
            return pin.JointModelUniversal(axis1, axis2)
        pair = pin.JointModelRevoluteUnaligned(axis1), pin.JointModelRevoluteUnaligned(axis2)
    else:
        raise TypeError(f"Pinocchio has no {type(kind).__name__}")
    both = pin.JointModelComposite(pair[0])
    both.addJoint(pair[1])
    return both
