"""Random mechanisms of random shapes on a ground that they touch: blows, and motions after them.

A blow must be explained by the forces that are told; a motion stays finite, obeys the laws, and never has more energy
than at its start.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import linkwise as lw
from campaign.trial import Log, Trial, said
from tests.random_trees import ALL, SINGLE, random_tree

Array = np.ndarray[Any, Any]

BATCH = 8
DURATION = 0.4
INSTANT = 1e-7
"""s, a step in which nothing but blows counts."""
ASKED = 0.5
"""m/s, of Signorini's condition: where nothing obeys all laws, surfaces are asked to part by less than this."""
GAINED = 0.02
"""Of the energies of a motion, by which one may exceed that of the start: steps are long for some of them."""
LIFTED = 0.1
"""m, that a mechanism falls by where energies are compared."""
MISSED = 1e-3
"""Of the impulses of a blow, what rounding may hide where its velocities are large."""


@dataclass(frozen=True)
class Scene:
    """A mechanism that touches a ground, states of it, and a step for them."""

    model: lw.Model
    q: Array
    v: Array
    dt: float


def shape(rng: np.random.Generator, name: str) -> lw.Geometry:
    """Any shape of a body."""
    kind: Any = str(rng.choice(["sphere", "box", "capsule", "cylinder", "ellipsoid", "convex"]))
    rpy = rng.uniform(-3.0, 3.0, 3) * (rng.random() < 0.6)
    pose = lw.transform(xyz=rng.normal(size=3) * 0.2 * (rng.random() < 0.7), rpy=rpy)
    a, b, c = map(float, rng.uniform(0.03, 0.3, 3))
    size = {"sphere": (a,), "capsule": (a, 2.0 * b), "cylinder": (a, 2.0 * b), "convex": ()}.get(kind, (a, b, c))
    corners = rng.normal(size=(int(rng.integers(4, 12)), 3)) * 0.15 if kind == "convex" else np.zeros((0, 3))
    rows = tuple(map(tuple, np.asarray(pose).tolist()))
    return lw.Geometry(
        kind,
        size,
        None,
        (1.0, 1.0, 1.0),
        rows,
        name,
        vertices=tuple(map(tuple, corners.tolist())),
    )


def material(rng: np.random.Generator) -> lw.Material:
    """Any rigid surface."""
    given: dict[str, Any] = {"friction": float(rng.choice([0.0, 0.3, 0.8, 1.5, 2.5]))}
    if rng.random() < 0.15:
        given["friction"] = tuple(map(float, rng.uniform(0.1, 1.0, 2)))
    for name, most in (("torsion", 0.05), ("rolling", 0.02), ("restitution", 1.0), ("restitution", 1.0)):
        if rng.random() < 0.2:
            given[name] = float(rng.uniform(0.0, most))
    return lw.Material(**given)


def scene(rng: np.random.Generator, above: float, bounces: bool = True) -> Scene | None:
    """A mechanism at a height above the ground; None where it has nothing that could touch it."""
    types = tuple(t for t in ALL if t != "free")
    types = types if rng.random() < 0.6 else (str(rng.choice([*SINGLE, "spherical", "planar"])),)
    bare = random_tree(rng, int(rng.integers(1, 6)), types, floating=bool(rng.random() < 0.25), gravity=(0, 0, -9.81))
    bodies = []
    for body in bare.bodies:
        count = int(rng.integers(0, 3)) if len(bare.bodies) > 1 else int(rng.integers(1, 3))
        bodies.append(replace(body, collisions=tuple(shape(rng, body.name) for _ in range(count))))
    model = replace(bare, bodies=tuple(bodies))
    if not model.nv or not any(body.collisions for body in bodies):
        return None
    q = np.asarray(model.random_configuration(rng), float)
    law = material(rng)
    law = law if bounces else replace(law, restitution=0.0)
    far = model.with_contacts(lw.Ground(lw.transform(xyz=(0.0, 0.0, -50.0))))
    distances, pairs = np.atleast_1d(far.distances(q)), [tuple(name.split(" on ")) for name in far.contacts.pairs]
    low = min((d for d, pair in zip(distances, pairs, strict=True) if pair[1] == "ground"), default=None)
    if low is None:
        return None
    inside = {pair for d, pair in zip(distances, pairs, strict=True) if pair[1] != "ground" and d < 1e-3}
    ground = lw.Ground(lw.transform(xyz=(0.0, 0.0, -50.0 + low - above)))
    model = model.with_contacts(ground, material=law, exclude=sorted(inside))
    return Scene(
        model, np.tile(q, (BATCH, 1)), rng.normal(size=(BATCH, model.nv)), float(rng.choice([1e-3, 2e-3, 5e-3]))
    )


def blow(rng: np.random.Generator) -> str:
    """Fault of a blow, or ""."""
    found = scene(rng, 0.0, bounces=False)  # velocities that would gain energy are scaled
    if found is None:
        return ""
    model, q, v = found.model, found.q[0], found.v[0]
    motion = lw.simulate(model, q, v, duration=INSTANT, dt=INSTANT, method="moreau")
    after = motion.v[-1]
    if not np.isfinite(after).all():
        return "a blow ends in numbers that are none"
    middle = np.asarray(model.integrate(q, 0.5 * INSTANT * v))
    change = np.asarray(model.mass_matrix(middle)) @ (after - v)
    wrenches = INSTANT * np.asarray(motion.contacts.wrenches[-1])
    pushed = np.asarray(model.external_force(middle, wrenches))
    largest = np.abs(change).max() + np.abs(pushed).max()
    forces = INSTANT * (np.abs(model.bias_force(middle, v)).max() + np.abs(model.bias_force(middle, after)).max())
    off = np.abs(change - pushed).max()
    return f"a blow of {largest:.3g} is not explained: {off:.3g}" if off > MISSED * largest + 4.0 * forces else ""


def fall(rng: np.random.Generator) -> str:
    """Fault of a motion, or ""."""
    found = scene(rng, 0.05)
    if found is None:
        return ""
    motion = lw.simulate(found.model, found.q, found.v, duration=DURATION, dt=found.dt, method="moreau")
    if not np.isfinite(motion.v).all():
        return "a motion ends in numbers that are none"
    missed = np.abs(motion.contacts.residual[..., 0]).max()
    if missed > ASKED:
        return f"a motion misses Signorini's condition by {missed:.3g} m/s"
    energy, kinetic = np.asarray(motion.energy), np.asarray(found.model.kinetic_energy(found.q, found.v))
    scale = np.ptp(energy, axis=1) + kinetic + found.model.mass * 9.81 * LIFTED
    gained = (energy.max(axis=1) - energy[:, 0]) / scale
    return f"a motion gains {gained.max():.3g} of its energy" if gained.max() > GAINED else ""


def problem(seed: int, number: int) -> str:
    """Fault of one trial, or ""."""
    rng = np.random.default_rng([seed, number])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # overlaps that last, steps that are long
        return blow(rng) if number % 3 == 0 else fall(rng)


class Contacts(Trial):
    """Random mechanisms on a ground."""

    name, unit, target, chunk = "contacts", "mechanisms of random shapes that strike the ground", 10**5, 30

    def run(self, seed: int, numbers: range, log: Log) -> None:
        """A blow in every third trial, else a motion."""
        for number in log.numbers(numbers):
            try:
                wrong = problem(seed, number)
            except Exception as error:
                wrong = said(error)
            if wrong:
                log.fail(number, wrong)
