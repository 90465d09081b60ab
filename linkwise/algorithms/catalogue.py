"""The public functions of a model as texts over any scalar: which inputs each takes and which algorithm answers.

This is what gets traced, run eagerly on symbols, or rolled: one place, whatever the way of running.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from linkwise.algorithms import (
    configuration,
    coriolis,
    energy,
    forward_dynamics,
    inverse_dynamics,
    kinematics,
    mass_matrix,
    operational,
    regressor,
)
from linkwise.algorithms.kinematics import Place
from linkwise.model.layout import lay_out
from linkwise.model.mechanism import Mechanism
from linkwise.model.parameters import parameters
from linkwise.model.tree import Tree
from linkwise.spatial.matrices import Mat3
from linkwise.spatial.scalar import Scalar
from linkwise.spatial.transforms import Transform
from linkwise.spatial.vectors import Force, Vec

Flat = Sequence[Scalar]


class Trees:
    """The layouts of one mechanism for given parameter values, made when first asked for."""

    def __init__(self, mechanism: Mechanism, p: Flat | None = None) -> None:
        self.mechanism = mechanism
        self.p = p

    @cached_property
    def fast(self) -> Tree:
        """Aligned frames, regrouped inertias: for sums over the whole mechanism."""
        return lay_out(self.mechanism, self.p)

    @cached_property
    def aligned(self) -> Tree:
        """Aligned frames, each body's own inertia."""
        return lay_out(self.mechanism, self.p, regroup=False)

    @cached_property
    def in_body_frames(self) -> Tree:
        """The user's frames and inertias."""
        return lay_out(self.mechanism, self.p, align=False, regroup=False)

    def place(self, name: str, tree: Tree) -> Place:
        """A body or frame by name, on its link."""
        frame = self.mechanism.frame(name)
        pose = frame.placement
        offset = Transform.rigid(Mat3([row[:3] for row in pose[:3]]), Vec(*(row[3] for row in pose[:3])))
        if frame.body < 0:
            return Place(None, offset)
        link = tree.links[frame.body]
        return Place(link, link.to_body.then(offset))

    def link_forces(self, f_ext: Flat | None, tree: Tree) -> list[Force] | None:
        """External forces, given in body frames, in link frames."""
        if f_ext is None:
            return None
        return [link.to_body @ Force.of(f_ext[6 * link.index : 6 * link.index + 6]) for link in tree]


@dataclass(frozen=True)
class Text:
    """One public function: input names (optional ones after the bar), output names, and the text."""

    inputs: tuple[str, ...]
    function: Callable[..., Any]
    optional: tuple[str, ...] = ()


def input_shape(mechanism: Mechanism, name: str) -> tuple[int, ...]:
    """The core shape of an input by its name."""
    if name == "p":
        declared = parameters(mechanism)
        return (declared[-1].slice.stop if declared else 0,)
    sizes: Mapping[str, tuple[int, ...]] = {
        "q": (mechanism.nq,),
        "v": (mechanism.nv,),
        "f_ext": (len(mechanism.bodies), 6),
        "point": (3,),
    }
    return sizes[_KIND.get(name, name)]


_KIND = {"q0": "q", "q1": "q", "vdot": "v", "tau": "v", "dv": "v", "dq": "v", "dvdot": "v", "dtau": "v"}


def _id(t: Trees, q: Flat, v: Flat, vdot: Flat, f_ext: Flat | None) -> Any:
    return inverse_dynamics.inverse_dynamics(t.fast, q, v, vdot, t.link_forces(f_ext, t.fast))


def _fd(t: Trees, q: Flat, v: Flat, tau: Flat, f_ext: Flat | None) -> Any:
    return forward_dynamics.forward_dynamics(t.fast, q, v, tau, t.link_forces(f_ext, t.fast))


def _bias(t: Trees, q: Flat, v: Flat, f_ext: Flat | None) -> Any:
    return inverse_dynamics.bias_force(t.fast, q, v, t.link_forces(f_ext, t.fast))


def _point(point: Flat | None) -> Vec | None:
    return None if point is None else Vec.of(list(point))


CATALOGUE: dict[str, Text] = {
    "inverse_dynamics": Text(("q", "v", "vdot"), _id, ("f_ext",)),
    "forward_dynamics": Text(("q", "v", "tau"), _fd, ("f_ext",)),
    "bias_force": Text(("q", "v"), _bias, ("f_ext",)),
    "gravity_force": Text(("q",), lambda t, q: inverse_dynamics.gravity_force(t.fast, q)),
    "mass_matrix": Text(("q",), lambda t, q: mass_matrix.mass_matrix(t.fast, q)),
    "mass_matrix_inverse": Text(("q",), lambda t, q: mass_matrix.mass_matrix_inverse(t.fast, q)),
    "coriolis_matrix": Text(("q", "v"), lambda t, q, v: coriolis.coriolis_matrix(t.fast, q, v)),
    "poses": Text(("q",), lambda t, q: kinematics.poses(t.fast, q)),
    "pose": Text(("q",), lambda t, q, *, body: kinematics.pose(t.fast, q, t.place(body, t.fast))),
    "velocity": Text(("q", "v"), lambda t, q, v, *, body: kinematics.velocity(t.fast, q, v, t.place(body, t.fast))),
    "jacobian": Text(
        ("q",),
        lambda t, q, point, *, body: kinematics.jacobian(t.fast, q, t.place(body, t.fast), _point(point)),
        ("point",),
    ),
    "jacobian_rate": Text(
        ("q", "v"),
        lambda t, q, v, point, *, body: kinematics.jacobian_rate(t.fast, q, v, t.place(body, t.fast), _point(point)),
        ("point",),
    ),
    "configuration_rate": Text(("q", "v"), lambda t, q, v: kinematics.configuration_rate(t.fast, q, v)),
    "kinetic_energy": Text(("q", "v"), lambda t, q, v: energy.kinetic_energy(t.fast, q, v)),
    "potential_energy": Text(("q",), lambda t, q: energy.potential_energy(t.fast, q)),
    "center_of_mass": Text(("q",), lambda t, q: energy.center_of_mass(t.fast, q)),
    "momentum": Text(("q", "v"), lambda t, q, v: energy.momentum(t.fast, q, v)),
    "centroidal_momentum": Text(("q", "v"), lambda t, q, v: energy.centroidal_momentum(t.fast, q, v)),
    "centroidal_momentum_matrix": Text(("q",), lambda t, q: energy.centroidal_momentum_matrix(t.aligned, q)),
    "centroidal_inertia": Text(("q",), lambda t, q: energy.centroidal_inertia(t.fast, q)),
    "operational_inertia": Text(
        ("q",), lambda t, q, *, body: operational.operational_inertia(t.fast, q, t.place(body, t.fast))
    ),
    "operational_admittance": Text(
        ("q",), lambda t, q, *, body: operational.operational_admittance(t.fast, q, t.place(body, t.fast))
    ),
    "regressor": Text(("q", "v", "vdot"), lambda t, q, v, vdot: regressor.regressor(t.in_body_frames, q, v, vdot)),
    "integrate": Text(("q", "dv"), lambda t, q, dv: configuration.integrate(t.fast, q, dv)),
    "difference": Text(("q0", "q1"), lambda t, q0, q1: configuration.difference(t.fast, q0, q1)),
}
