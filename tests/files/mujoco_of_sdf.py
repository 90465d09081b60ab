"""An SDF file to a MuJoCo model, by another way: ElementTree, SciPy's rotations, MuJoCo's own joints.

Only the tree is taken from our model (which joint carries which link); every number is read from the file again.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import linkwise as lw


def matrix(element: ET.Element | None) -> np.ndarray:
    X = np.eye(4)
    if element is not None and (element.text or "").strip():
        numbers = [float(word) for word in (element.text or "").split()]
        X[:3, 3] = numbers[:3]
        X[:3, :3] = Rotation.from_euler("xyz", numbers[3:]).as_matrix()
    return X


@dataclass
class Oracle:
    """A MuJoCo model of the tree, with the joints in MuJoCo's order."""

    model: Any
    data: Any
    ours: lw.Model
    axes: dict[str, np.ndarray] = field(default_factory=dict)
    """For a ball: the joint's axes in the body's, in which MuJoCo writes its velocity."""

    def to_theirs(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        import mujoco

        qpos, qvel = np.zeros(self.model.nq), np.zeros(self.model.nv)
        for joint in self.ours.joints:
            part_q, part_v = q[joint.q_slice], v[joint.v_slice]
            if joint.nq == 4:
                R = self.axes[joint.name]
                turn = Rotation.from_quat(np.roll(part_q, -1)).as_matrix()
                part_q = np.roll(Rotation.from_matrix(R @ turn @ R.T).as_quat(), 1)
                part_v = R @ part_v
            first = mujoco.mj_name2id(self.model, mujoco.mjtObj.mjOBJ_JOINT, f"{joint.name}/0")
            start_q, start_v = self.model.jnt_qposadr[first], self.model.jnt_dofadr[first]
            qpos[start_q : start_q + len(part_q)] = part_q
            qvel[start_v : start_v + len(part_v)] = part_v
        return qpos, qvel

    def columns(self) -> np.ndarray:
        """C with v of MuJoCo = C v of ours."""
        zero = self.ours.neutral()
        return np.column_stack([self.to_theirs(zero, unit)[1] for unit in np.eye(self.ours.nv)])

    def mass_matrix_and_bias(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        import mujoco

        self.data.qpos[:], self.data.qvel[:] = self.to_theirs(q, v)
        mujoco.mj_forward(self.model, self.data)
        M = np.zeros((self.model.nv, self.model.nv))
        mujoco.mj_fullM(self.model, self.data, M)
        C = self.columns()
        return C.T @ M @ C, C.T @ self.data.qfrc_bias

    def pose(self, body: str) -> np.ndarray:
        found = self.data.body(body)
        X = np.eye(4)
        X[:3, :3], X[:3, 3] = found.xmat.reshape(3, 3), found.xpos
        return X


def oracle(file: Path | str, ours: lw.Model) -> Oracle:
    """For files whose poses are all relative to what they are by default."""
    mujoco = pytest.importorskip("mujoco")
    root = ET.parse(file).getroot() if isinstance(file, Path) else ET.fromstring(file)
    model = root.find(".//model")
    assert model is not None
    X_model = matrix(model.find("pose"))
    links = {str(link.get("name")): link for link in model.findall("link")}
    joints = {str(joint.get("name")): joint for joint in model.findall("joint")}
    X = {name: X_model @ matrix(link.find("pose")) for name, link in links.items()}
    X["world"] = np.eye(4)
    carried = {body.name: (ours.joints[body.index].name, body.parent) for body in ours.bodies}
    welded = {frame.name: frame.body for frame in ours.frames if frame.name in links}

    spec = mujoco.MjSpec()
    spec.compiler.balanceinertia = True  # placeholders; the true ones are written afterwards
    spec.option.gravity = ours.gravity
    made: dict[str, Any] = {"world": spec.worldbody}
    axes: dict[str, np.ndarray] = {}
    pending = list(links)
    while pending:
        name = pending.pop(0)
        parent_index = carried[name][1] if name in carried else welded[name]
        parent = "world" if parent_index < 0 else ours.bodies[parent_index].name
        if parent not in made:
            pending.append(name)
            continue
        local = np.linalg.inv(X[parent]) @ X[name]
        quat = np.roll(Rotation.from_matrix(local[:3, :3]).as_quat(), 1)
        body = made[parent].add_body(name=name, pos=local[:3, 3], quat=quat, mass=1.0, inertia=[1, 1, 1])
        body.explicitinertial = True
        made[name] = body
        if name in carried and carried[name][0] in joints:
            joint = joints[carried[name][0]]
            at = X[str(joint.findtext("child"))] @ matrix(joint.find("pose"))
            sign = 1.0 if joint.findtext("child") == name else -1.0
            in_body = np.linalg.inv(X[name]) @ at
            _add_joints(mujoco, body, joint, in_body, sign, X_model, at, str(root.get("version")))
            axes[str(joint.get("name"))] = in_body[:3, :3]
        elif name in carried:
            raise AssertionError(f"{name} has no joint in the file")
    compiled = spec.compile()
    for name, link in links.items():
        k = mujoco.mj_name2id(compiled, mujoco.mjtObj.mjOBJ_BODY, name)
        inertial = link.find("inertial")
        if inertial is None:
            continue
        at = matrix(inertial.find("pose"))
        six = {
            tag: float(inertial.findtext(f"inertia/{tag}") or 0) for tag in ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")
        }
        I = np.array([[six["ixx"], six["ixy"], six["ixz"]], [six["ixy"], six["iyy"], six["iyz"]],
                      [six["ixz"], six["iyz"], six["izz"]]])  # fmt: skip
        moments, R = np.linalg.eigh(I)
        R *= np.sign(np.linalg.det(R))
        compiled.body_mass[k] = float(inertial.findtext("mass") or 0)
        compiled.body_ipos[k] = at[:3, 3]
        compiled.body_iquat[k] = np.roll(Rotation.from_matrix(at[:3, :3] @ R).as_quat(), 1)
        compiled.body_inertia[k] = moments
    data = mujoco.MjData(compiled)
    mujoco.mj_setConst(compiled, data)
    return Oracle(compiled, data, ours, axes)


def _add_joints(
    mujoco: Any, body: Any, joint: ET.Element, in_body: np.ndarray, sign: float, X_model: np.ndarray, at: np.ndarray,
    version: str,
) -> None:  # fmt: skip
    kinds = {
        "revolute": ["hinge"], "continuous": ["hinge"], "prismatic": ["slide"], "ball": ["ball"],
        "universal": ["hinge", "hinge"], "revolute2": ["hinge", "hinge"], "piston": ["hinge", "slide"],
    }  # fmt: skip
    types = {
        "hinge": mujoco.mjtJoint.mjJNT_HINGE,
        "slide": mujoco.mjtJoint.mjJNT_SLIDE,
        "ball": mujoco.mjtJoint.mjJNT_BALL,
    }
    for i, kind in enumerate(kinds[str(joint.get("type"))]):
        axis = joint.find("axis" if i == 0 or joint.get("type") == "piston" else "axis2")
        xyz = np.array([float(word) for word in (axis.findtext("xyz") if axis is not None else "0 0 1").split()])  # type: ignore[union-attr]
        in_model = version == "1.4" or (axis is not None and axis.findtext("use_parent_model_frame") in ("1", "true"))
        if in_model:
            xyz = at[:3, :3].T @ X_model[:3, :3] @ xyz
        body.add_joint(
            name=f"{joint.get('name')}/{i}", type=types[kind], pos=in_body[:3, 3], axis=sign * in_body[:3, :3] @ xyz
        )


def agree(file: Path | str, ours: lw.Model, seed: int = 0, count: int = 5) -> Oracle:
    """Mass matrix, bias and poses at random states."""
    theirs = oracle(file, ours)
    assert theirs.model.nv == ours.nv
    rng = np.random.default_rng(seed)
    for _ in range(count):
        q, v = ours.random_configuration(rng), rng.normal(size=ours.nv)
        M, bias = theirs.mass_matrix_and_bias(q, v)
        scale = abs(M).max()
        np.testing.assert_allclose(ours.mass_matrix(q), M, rtol=1e-9, atol=1e-11 * scale)
        open_bias = ours.bias_force(q, v)
        np.testing.assert_allclose(open_bias, bias, rtol=1e-8, atol=1e-10 * max(1.0, abs(bias).max()))
        for body, X in zip(ours.bodies, ours.poses(q), strict=True):
            np.testing.assert_allclose(X, theirs.pose(body.name), atol=1e-11)
    return theirs
