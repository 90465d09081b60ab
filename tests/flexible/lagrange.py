"""Lagrange's equations of a tree of flexible and rigid bodies, assembled densely from energies: no recursion, no φ.

Only revolute, prismatic and fixed joints, so that v = q̇. A configuration is given body by body as (η, joint), and a
model's q is those one after the other. Every body's T is that of `FlexibleBody.integrals` (checked elsewhere against
particles) or of a rigid body; velocities come from central differences of poses, of eighth order.
"""

import numpy as np
from scipy.spatial.transform import Rotation

import linkwise as lw

_WEIGHTS = ((1, 4 / 5), (2, -1 / 5), (3, 4 / 105), (4, -1 / 280))


def reach(model):
    """For each coordinate a step that moves and turns no node by more than some hundredths."""
    steps = np.full(model.nv, 0.02)
    for body in model.bodies:
        if body.flexible is not None:
            most = [np.vstack([np.abs(node.Gamma), np.abs(node.Lambda)]).max(axis=0) for node in body.flexible.nodes]
            steps[body.v_slice] = 0.02 / np.max(most, axis=0)
    return steps


def slope(model, function, x, direction):
    """The derivative along a direction by central differences of eighth order."""
    h = 1.0 / (np.abs(direction) / reach(model)).max()
    return sum(w * (function(x + k * h * direction) - function(x - k * h * direction)) for k, w in _WEIGHTS) / h


def node_pose(flexible, key, eta):
    """4×4 of a node in its root's frame: r⁰ + Γη + ½η*Qη, turned by Cayley's rotation of Λη."""
    node = flexible.node(key)
    X = np.eye(4)
    X[:3, 3] = node.position + node.Gamma @ eta + 0.5 * (node.Q @ eta) @ eta
    c = 0.5 * node.Lambda @ eta
    k = np.array([[0, -c[2], c[1]], [c[2], 0, -c[0]], [-c[1], c[0], 0]])
    X[:3, :3] = np.eye(3) + 2.0 / (1.0 + c @ c) * (k + k @ k)
    return X


class Dense:
    """A model's mass matrix and forces from T and U."""

    def __init__(self, model):
        self.model = model

    def coordinates(self, q, body):
        joint = self.model.joints[body.index]
        return q[body.q_slice], q[joint.q_slice]

    def poses(self, q):
        """4×4 of every body, and of the nodes that parts are welded to."""
        out = []
        for body in self.model.bodies:
            X = np.eye(4) if body.parent < 0 else out[body.parent]
            parent = None if body.parent < 0 else self.model.bodies[body.parent]
            if parent is not None and parent.flexible is not None:
                key = parent.flexible.nodes[body.node].key
                X = X @ node_pose(parent.flexible, key, q[parent.q_slice])
            joint = self.model.joints[body.index].type
            _, turn = self.coordinates(q, body)
            move = np.eye(4)
            if isinstance(joint, lw.Revolute):
                move[:3, :3] = Rotation.from_rotvec(np.array(joint.axis) * turn[0]).as_matrix()
            elif isinstance(joint, lw.Prismatic):
                move[:3, 3] = np.array(joint.axis) * turn[0]
            out.append(X @ np.array(body.placement) @ move @ np.linalg.inv(np.array(body.joint_frame)))
        return out

    def pieces(self, q):
        """For each piece with mass: its 4×4 pose, its η's place in q, and its (m + 6)² mass matrix."""
        found = []
        for body, X in zip(self.model.bodies, self.poses(q), strict=True):
            if body.flexible is not None:
                found.append((X, body.v_slice, body.flexible.integrals.mass_matrix(q[body.q_slice])))
            for part in body.parts:
                if part.mass:
                    at = X
                    if body.flexible is not None:
                        at = X @ node_pose(body.flexible, body.flexible.nodes[part.node].key, q[body.q_slice])
                    found.append((at @ np.array(part.placement), slice(0, 0), rigid(part)))
        return found

    def piece_poses(self, q):
        return np.array([X for X, _, _ in self.pieces(q)])

    def mass_matrix(self, q):
        n = self.model.nv
        columns = [slope(self.model, self.piece_poses, q, unit) for unit in np.eye(n)]
        M = np.zeros((n, n))
        for k, (X, modes, own) in enumerate(self.pieces(q)):
            m = modes.stop - modes.start
            J = np.zeros((m + 6, n))
            J[:m, modes] = np.eye(m)
            for j in range(n):
                W = X[:3, :3].T @ columns[j][k][:3, :3]
                J[m:, j] = W[2, 1], W[0, 2], W[1, 0], *(X[:3, :3].T @ columns[j][k][:3, 3])
            M += J.T @ own @ J
        return M

    def kinetic_energy(self, q, v):
        """From the poses' rates along v alone."""
        rates = slope(self.model, self.piece_poses, q, v)
        total = 0.0
        for (X, modes, own), rate in zip(self.pieces(q), rates, strict=True):
            W = X[:3, :3].T @ rate[:3, :3]
            x = np.array([*v[modes], W[2, 1], W[0, 2], W[1, 0], *(X[:3, :3].T @ rate[:3, 3])])
            total += 0.5 * x @ own @ x
        return total

    def potential_energy(self, q):
        total = 0.0
        for X, modes, own in self.pieces(q):
            m = modes.stop - modes.start
            mass = own[-1, -1]
            h = np.array([own[m + 2, m + 4], own[m, m + 5], own[m + 1, m + 3]])  # of h~ in the block [ω, v]
            total -= np.array(self.model.gravity) @ (mass * X[:3, 3] + X[:3, :3] @ h)
        for body in self.model.bodies:
            if body.flexible is not None:
                eta = q[body.q_slice]
                total += 0.5 * eta @ body.flexible.stiffness @ eta
        return total

    def damping_force(self, v):
        f = np.zeros(self.model.nv)
        for body in self.model.bodies:
            if body.flexible is not None:
                f[body.v_slice] = body.flexible.damping @ v[body.v_slice]
        return f

    def bias_force(self, q, v):
        """ṀV - ½∂(v*Mv)/∂q + ∂U/∂q + Dη̇."""
        units = np.eye(self.model.nv)
        c = slope(self.model, lambda x: self.mass_matrix(x) @ v, q, v)
        for j, unit in enumerate(units):
            c[j] -= slope(self.model, lambda x: self.kinetic_energy(x, v), q, unit)
            c[j] += slope(self.model, self.potential_energy, q, unit)
        return c + self.damping_force(v)


def rigid(part):
    c = np.array(part.com)
    h = part.mass * np.array([[0, -c[2], c[1]], [c[2], 0, -c[0]], [-c[1], c[0], 0]])
    xx, yy, zz, xy, xz, yz = part.inertia
    J = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) + part.mass * (c @ c * np.eye(3) - np.outer(c, c))
    return np.block([[J, h], [h.T, part.mass * np.eye(3)]])
