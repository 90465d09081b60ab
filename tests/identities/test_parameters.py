"""Run-time parameters: a model with inputs for its constants against models built with those constants."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.mechanism.parameters import parameters
from linkwise.model.making import METHODS
from tests.identities.relations import close
from tests.oracles.eager import Eager
from tests.random_trees import ALL, random_inertia, random_placement, random_state, random_tree

KINDS = ("mass", "com", "inertia", "xyz", "rpy", "armature")


def method(model, name):
    """The method, of a model or of one of its groups, that is a function of the catalogue."""
    return getattr(METHODS[name].owner(model), METHODS[name].name)


def rebuilt(model: lw.Model, given: dict[str, np.ndarray]) -> lw.Model:
    """The same model with other constants."""
    bodies, joints = [], []
    for body, joint in zip(model.bodies, model.joints, strict=True):
        placement = np.array(body.placement)
        rpy = given.get(f"{body.name}.rpy")
        if rpy is not None:
            placement[:3, :3] = lw.transform(rpy=rpy.tolist())[:3, :3]
        placement[:3, 3] = given.get(f"{body.name}.xyz", placement[:3, 3])
        parts = []
        for part in body.parts:
            (mass,) = given.get(f"{part.name}.mass", [part.mass])
            com = tuple(given.get(f"{part.name}.com", part.com))
            inertia = tuple(given.get(f"{part.name}.inertia", part.inertia))
            parts.append(replace(part, mass=float(mass), com=com, inertia=inertia))
        bodies.append(replace(body, placement=tuple(map(tuple, placement.tolist())), parts=tuple(parts)))
        joints.append(replace(joint, armature=tuple(given.get(f"{body.name}.armature", joint.armature))))
    gravity = tuple(float(x) for x in given.get("gravity", model.gravity))
    return replace(model, bodies=tuple(bodies), joints=tuple(joints), gravity=gravity, _parameter_names=())


def random_values(model: lw.Model, names: list[str], rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Other values for some constants."""
    found: dict[str, np.ndarray] = {}
    for name in names:
        what, body = name.rpartition(".")[2], random_inertia(rng)
        I, X = np.array(body["inertia"]), random_placement(rng, 0.3)
        found[name] = {
            "mass": lambda b=body: np.array([b["mass"]]),
            "com": lambda b=body: np.array(b["com"]),
            "inertia": lambda I=I: np.array([I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2]]),
            "xyz": lambda X=X: X[:3, 3],
            "rpy": lambda: rng.uniform(-3, 3, size=3),
            "armature": lambda n=name: rng.uniform(0, 1, size=size_of(model, n)),
            "gravity": lambda: rng.normal(size=3) * 5,
        }[what]()
    return found


def size_of(model: lw.Model, name: str) -> int:
    declared = parameters(model.with_parameters([name]))
    return declared[0].slice.stop


def all_names(model: lw.Model) -> list[str]:
    parts = [f"{part.name}.{what}" for body in model.bodies for part in body.parts for what in KINDS[:3]]
    return ["gravity", *parts, *(f"{body.name}.{what}" for body in model.bodies for what in KINDS[3:])]


def compare(ours: Any, expected: Any, model: lw.Model, rng: np.random.Generator) -> None:
    q, v, vdot = random_state(model, rng)
    f_ext = rng.normal(size=(len(model.bodies), 6))
    close(ours.inverse_dynamics(q, v, vdot, f_ext=f_ext), expected.inverse_dynamics(q, v, vdot, f_ext=f_ext))
    close(ours.forward_dynamics(q, v, vdot), expected.forward_dynamics(q, v, vdot), 1e-8)
    for name in ("mass_matrix", "gravity_force", "poses", "center_of_mass", "potential_energy", "centroidal_inertia"):
        close(method(ours, name)(q), method(expected, name)(q))
    for name in ("kinetic_energy", "coriolis_matrix", "momentum", "bias_force"):
        close(method(ours, name)(q, v), method(expected, name)(q, v))
    close(ours.regressor(q, v, vdot), expected.regressor(q, v, vdot))
    for name in ("jacobian", "pose", "operational_admittance"):
        close(method(ours, name)(q, body="tool"), method(expected, name)(q, body="tool"), 1e-8)
    close(ours.jacobian_rate(q, v, body="tool"), expected.jacobian_rate(q, v, body="tool"))


@pytest.mark.parametrize("seed", range(12))
def test_texts_with_parameters(seed: int) -> None:
    rng = np.random.default_rng(seed)
    model = random_tree(rng, int(rng.integers(1, 7)), ALL, mimic=0.2)
    names = all_names(model)
    if seed % 3:
        names = [str(name) for name in rng.choice(names, size=min(4, len(names)), replace=False)]
    with_inputs, given = model.with_parameters(names), random_values(model, names, rng)
    p = np.concatenate([given[parameter.name] for parameter in with_inputs.parameters])
    compare(Eager(with_inputs, p), Eager(rebuilt(model, given)), model, rng)
    compare(Eager(with_inputs, with_inputs.parameters.nominal), Eager(model), model, rng)


@pytest.mark.parametrize("seed", range(2))
def test_compiled_with_a_batch_of_parameters(seed: int) -> None:
    rng = np.random.default_rng(seed + 100)
    model = random_tree(rng, 3, ("revolute", "spherical", "prismatic", "fixed", "arm"), gravity=(0, 0, -9.81))
    names = all_names(model)
    with_inputs = model.with_parameters(names)
    batch = [random_values(model, names, rng) for _ in range(3)]
    p = np.array([np.concatenate([given[x.name] for x in with_inputs.parameters]) for given in batch])
    q, v, vdot = random_state(model, rng)
    expected = [Eager(rebuilt(model, given)) for given in batch]
    close(with_inputs.inverse_dynamics(q, v, vdot, p=p), [e.inverse_dynamics(q, v, vdot) for e in expected])
    close(with_inputs.forward_dynamics(q, v, vdot, p=p), [e.forward_dynamics(q, v, vdot) for e in expected], 1e-9)
    close(with_inputs.forward_dynamics(q, v, vdot, p=p[1]), expected[1].forward_dynamics(q, v, vdot), 1e-9)
    close(with_inputs.forward_dynamics(q, v, vdot), model.forward_dynamics(q, v, vdot), 1e-9)
    rates = with_inputs.jacobian_rate(q, v, "tool", p=p)  # duals of traced scalars times traced parameters
    close(rates, [e.jacobian_rate(q, v, body="tool") for e in expected])
    close(with_inputs.coriolis_matrix(q, v, p=p), [e.coriolis_matrix(q, v) for e in expected])
    close(with_inputs.integrate(q, v), model.integrate(q, v))


def test_orientation_near_the_poles_of_rpy() -> None:
    """Roll and yaw are ill defined near a pitch of 90°; together they must still give the placement."""
    for off in (0.0, 1e-13, 1e-12, 1e-10, 1e-8, 1e-6, 1e-3):
        for side in (1, -1):
            b = lw.ModelBuilder("pole")
            X = lw.transform((0.1, 0.2, 0.3), (0.4, side * (np.pi / 2 - off), -1.1))
            b.add_body("a", joint=lw.Revolute((0, 1, 0)), placement=X, mass=1.0, com=(0.1, 0.2, 0.3))
            model = b.build()
            given = model.with_parameters(["a.rpy", "a.xyz"])
            np.testing.assert_allclose(Eager(given, given.parameters.nominal).poses([0.0])[0], X, atol=3e-15)
