"""Random mechanisms of every kind, as a few plain numbers that can be printed, compared and made smaller."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

import linkwise as lw
from tests.random_trees import ALL, CUSTOM, random_tree

PARAMETERS = ("mass", "com", "inertia", "xyz", "rpy", "armature")


@dataclass(frozen=True)
class Recipe:
    """How to make a mechanism; the same recipe makes the same one."""

    seed: int
    bodies: int = 1
    types: tuple[str, ...] = ("revolute",)
    branching: float = 0.0
    mimic: float = 0.0
    floating: bool = False
    armature: float = 0.0
    decades: float = 0.0
    """Masses and inertias of each body are scaled by a power of ten up to this far from one."""
    parameters: tuple[str, ...] = ()
    """Run-time parameters of the last body, and "gravity"."""
    sweeps: str = "unrolled"

    @property
    def is_ordinary(self) -> bool:
        """Whether masses are of a size that leaves results most of their digits."""
        return self.decades == 0.0

    @property
    def is_known_to_pinocchio(self) -> bool:
        """Whether Pinocchio has all its joint types, and numbers of a usual size."""
        return self.is_ordinary and not set(CUSTOM) & set(self.types)

    def build(self) -> lw.Model:
        """The model; the last few are kept."""
        return _built(self)

    def simpler(self) -> Iterator[Recipe]:
        """Recipes of smaller mechanisms."""
        for bodies in sorted({1, self.bodies // 2, self.bodies - 1}):
            if 0 < bodies < self.bodies:
                yield replace(self, bodies=bodies)
        if len(self.types) > 1:
            for kind in self.types:
                yield replace(self, types=(kind,))
                yield replace(self, types=tuple(t for t in self.types if t != kind))
        plain = Recipe(self.seed)
        for name in ("parameters", "mimic", "floating", "armature", "decades", "branching", "sweeps"):
            if getattr(self, name) != getattr(plain, name):
                yield replace(self, **{name: getattr(plain, name)})
        if self.seed > 9:
            yield from (replace(self, seed=seed) for seed in range(3))


def random_recipe(rng: np.random.Generator, largest: int = 5) -> Recipe:
    """Any kind of mechanism: one joint type or all, chains and trees, extreme masses, parameters, rolled sweeps."""
    types = ALL if rng.random() < 0.6 else (str(rng.choice([t for t in ALL if t != "fixed"])),)
    recipe = Recipe(
        int(rng.integers(1, 2**31)),
        bodies=int(rng.integers(1, largest + 1)),
        types=types,
        branching=float(rng.choice([0.0, 0.4, 0.9])),
        mimic=float(rng.choice([0.0, 0.0, 0.5])),
        floating=bool(rng.random() < 0.2),
        armature=float(rng.choice([0.0, 0.5, 1.0])),
        decades=float(rng.choice([0.0, 0.0, 0.0, 3.0, 12.0])),
    )
    kind = rng.random()
    if kind < 0.2:
        some = rng.permutation((*PARAMETERS, "gravity"))[: rng.integers(1, 4)]
        return replace(recipe, parameters=tuple(sorted(map(str, some))))
    if kind < 0.35:
        return replace(recipe, mimic=0.0, bodies=recipe.bodies + int(rng.integers(0, 8)), sweeps="rolled")
    return recipe


@lru_cache(maxsize=8)
def _built(recipe: Recipe) -> lw.Model:
    rng = np.random.default_rng(recipe.seed)
    model = random_tree(
        rng,
        recipe.bodies,
        recipe.types,
        branching=recipe.branching,
        mimic=recipe.mimic,
        floating=recipe.floating,
        armature=recipe.armature,
    )
    if recipe.decades:
        factors = 10.0 ** rng.uniform(-recipe.decades, recipe.decades, size=len(model.bodies))
        model = scaled(model, factors.tolist())
    if recipe.parameters:
        last = model.bodies[-1].name
        model = model.with_parameters([n if n == "gravity" else f"{last}.{n}" for n in recipe.parameters])
    return model.with_sweeps(recipe.sweeps)  # type: ignore[arg-type]


def scaled(model: lw.Model, factors: list[float]) -> lw.Model:
    """The same mechanism with the mass and inertia of each body multiplied."""
    bodies = []
    for body, factor in zip(model.bodies, factors, strict=True):
        parts = tuple(
            replace(part, mass=part.mass * factor, inertia=tuple(x * factor for x in part.inertia))
            for part in body.parts
        )
        bodies.append(replace(body, parts=parts))
    return replace(model, bodies=tuple(bodies))


def nudged(model: lw.Model, rng: np.random.Generator, size: float) -> lw.Model:
    """The same mechanism with every constant off by about ``size`` of its length: what rounding it could do."""

    def off(values: Any) -> tuple[float, ...]:
        x = np.asarray(values, float)
        return tuple((x + np.where(x == 0.0, 0.0, size * np.linalg.norm(x) * rng.normal(size=x.shape))).tolist())

    def moved(pose: Any) -> Any:
        matrix = np.array(pose)
        turn = lw.transform(rpy=(size * rng.normal(size=3)).tolist())
        matrix[:3, :3] = np.where(matrix[:3, :3] == 0.0, 0.0, matrix[:3, :3] @ turn[:3, :3])
        matrix[:3, 3] = off(matrix[:3, 3])
        return tuple(tuple(row) for row in matrix.tolist())

    bodies = []
    for body in model.bodies:
        parts = tuple(
            replace(
                part,
                placement=moved(part.placement),
                mass=off([part.mass])[0],
                com=off(part.com),
                inertia=off(part.inertia),
            )
            for part in body.parts
        )
        bodies.append(replace(body, placement=moved(body.placement), parts=parts))
    joints = tuple(replace(joint, armature=off(joint.armature)) for joint in model.joints)
    return replace(model, bodies=tuple(bodies), joints=joints, gravity=off(model.gravity))
