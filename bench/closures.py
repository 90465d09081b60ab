"""Closed loops beside Pinocchio's ``constraintDynamics``: ``python -m bench.closures``.

The Stewart platform and the N-four-bar, one state from Python and batches, and chains whose both ends are held or that
close to a ring beside the same chain open. Pinocchio is called state by state, as it is meant to be. Before anything is
timed, both must agree.
"""

from __future__ import annotations

import os

# Before NumPy is loaded: its BLAS must not start threads that disturb what is measured.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
from collections.abc import Sequence
from typing import Any

import numpy as np

import linkwise as lw
from bench import report
from bench.timing import Call, best_ns
from linkwise import samples

BATCH = 4096
LENGTHS = (100, 1000, 10_000)
Array = Any


class PinocchioPeer:
    """The same mechanism in Pinocchio, with point closures; joints are added depth first, as its algorithms need."""

    def __init__(self, model: lw.Model) -> None:
        import pinocchio as pin

        self.pin, self.ours = pin, model
        self.model = pin.Model()
        self.model.gravity.linear = np.array(model.gravity)
        self.ids: dict[int, int] = {-1: 0}
        self.order: list[int] = []
        self._add_children(-1)
        self.data = self.model.createData()
        self.constraints, self.constraint_data = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
        for closure in model.closures:
            constraint = self._constraint(closure)
            self.constraints.append(constraint)
            self.constraint_data.append(constraint.createData())
        pin.initConstraintDynamics(self.model, self.data, self.constraints, self.constraint_data)
        self.settings = pin.ProximalSettings(1e-12, 1e-8, 10)

    def _add_children(self, parent: int) -> None:
        pin = self.pin
        for body in self.ours.bodies:
            if body.parent != parent:
                continue
            joint = self.ours.joints[body.index]
            placement = pin.SE3(np.array(body.placement))
            number = self.model.addJoint(self.ids[parent], self._joint(joint.type), placement, joint.name)
            inertia = pin.Inertia.Zero()
            for part in body.parts:
                xx, yy, zz, xy, xz, yz = part.inertia
                moments = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
                inertia += pin.SE3(np.array(part.placement)).act(pin.Inertia(part.mass, np.array(part.com), moments))
            self.model.appendBodyToJoint(number, inertia, pin.SE3.Identity())
            self.ids[body.index] = number
            self.order.append(body.index)
            self._add_children(body.index)

    def _joint(self, joint: lw.Joint) -> Any:
        pin = self.pin
        if isinstance(joint, lw.Free):
            return pin.JointModelFreeFlyer()
        if isinstance(joint, lw.Revolute):
            return pin.JointModelRevoluteUnaligned(np.array(joint.axis))
        if isinstance(joint, lw.Prismatic):
            return pin.JointModelPrismaticUnaligned(np.array(joint.axis))
        if isinstance(joint, lw.Universal):
            return pin.JointModelUniversal(*map(float, (*joint.axis1, *joint.axis2)))
        raise TypeError(f"no counterpart of {joint!r} here")

    def _constraint(self, closure: Any) -> Any:
        pin = self.pin
        kind = {3: pin.ContactType.CONTACT_3D, 6: pin.ContactType.CONTACT_6D}[len(closure.equations)]
        a, b = (pin.SE3(np.array(p)) for p in (closure.placement_a, closure.placement_b))
        bodies = self.ids[closure.body_a], self.ids[closure.body_b]
        return pin.RigidConstraintModel(kind, self.model, bodies[0], a, bodies[1], b, pin.ReferenceFrame.LOCAL)

    def state(self, q: Array, v: Array, tau: Array) -> tuple[Array, Array, Array]:
        """Ours in its conventions: linear before angular, quaternions x y z w."""
        theirs_q, theirs_v, theirs_tau = np.zeros(self.model.nq), np.zeros(self.model.nv), np.zeros(self.model.nv)
        for index in self.order:
            joint = self.ours.joints[index]
            number = self.ids[index]
            iq, iv = self.model.idx_qs[number], self.model.idx_vs[number]
            own_q, own_v, own_tau = q[joint.q_slice], v[joint.v_slice], tau[joint.v_slice]
            if isinstance(joint.type, lw.Free):
                own_q = np.concatenate((own_q[4:], own_q[1:4], own_q[:1]))
                own_v, own_tau = (np.concatenate((x[3:], x[:3])) for x in (own_v, own_tau))
            theirs_q[iq : iq + len(own_q)] = own_q
            theirs_v[iv : iv + len(own_v)] = own_v
            theirs_tau[iv : iv + len(own_v)] = own_tau
        return theirs_q, theirs_v, theirs_tau

    def accelerations(self, vdot: Array) -> Array:
        """Theirs in our conventions."""
        ours = np.zeros(self.ours.nv)
        for index in self.order:
            joint = self.ours.joints[index]
            start = self.model.idx_vs[self.ids[index]]
            own = vdot[start : start + joint.nv]
            if isinstance(joint.type, lw.Free):
                own = np.concatenate((own[3:], own[:3]))
            ours[joint.v_slice] = own
        return ours

    def call(self, q: Array, v: Array, tau: Array) -> Array:
        """v̇ of one state, in its conventions."""
        return self.pin.constraintDynamics(
            self.model, self.data, q, v, tau, self.constraints, self.constraint_data, self.settings
        )


def closed_state(model: lw.Model, rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """A closed configuration away from neutral, a velocity that obeys the closures, and joint forces."""
    q = model.assemble(model.integrate(model.neutral(), 0.1 * rng.normal(size=model.nv)))
    return q, model.constraints.project_velocity(q, rng.normal(size=model.nv)), rng.normal(size=model.nv)


def measure(name: str, model: lw.Model, rounds: int) -> list[Any]:
    """How far the two disagree, and ns per state: one state, a batch, Pinocchio in a loop."""
    rng = np.random.default_rng(0)
    peer = PinocchioPeer(model)
    q, v, tau = closed_state(model, rng)
    theirs = peer.state(q, v, tau)
    ours, expected = model.forward_dynamics(q, v, tau), peer.accelerations(peer.call(*theirs).copy())
    disagreement = float(np.abs(ours - expected).max() / np.abs(expected).max())
    batch = [np.tile(x, (BATCH, 1)) for x in (q, v, tau)]
    out = np.empty((BATCH, model.nv))
    one, many, loop = best_ns(
        [
            Call(model.forward_dynamics, (q, v, tau)),
            Call(model.forward_dynamics, tuple(batch), {"out": out}, BATCH),
            Call(peer.call, theirs),
        ],
        rounds=rounds,
    )
    equations = sum(len(closure.equations) for closure in model.closures)
    return [name, model.nv, equations, disagreement, one, many, loop, loop / one, loop / many]


def chain(n: int, closure: str) -> lw.Model:
    """An arch of n links of 0.1 m: open, held at both ends, or closed to a ring."""
    builder = lw.ModelBuilder(closure)
    turn = np.pi / n * (2.0 if closure == "ring" else 1.0)
    hinges = lw.Revolute((0.0, 1.0, 0.0)), lw.Revolute((0.0, 0.0, 1.0))
    for i in range(n):
        parent, xyz = ("world", (0.0, 0.0, 0.0)) if i == 0 else (f"link{i - 1}", (0.1, 0.0, 0.0))
        placement = lw.transform(xyz=xyz, rpy=(0.0, turn, 0.0))
        builder.add_body(
            f"link{i}",
            parent=parent,
            joint=hinges[i % 2],
            placement=placement,
            mass=1.0,
            com=(0.05, 0.01, 0.02),
            inertia=np.diag([0.001, 0.002, 0.002]),
        )
    model = builder.build()
    if closure == "open":
        return model
    tip = f"link{n - 1}"
    where = model.pose(model.neutral(), tip)
    if closure == "ring":
        first = np.linalg.inv(model.pose(model.neutral(), "link0")) @ where
        return model.with_closure("closure", "link0", first, tip, joint=lw.Fixed())
    return model.with_closure("closure", "world", where, tip, joint=lw.Fixed())


def measure_chain(n: int, rounds: int) -> list[list[Any]]:
    """Both ends held, and a ring, beside the open chain; how far v̇ is from obeying the closure."""
    rows = []
    for closure in ("held", "ring"):
        model, open_chain = chain(n, closure), chain(n, "open")
        v = model.constraints.project_velocity(model.neutral(), 0.01 * np.random.default_rng(0).normal(size=n))
        state = model.neutral(), v, np.zeros(n)
        J, bias = model.constraints.jacobian(state[0]), model.constraints.bias(*state[:2])
        vdot = model.forward_dynamics(*state)
        left = (
            float(np.abs(J @ vdot + bias).max() / np.abs(J @ np.diag(np.abs(vdot))).sum(1).max()) if n <= 1000 else None
        )
        closed, opened = best_ns(
            [Call(model.forward_dynamics, state), Call(open_chain.forward_dynamics, state)], rounds=rounds
        )
        rows.append([f"{closure}, {n} links", closed / n, opened / n, closed / opened, left])
    return rows


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the tables and write the numbers to ``bench/results/``."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=30)
    options = parser.parse_args(arguments)
    ball = lw.Spherical()
    mechanisms = {"Stewart platform": samples.stewart_platform()}
    mechanisms |= {f"N-four-bar, N = {n}": samples.four_bar(n, ball) for n in (1, 2, 10, 40)}
    rows = [measure(name, model, options.rounds) for name, model in mechanisms.items()]
    times = ["one state ns", "batch ns", "Pinocchio ns", "ratio, one", "ratio, batch"]
    print(report.table(["", "nv", "equations", "disagreement", *times], rows))
    chains = [row for n in LENGTHS for row in measure_chain(n, options.rounds)]
    print()
    print(report.table(["chain", "ns per link", "open, ns per link", "ratio", "left of J v̇ + bias"], chains))
    path = report.write("closures", {"mechanisms": rows, "chains": chains})
    print(f"\nwritten to {path}")


if __name__ == "__main__":
    main()
