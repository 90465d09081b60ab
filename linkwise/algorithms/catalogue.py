"""The public functions of a model as texts over any scalar: which inputs each takes and which algorithm answers.

This is what gets traced, run eagerly on symbols, or rolled: one place, whatever the way of running.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from linkwise.algorithms import (
    acceleration_field,
    configuration,
    coriolis,
    differentiated,
    energy,
    forward_dynamics,
    inverse_dynamics,
    jacobian,
    kinematics,
    linearized_forward,
    linearized_inverse,
    mass_matrix,
    regressor,
)
from linkwise.algorithms.branches import Branching, branching
from linkwise.algorithms.closed_system import constrained_accelerations, switched
from linkwise.algorithms.closure_solvers import closure_solver
from linkwise.algorithms.constrained import ClosureSolver
from linkwise.algorithms.embedded import Pivots, reference_pivots
from linkwise.algorithms.equations import Between, Constraint
from linkwise.algorithms.kinematics import Place, Reference
from linkwise.algorithms.sweeps import Field, each
from linkwise.dataclass import dataclass, replace
from linkwise.errors import InputError
from linkwise.mechanism.bodies_and_joints import Pose
from linkwise.mechanism.closures.instances import ClosureInstance, freedoms_of_closures
from linkwise.mechanism.layout import lay_out, placed_at
from linkwise.mechanism.mechanism import Mechanism
from linkwise.mechanism.parameters import Values, parameters
from linkwise.mechanism.tree import Tree
from linkwise.memoized import cached_property
from linkwise.spatial.matrices import Mat3
from linkwise.spatial.scalar import Flat, Scalar
from linkwise.spatial.transforms import Transform
from linkwise.spatial.vectors import Force, Vec


class Trees:
    """The layouts of one mechanism for given parameter values, made when first asked for.

    Args:
        mechanism: what is laid out.
        p: values of its run-time parameters.
        exact: whether to keep the user's frames throughout. A change of frame rounds the model's constants like floats,
            which scalars with more digits than a float would show.
    """

    def __init__(self, mechanism: Mechanism, p: Flat | None = None, exact: bool = False) -> None:
        self.mechanism = mechanism
        self.p = p
        self.exact = exact

    @cached_property
    def fast(self) -> Tree:
        """Aligned frames, regrouped inertias: for sums over the whole mechanism."""
        return self.in_body_frames if self.exact else lay_out(self.mechanism, self.p)

    @cached_property
    def aligned(self) -> Tree:
        """Aligned frames, each body's own inertia."""
        return self.in_body_frames if self.exact else lay_out(self.mechanism, self.p, regroup=False)

    @cached_property
    def in_body_frames(self) -> Tree:
        """The user's frames and inertias."""
        return lay_out(self.mechanism, self.p, align=False, regroup=False)

    def place(self, tree: Tree, body: str, node: str | int | None = None) -> Place:
        """A body or frame by name, or a node of a flexible body, on its link."""
        frame = self.mechanism.frame(body, node)
        return _on_body(tree, frame.body, frame.placement, frame.node)

    def constraints(self, tree: Tree, active: Flat | None = None) -> list[Constraint]:
        """Constraints of the mechanism, on its links; with ``active``, each with its number: 1 in force, 0 released."""
        values = Values(self.mechanism, self.p)
        found: list[Constraint] = []
        for c in self.mechanism.closures:
            kind = values.closure_type(c)
            if isinstance(c, ClosureInstance):
                found.append(Between(kind, _end(tree, values, c, "a"), _end(tree, values, c, "b")))
            else:
                found.append(replace(c, type=kind))
        return found if active is None else [switched(c, a) for c, a in zip(found, active, strict=True)]

    def ends(self, name: str, q: Flat) -> list[Any]:
        """Poses 4×4 of frames a and b of a closure in the world."""
        closure = self.mechanism.closures[name]
        assert isinstance(closure, ClosureInstance)
        values = Values(self.mechanism, self.p)
        return [kinematics.pose(self.fast, q, _end(self.fast, values, closure, side)) for side in "ab"]

    def closed(
        self,
        q: Flat,
        v: Flat,
        time: Flat | None,
        constraints: Sequence[Constraint] | None = None,
        active: Flat | None = None,
        *,
        closed: bool = False,
    ) -> ClosureSolver:
        """The closed system at a state, to be solved as the mechanism says; other constraints than its own if given.

        ``closed``: whether accelerations alone are asked for; see :func:`linkwise.algorithms.equations.equations`.
        """
        taken = self.constraints(self.fast, active) if constraints is None else constraints
        name, chosen = self.mechanism._closure_solver, list[Any]()
        if name == "auto" and active is None and self.branching is not None:
            name = "branches"
        if name == "branches" and (active is not None or self.branching is None):
            raise InputError(
                'the closure solver "branches" needs closures that each hold a branch of their own',
                got="closures that may be attached and released"
                if active is not None
                else ", ".join(repr(c.name) for c in self.mechanism.closures) or "no closures",
                allowed="branches that hang on the world, move freely where they are held, and are held only there",
                do='use with_closure_solver("auto")',
            )
        if name == "embedding":
            chosen.append(lambda: self.pivots(taken))
        if name == "branches":
            chosen.append(self.branching)
        return closure_solver(name, self.fast, q, v, taken, instant(time), *chosen, closed=closed)

    @cached_property
    def nominal(self) -> Trees:
        """The same for nominal parameters, on numbers."""
        return self if self.p is None else Trees(self.mechanism)

    @cached_property
    def branching(self) -> Branching | None:
        """The branch that each closure holds, for nominal parameters; None where one holds none of its own."""
        if self.fast.rolls or not self.mechanism.closures:
            return None
        nominal = self.nominal
        return branching(nominal.fast, nominal.constraints(nominal.fast))

    def pivots(self, constraints: Sequence[Constraint] | None = None) -> Pivots:
        """The freedom that each equation determines, at the mechanism's reference and for nominal parameters."""
        nominal = self.nominal
        taken = nominal.constraints(nominal.fast)
        if constraints is not None:  # the same ones, with other things to say
            types: list[Any] = [given.type for given in constraints]
            taken = [replace(own, type=kind) for own, kind in zip(taken, types, strict=True)]
        reference = self.mechanism._closure_reference
        return [] if reference is None else reference_pivots(nominal.fast, taken, reference)

    def link_forces(self, f_ext: Flat | None, tree: Tree) -> Field[Force] | None:
        """External forces, given in body frames, in link frames."""
        return None if f_ext is None else each(tree, lambda link: link.external(f_ext))


def _end(tree: Tree, values: Values, closure: ClosureInstance, side: str) -> Place:
    """Frame a or b of a closure."""
    body, pose, node = (getattr(closure, f"{what}_{side}") for what in ("body", "placement", "node"))
    free = values.closure_placement(closure, side)
    return _on_body(tree, body, pose, node) if free is None else _place(tree, body, placed_at(*free), node)


def _on_body(tree: Tree, body: int, pose: Pose, node: int = 0) -> Place:
    """A place given by its pose on a moving body (-1: the world), or on a node of one that deforms."""
    offset = Transform.rigid(Mat3([row[:3] for row in pose[:3]]), Vec(*(row[3] for row in pose[:3])))
    return _place(tree, body, offset, node)


def _place(tree: Tree, body: int, offset: Transform, node: int) -> Place:
    if body < 0:
        return Place(None, offset)
    link = tree.links[body]
    return Place(link, link.to_body.then(offset), link.seat_at(node))


def instant(time: Flat | None) -> Scalar:
    """The time t, zero where none is given."""
    return 0.0 if time is None else time[0]


@dataclass(frozen=True)
class Columns:
    """A matrix of many links by its columns: the vectors that a function makes of unit vectors in turn."""

    along: tuple[str, ...]
    """The vectors, one for each matrix of the result."""
    function: Callable[..., object]
    """The product: takes what the function takes, then these vectors."""
    rows: bool = False
    """Whether a product is a row of the matrix, not a column."""
    value: Callable[..., object] | None = None
    """The text of what comes before the matrices."""
    value_replaces: str | None = None
    """The input of ``function`` that is this value instead of the caller's."""
    result: type[Any] | None = None
    """The named tuple that is returned, if it is not one array."""
    halved: bool = False
    """Whether the matrix is the mass matrix, of which one half is enough: :mod:`linkwise.algorithms.mass_matrix`."""


@dataclass(frozen=True)
class Text:
    """One public function: its inputs, and its text ``function(trees, *inputs, *optional or None, **static)``."""

    inputs: tuple[str, ...]
    function: Callable[..., object]
    optional: tuple[str, ...] = ()
    columns: Columns | None = None
    """The way of large mechanisms, where the text is not made of sweeps alone."""
    empty: tuple[int, ...] = (0,)
    """Shape of the result where the mechanism has no freedom at all, which a list of no rows does not tell."""
    result: type[Any] | None = None
    """The named tuple that is returned by a function without ``columns``, if it is not one array."""
    method: str = ""
    """Its name on a model where that is not the function's own, as in a group: ``constraints.rate``."""


@dataclass(frozen=True)
class Input:
    """An input of functions."""

    divided: Literal["q", "v", "body", "none"]
    """Its division among the links: by their places in q or v, by body, or not at all."""
    shape: Callable[[Mechanism], tuple[int, ...]]
    """Its core shape."""
    meaning: str = ""
    """For docstrings, with its shape and units."""


def _parameter_shape(mechanism: Mechanism) -> tuple[int, ...]:
    declared = parameters(mechanism)
    return (declared[-1].slice.stop if declared else 0,)


def _of_freedoms(meaning: str) -> Input:
    return Input("v", lambda m: (m.nv,), meaning)


INPUTS: dict[str, Input] = {
    **dict.fromkeys(("q", "q0", "q1"), Input("q", lambda m: (m.nq,), "configuration (..., nq).")),
    "v": _of_freedoms("velocity (..., nv), rad/s or m/s."),
    "vdot": _of_freedoms("acceleration (..., nv), rad/s² or m/s²."),
    "tau": _of_freedoms("joint forces (..., nv), N m or N."),
    "x": _of_freedoms("a vector (..., nv)."),
    "dq": _of_freedoms("small change (..., nv) of q, in its tangent space."),
    "dv": _of_freedoms("small change (..., nv) of v."),
    "dvdot": _of_freedoms("small change (..., nv) of vdot."),
    "dtau": _of_freedoms("small change (..., nv) of tau."),
    "f_ext": Input(
        "body",
        lambda m: (len(m.bodies), 6),
        "external forces (..., n_bodies, 6) = [moment, force] on each body at its origin, in its own frame. Of a "
        "flexible body that is its root, where no force reaches the modes; :meth:`force_at` takes nodes.",
    ),
    "linear": Input("none", lambda m: (acceleration_field.FIELD,)),
    "field": Input("body", lambda m: (len(m.bodies), acceleration_field.FIELD)),
    "potential": Input("body", lambda m: (len(m.bodies), acceleration_field.POTENTIAL)),
    "pi": Input("body", lambda m: (len(m.bodies), 10)),
    "p": Input("none", _parameter_shape, "run-time parameters (..., np); nominal values if left out."),
    "point": Input("none", lambda m: (3,), "(..., 3) in the frame of the place, m; its origin if left out."),
    "force": Input("none", lambda m: (6,), "[moment, force] (..., 6), N m and N."),
    "t": Input("none", lambda m: (), "time (...), s, for closures that depend on it; zero if left out."),
    "active": Input("none", lambda m: (len(m.closures),)),
    "along_closures": Input(
        "none",
        lambda m: (sum(f.joint.nv for f in freedoms_of_closures(m.closures)),),
        "forces (..., k) along the freedoms that closures leave, N m or N.",
    ),
    "multipliers": Input("none", lambda m: (sum(len(c.equations) for c in m.closures),)),
}
"""All inputs by name."""


def _forced(function: Callable[..., object], arrays: int, layout: str = "fast") -> Callable[..., object]:
    """The text of a function of so many arrays and of external forces, which are given in body frames."""

    def text(t: Trees, *given: Any) -> object:
        tree = getattr(t, layout)
        return function(tree, *given[:arrays], t.link_forces(given[arrays], tree))

    return text


def _fd(
    t: Trees,
    q: Flat,
    v: Flat,
    tau: Flat,
    f_ext: Flat | None,
    time: Flat | None = None,
    active: Flat | None = None,
    *,
    closing_rate: float = 0.0,
) -> list[Scalar]:
    forces = t.link_forces(f_ext, t.fast)
    if t.mechanism.closures:
        by = t.closed(q, v, time, active=active, closed=not closing_rate)
        return constrained_accelerations(by, t.fast, q, v, tau, forces, closing_rate)
    return forward_dynamics.forward_dynamics(t.fast, q, v, tau, forces)


def _matrices(linearized: Any) -> Any:
    """A vector and its matrices; the latter 0 × 0 where nothing can move, which lists of no rows do not tell."""
    vector, *matrices = linearized
    return linearized if len(vector) else type(linearized)(vector, *(np.empty((0, 0), object) for _ in matrices))


_id = _forced(inverse_dynamics.inverse_dynamics, 3)


def _where(t: Trees, *point: Flat | None, reference: Reference = "mixed", **at: Any) -> tuple[Any, ...]:
    """A place, a point on it where the function takes one, and the way to write what is there."""
    return t.place(t.fast, **at), *(None if p is None else Vec.of(list(p)) for p in point), reference


def _pulled(
    function: Callable[..., object], t: Trees, state: tuple[Flat, ...], point: Flat | None, f: Flat, **at: Any
) -> object:
    place, where, reference = _where(t, point, **at)
    return function(t.fast, *state, place, where, f, reference)


# Some take the time ``t`` as forward_dynamics does, though without closures it has no effect: it is checked like any
# other array, and is part of the batch.
CATALOGUE: dict[str, Text] = {
    "inverse_dynamics": Text(("q", "v", "vdot"), _id, ("f_ext", "t")),
    "forward_dynamics": Text(("q", "v", "tau"), _fd, ("f_ext", "t", "active")),
    "bias_force": Text(("q", "v"), _forced(inverse_dynamics.bias_force, 2), ("f_ext",)),
    "linearize_inverse": Text(
        ("q", "v", "vdot"),
        _forced(lambda *given: _matrices(linearized_inverse.linearized_inverse(*given)), 3),
        ("f_ext",),
        Columns(
            ("dq", "dv", "dvdot"),
            lambda t, q, v, vdot, f_ext, dq, dv, dvdot: differentiated.perturbed_inverse(
                t.fast, q, v, vdot, dq, dv, dvdot, t.link_forces(f_ext, t.fast)
            ),
            value=_id,
            result=linearized_inverse.LinearizedInverse,
        ),
    ),
    "linearize_forward": Text(
        ("q", "v", "tau"),
        _forced(lambda *given: _matrices(linearized_forward.linearized_forward(*given)), 3),
        ("f_ext", "t"),
        Columns(
            ("dq", "dv", "dtau"),
            lambda t, q, v, vdot, f_ext, time, dq, dv, dtau: differentiated.perturbed_accelerations(
                t.fast, q, v, vdot, dq, dv, dtau, t.link_forces(f_ext, t.fast)
            ),
            value=_fd,
            value_replaces="tau",
            result=linearized_forward.LinearizedForward,
        ),
    ),
    "joint_wrenches": Text(
        ("q", "v", "vdot"), _forced(inverse_dynamics.joint_wrenches, 3, "aligned"), ("f_ext",), empty=(0, 6)
    ),
    "perturb_inverse": Text(
        ("q", "v", "vdot", "dq", "dv", "dvdot"), _forced(differentiated.perturbed_inverse, 6), ("f_ext",)
    ),
    "perturb_forward": Text(
        ("q", "v", "tau", "dq", "dv", "dtau"), _forced(differentiated.perturbed_forward, 6), ("f_ext", "t")
    ),
    "gravity_force": Text(("q",), lambda t, q: inverse_dynamics.gravity_force(t.fast, q)),
    "external_force": Text(
        ("q", "f_ext"),
        lambda t, q, f_ext: inverse_dynamics.external_force(t.fast, q, t.link_forces(f_ext, t.fast)),
    ),
    "force_at": Text(("q", "force"), lambda t, q, f, **at: jacobian.force_at(t.fast, q, t.place(t.fast, **at), f)),
    "mass_product": Text(("q", "x"), lambda t, q, x: inverse_dynamics.mass_product(t.fast, q, x)),
    "mass_solve": Text(("q", "x"), lambda t, q, x: forward_dynamics.mass_solve(t.fast, q, x)),
    "mass_matrix": Text(
        ("q",),
        lambda t, q: mass_matrix.mass_matrix(t.fast, q),
        columns=Columns(("x",), lambda t, q, x: inverse_dynamics.mass_product(t.fast, q, x), halved=True),
        empty=(0, 0),
    ),
    "mass_matrix_inverse": Text(
        ("q",),
        lambda t, q: forward_dynamics.mass_matrix_inverse(t.fast, q),
        columns=Columns(("x",), lambda t, q, x: forward_dynamics.mass_solve(t.fast, q, x)),
        empty=(0, 0),
    ),
    "coriolis_matrix": Text(
        ("q", "v"),
        lambda t, q, v: coriolis.coriolis_matrix(t.fast, q, v),
        columns=Columns(("x",), lambda t, q, v, x: coriolis.coriolis_product(t.fast, q, v, x)),
        empty=(0, 0),
    ),
    "poses": Text(("q",), lambda t, q: kinematics.poses(t.fast, q), empty=(0, 4, 4)),
    "pose": Text(("q",), lambda t, q, **at: kinematics.pose(t.fast, q, t.place(t.fast, **at))),
    "velocity": Text(("q", "v"), lambda t, q, v, **at: kinematics.velocity(t.fast, q, v, *_where(t, **at))),
    "acceleration": Text(
        ("q", "v", "vdot"),
        lambda t, q, v, vdot, **at: kinematics.acceleration(t.fast, q, v, vdot, *_where(t, **at)),
    ),
    "jacobian": Text(
        ("q",),
        lambda t, q, point, **at: jacobian.jacobian(t.fast, q, *_where(t, point, **at)),
        ("point",),
        Columns(
            ("force",),
            lambda t, q, point, f, **at: _pulled(jacobian.pulled, t, (q,), point, f, **at),
            rows=True,
        ),
    ),
    "jacobian_rate": Text(
        ("q", "v"),
        lambda t, q, v, point, **at: jacobian.jacobian_rate(t.fast, q, v, *_where(t, point, **at)),
        ("point",),
        Columns(
            ("force",),
            lambda t, q, v, point, f, **at: _pulled(jacobian.pulled_rate, t, (q, v), point, f, **at),
            rows=True,
        ),
    ),
    "configuration_rate": Text(("q", "v"), lambda t, q, v: kinematics.configuration_rate(t.fast, q, v)),
    "kinetic_energy": Text(("q", "v"), lambda t, q, v: energy.kinetic_energy(t.fast, q, v)),
    "potential_energy": Text(("q",), lambda t, q: energy.potential_energy(t.fast, q)),
    "center_of_mass": Text(("q",), lambda t, q: energy.center_of_mass(t.fast, q)),
    "momentum": Text(("q", "v"), lambda t, q, v: energy.momentum(t.fast, q, v)),
    "centroidal_momentum": Text(
        ("q", "v"), lambda t, q, v: energy.centroidal_momentum(t.fast, q, v), method="centroidal.momentum"
    ),
    "centroidal_momentum_matrix": Text(
        ("q",),
        lambda t, q: energy.centroidal_momentum_matrix(t.aligned, q),
        columns=Columns(("x",), lambda t, q, x: energy.centroidal_momentum(t.fast, q, x)),
        method="centroidal.momentum_matrix",
    ),
    "centroidal_inertia": Text(("q",), lambda t, q: energy.centroidal_inertia(t.fast, q), method="centroidal.inertia"),
    "operational_inertia": Text(
        ("q",),
        lambda t, q, **at: forward_dynamics.operational_inertia(t.fast, q, t.place(t.fast, **at)),
        method="operational.inertia",
    ),
    "operational_admittance": Text(
        ("q",),
        lambda t, q, **at: forward_dynamics.operational_admittance(t.fast, q, t.place(t.fast, **at)),
        method="operational.admittance",
    ),
    "regressor": Text(
        ("q", "v", "vdot"),
        lambda t, q, v, vdot: regressor.regressor(t.in_body_frames, q, v, vdot),
        columns=Columns(
            ("pi",), lambda t, q, v, vdot, pi: regressor.regressor_product(t.in_body_frames, q, v, vdot, pi)
        ),
        empty=(0, 0),
    ),
    "linear_field": Text(
        ("q", "linear"),
        lambda t, q, field: acceleration_field.linear_field(t.in_body_frames, q, field),
        empty=(0, acceleration_field.FIELD),
    ),
    "field_wrenches": Text(
        ("q", "field"),
        lambda t, q, field: acceleration_field.field_wrenches(t.in_body_frames, q, field),
        empty=(0, 6),
    ),
    "field_on_modes": Text(
        ("q", "field"), lambda t, q, field: acceleration_field.field_on_modes(t.in_body_frames, q, field)
    ),
    "field_energy": Text(("q", "potential"), lambda t, q, U: acceleration_field.field_energy(t.in_body_frames, q, U)),
    "integrate": Text(("q", "dv"), lambda t, q, dv: configuration.integrate(t.fast, q, dv)),
    "difference": Text(("q0", "q1"), lambda t, q0, q1: configuration.difference(t.fast, q0, q1)),
}
