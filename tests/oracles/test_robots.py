"""Every robot of example-robot-data against Pinocchio, on a fixed or on a floating base; the other one is slow.

The numbers of every file are checked twice: by running the algorithm texts on floats (cheap, so with all functions),
and through compiled kernels, in a batch and one state at a time. Angles are taken as the files write them
(angle_snap=0), so that both libraries have the same mechanism to the last digit.
"""

from __future__ import annotations

import math
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from tests.catalogue_methods import method_of
from tests.files.recording import robot_file, robot_files
from tests.oracles import robots
from tests.oracles.eager import Eager, relative_error
from tests.random_trees import random_state

pin = pytest.importorskip("pinocchio")

from tests.oracles.pinocchio_oracle import Oracle, from_urdf  # noqa: E402

EXACT = 1e-11
SOLVED = 1e-9

both_bases = pytest.mark.parametrize("floating", [False, True], ids=["fixed", "floating"])
every_file = pytest.mark.parametrize("file", robots.parameters())
on_one_base = pytest.mark.parametrize(("file", "floating"), robots.on_one_base())


def rng_of(file: Path, floating: bool) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(f"{file.name} {floating}".encode()))


def check(name: str, ours: Any, expected: Any, tolerance: float = EXACT) -> None:
    error = relative_error(ours, expected)
    assert error < tolerance, f"{name}: relative error {error:.2e}"


def some_bodies(model: lw.Model) -> list[str]:
    """The last body, and one in the middle."""
    return [model.bodies[k].name for k in sorted({len(model.bodies) // 2, len(model.bodies) - 1})]


def test_all_files_are_here() -> None:
    assert len(robot_files()) == 77
    assert set(robots.REFUSED) | set(robots.OPTIONS) <= {file.name for file in robot_files()}


@pytest.mark.parametrize("name", sorted(robots.REFUSED))
def test_files_that_are_no_mechanism(name: str) -> None:
    with pytest.raises(lw.errors.ModelFileError, match=robots.REFUSED[name]):
        lw.load(robot_file(name))
    with pytest.raises(ValueError):
        pin.buildModelFromUrdf(str(robot_file(name)))


@pytest.mark.parametrize("name", sorted(robots.MESSAGES))
def test_files_that_need_an_option(name: str) -> None:
    with pytest.raises(lw.errors.ModelFileError, match=robots.MESSAGES[name]):
        lw.load(robot_file(name))
    assert robots.load(robot_file(name), floating=False).nv > 0


@pytest.mark.parametrize("name", robots.MASSLESS)
def test_joints_that_move_no_mass(name: str) -> None:
    """Kinematics and inverse dynamics are those of Pinocchio; forward dynamics names the joint."""
    file = robot_file(name)
    with pytest.warns(lw.errors.ModelWarning, match="nothing that it moves has mass") as caught:
        model = lw.load(file, angle_snap=0.0, mimic=False)
    assert sum("nothing that it moves" in str(each.message) for each in caught) == 1
    oracle, eager, rng = from_urdf(model, file, floating=False), Eager(model), np.random.default_rng(0)
    q, v, vdot = random_state(model, rng)
    check("inverse_dynamics", eager.inverse_dynamics(q, v, vdot), oracle.inverse_dynamics(q, v, vdot))
    check("mass_matrix", eager.mass_matrix(q), oracle.mass_matrix(q))
    with pytest.raises(lw.ModelError, match="moves no inertia"):
        model.forward_dynamics(q, v, vdot)


@on_one_base
def test_texts_on_floats(file: Path, floating: bool) -> None:
    model = robots.load(file, floating=floating, angle_snap=0.0)
    oracle, eager, rng = from_urdf(model, file, floating=floating), Eager(model), rng_of(file, floating)
    if model.nv == 0:
        return
    q, v, vdot = random_state(model, rng)
    tau, f_ext = rng.normal(size=model.nv), rng.normal(size=(len(model.bodies), 6))
    check("inverse_dynamics", eager.inverse_dynamics(q, v, vdot), oracle.inverse_dynamics(q, v, vdot))
    with_forces = eager.inverse_dynamics(q, v, vdot, f_ext=f_ext)
    check("inverse_dynamics with f_ext", with_forces, oracle.inverse_dynamics(q, v, vdot, f_ext))
    check_solved(oracle, q, eager.forward_dynamics(q, v, tau), oracle.forward_dynamics(q, v, tau))
    solved = eager.forward_dynamics(q, v, tau, f_ext=f_ext)
    check_solved(oracle, q, solved, oracle.forward_dynamics(q, v, tau, f_ext))
    M = oracle.mass_matrix(q)
    check("mass_matrix", eager.mass_matrix(q), M)
    check("gravity_force", eager.gravity_force(q), oracle.gravity_force(q))
    check("poses", eager.poses(q), oracle.poses(q))
    for body in some_bodies(model):
        check("jacobian", eager.jacobian(q, body=body), oracle.jacobian(q, body))
        check("velocity", eager.velocity(q, v, body=body), oracle.velocity(q, v, body))
    check("kinetic_energy", eager.kinetic_energy(q, v), oracle.kinetic_energy(q, v))
    check("potential_energy", eager.potential_energy(q), oracle.potential_energy(q))
    check("center_of_mass", eager.center_of_mass(q), oracle.center_of_mass(q))
    check("momentum", eager.momentum(q, v), oracle.momentum(q, v))
    check("centroidal_momentum", eager.centroidal_momentum(q, v), oracle.centroidal_momentum(q, v))
    A = oracle.centroidal_momentum_matrix(q)
    check("centroidal_momentum_matrix", eager.centroidal_momentum_matrix(q), A)


def solved(M: Any) -> float:
    """What accelerations may differ by. The iCub has point masses near a joint's axis: condition numbers of 5e10."""
    return max(SOLVED, 1e-17 * float(np.linalg.cond(M).max()))


def check_solved(oracle: Oracle, q: Any, ours: Any, expected: Any) -> None:
    """Accelerations agree, and the forces that their difference stands for are rounding."""
    M = oracle.mass_matrix(q)
    check("forward_dynamics", ours, expected, solved(M))
    check("M forward_dynamics", M @ ours, M @ expected, 1e-10)


def states(model: lw.Model, rng: np.random.Generator, n: int) -> tuple[Any, ...]:
    q, v, vdot = random_state(model, rng, (n,))
    return q, v, vdot, rng.normal(size=vdot.shape)


def each(function: Any, *arrays: Any, **more: Any) -> Any:
    return np.array([function(*state, **more) for state in zip(*arrays, strict=True)])


@on_one_base
def test_compiled_dynamics(file: Path, floating: bool) -> None:
    model = robots.load(file, floating=floating, angle_snap=0.0)
    oracle, rng = from_urdf(model, file, floating=floating), rng_of(file, floating)
    q, v, vdot, tau = states(model, rng, 5)
    if model.nv == 0:
        assert model.inverse_dynamics(q, v, vdot).shape == model.forward_dynamics(q, v, tau).shape == (5, 0)
        return
    if not floating:  # one function for each base keeps this short; all of them are under `slow`
        function, expected = model.function("inverse_dynamics"), each(oracle.inverse_dynamics, q, v, vdot)
        check("inverse_dynamics, batch", function.general(q, v, vdot), expected)
        check("inverse_dynamics, one", function(q[3], v[3], vdot[3]), expected[3])
        return
    function, expected = model.function("forward_dynamics"), each(oracle.forward_dynamics, q, v, tau)
    bound = solved(each(oracle.mass_matrix, q))
    check("forward_dynamics, batch", function.general(q, v, tau), expected, bound)
    check("forward_dynamics, one", function(q[3], v[3], tau[3]), expected[3], bound)


SMALL = {"double_pendulum_continuous": False, "panda": False, "borinot_flying_arm_2": True}
"""Robots whose functions are all tried every time, and on which base; the others are slow."""


@pytest.mark.parametrize("name", SMALL)
def test_compiled_functions_of_small_robots(name: str) -> None:
    every_function(robot_file(f"{name}.urdf"), SMALL[name])


@pytest.mark.slow
@both_bases
@every_file
def test_compiled_functions(file: Path, floating: bool) -> None:
    every_function(file, floating)


def every_function(file: Path, floating: bool) -> None:
    """All functions that Pinocchio has too, in a batch, one at a time, and in two threads."""
    model = robots.load(file, floating=floating, angle_snap=0.0)
    oracle, rng = from_urdf(model, file, floating=floating), rng_of(file, floating)
    q, v, vdot, tau = states(model, rng, 6)
    if model.nv == 0:
        return
    calls: list[tuple[str, tuple[Any, ...]]] = [
        ("inverse_dynamics", (q, v, vdot)), ("forward_dynamics", (q, v, tau)), ("bias_force", (q, v)),
        ("gravity_force", (q,)), ("mass_matrix", (q,)), ("poses", (q,)), ("kinetic_energy", (q, v)),
        ("potential_energy", (q,)), ("center_of_mass", (q,)), ("momentum", (q, v)), ("centroidal_momentum", (q, v)),
        ("centroidal_momentum_matrix", (q,)),
    ]  # fmt: skip
    M = each(oracle.mass_matrix, q)
    for name, arrays in calls:
        expected, method = each(getattr(oracle, name), *arrays), method_of(model, name)
        tolerance = solved(M) if name == "forward_dynamics" else EXACT
        check(f"{name}, batch", method(*arrays), expected, tolerance)
        check(f"{name}, threads", method(*arrays, threads=2), expected, tolerance)
        check(f"{name}, one", method_of(model, name)(*(a[1] for a in arrays)), expected[1], tolerance)
    for body in some_bodies(model):
        check("jacobian", model.jacobian(q, body), each(oracle.jacobian, q, body=body))
        check("velocity", model.velocity(q, v, body), each(oracle.velocity, q, v, body=body))
        check("pose", model.pose(q, body), each(oracle.pose, q, body=body))
    identity = model.mass_matrix_inverse(q) @ M
    bound = max(SOLVED, 1e-15 * float(np.linalg.cond(M).max()))
    check("mass_matrix_inverse", identity, np.broadcast_to(np.eye(model.nv), identity.shape), bound)


@pytest.mark.parametrize("name", ["panda", "baxter", "tiago_pro"])
def test_mimics_as_pinocchio_has_them(name: str) -> None:
    """Pinocchio's own mimic joints, where it can build them: the projection that we compare with elsewhere is right."""
    file = robot_file(f"{name}.urdf")
    model = robots.load(file, floating=False, angle_snap=0.0)
    theirs = pin.buildModelFromUrdf(str(file), mimic=True)
    data, eager = theirs.createData(), Eager(model)
    assert theirs.nv == model.nv
    assert any(joint.mimic for joint in model.joints)
    q, v, vdot = random_state(model, np.random.default_rng(0))
    q_theirs, order = pin.neutral(theirs), np.zeros(model.nv, int)
    for joint in model.joints:
        if joint.mimic is None:
            at = theirs.joints[theirs.getJointId(joint.name)]
            x = float(q[joint.q_slice][0])
            q_theirs[at.idx_q : at.idx_q + at.nq] = x if at.nq == 1 else (math.cos(x), math.sin(x))
            order[joint.v_slice] = at.idx_v
    there = np.argsort(order)
    check(
        "inverse_dynamics",
        eager.inverse_dynamics(q, v, vdot),
        pin.rnea(theirs, data, q_theirs, v[there], vdot[there])[order],
    )
    M = np.triu(pin.crba(theirs, data, q_theirs))
    check("mass_matrix", eager.mass_matrix(q), (M + np.triu(M, 1).T)[np.ix_(order, order)])


@pytest.mark.parametrize("name", ["panda", "kinova", "anymal-kinova"])
def test_snapped_angles_change_little(name: str) -> None:
    file = robot_file(f"{name}.urdf")
    as_written, snapped = (robots.load(file, floating=True, **o) for o in ({"angle_snap": 0.0}, {}))
    q, v, vdot = random_state(snapped, np.random.default_rng(1))
    check("snapped", Eager(snapped).inverse_dynamics(q, v, vdot), Eager(as_written).inverse_dynamics(q, v, vdot), 1e-9)
