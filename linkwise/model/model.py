"""`Model`: a mechanism together with its functions, compiled on first use."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from linkwise.algorithms.catalogue import Trees
from linkwise.algorithms.regressor import inertial_parameters
from linkwise.array_types import Array
from linkwise.checks import check_choice
from linkwise.dataclass import dataclass, fields, replace
from linkwise.errors import InputError, no_attribute
from linkwise.mechanism.bodies_and_joints import Named
from linkwise.mechanism.builder import Builder
from linkwise.mechanism.closures.instances import share_of_work
from linkwise.mechanism.dh import add_dh_chain
from linkwise.mechanism.parameters import check_names
from linkwise.memoized import cached_property
from linkwise.model.closures import Constraints
from linkwise.model.contact import Contacts, Touching
from linkwise.model.dynamics import Centroidal, Dynamics, Operational
from linkwise.model.editing import Editing, Files
from linkwise.model.kinematics import InverseKinematics, Kinematics
from linkwise.model.making import list_methods, with_formulas
from linkwise.model.state_space import Sensitivities
from linkwise.model.statics import Statics

if TYPE_CHECKING:
    from linkwise.operators import Operators


ROLLED_ABOVE = 60
"""Bodies above which sweeps are rolled: where unrolled code begins to outgrow the instruction cache."""

ROLLED_ABOVE_TOUCHING = 200
"""The same for bodies that touch: their steps look at links one by one, and are slow to compile where these are one."""

ROLLED_SHARE = 0.25
"""The part of what loops compute that is more than zeros, above which they are worth it."""


class ModelBuilder(Builder):
    """Builds a :class:`Model` body by body.

    >>> import linkwise as lw
    >>> b = lw.ModelBuilder("pendulum")
    >>> b.add_body("rod", joint=lw.Revolute(axis=(0, 1, 0)), mass=1.0, com=(0, 0, -0.5))
    >>> b.build().nv
    1
    """

    def build(self) -> Model:
        """Check the whole and return the finished model; raises ModelError where something does not make sense."""
        return Model(**self.mechanism())


@dataclass(frozen=True, eq=True)
class Model(
    Touching,
    Dynamics,
    Kinematics,
    InverseKinematics,
    Sensitivities,
    Editing,
    Files,
):
    """A mechanism and its dynamics.

    Frozen: every function is a pure function of its arguments, and the ``with_…`` methods return changed copies.

    Every function takes one state or any leading batch axes, broadcasts like NumPy, and returns what it was given:
    float64 in, float64 out; float32 if all inputs are float32; object arrays of symbols run the same text on them.
    ``out=`` takes an array to fill, ``threads=`` splits a batch, ``p=`` gives run-time parameters (nominal values if
    left out). Quaternions need not have length one: only their direction counts.
    """

    _sweeps: Literal["auto", "rolled", "unrolled"] = "auto"

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, instances in with_formulas(self).items():
            object.__setattr__(self, name, Named(instances))

    @cached_property
    def inertial_parameters(self) -> Array:
        """π (10 n_bodies): for each body m, m c (3), and Jxx, Jxy, Jyy, Jxz, Jyz, Jzz about its origin, body axes."""
        return np.array(inertial_parameters(Trees(self).in_body_frames), float)

    # Spatial operators.
    def operators(
        self,
        q: ArrayLike,
        v: ArrayLike | None = None,
        vdot: ArrayLike | None = None,
        *,
        t: ArrayLike | None = None,
        p: ArrayLike | None = None,
        frames: Literal["body", "link"] = "body",
    ) -> Operators:
        """The spatial operators φ, ψ, H, M, P, D, … of a state (or a batch), to be written in expressions.

        Each application of an expression runs as O(n) sweeps. On object arrays of symbols, as inside
        :func:`linkwise.compile`, the sweeps are traced and a whole expression becomes one kernel.

        Args:
            q: configuration (..., nq).
            v: velocity (..., nv); needed for ``V``, ``a``, ``b``, ``f``, ``U`` and the linearised models only.
            vdot: acceleration (..., nv); needed for ``alpha``, ``H_ddot``, ``H_tilde_f`` and ``B_D`` only.
            t: time (...), for closures that depend on it; zero if left out.
            p: run-time parameters (np), one set for all states.
            frames: ``"body"`` gives blocks in the bodies' frames. ``"link"`` gives them in frames chosen along the
                joints, and counts to its parent what of an inertia no joint moves: cheaper when compiled.
                Joint-space results (D, HφMφ*H*, its inverse, HψK, Hφf, …) are the same; vectors and blocks over the
                links are not the bodies', and M, R, P, b and f are regrouped: H M H* alone, say, is not that of the
                bodies.
        """
        from linkwise.operators import operators

        self._check_parameters("operators", p)
        trees = self._trees if p is None else Trees(self, list(np.asarray(p)))
        return operators(trees, q, v, vdot, frames=frames, t=t)

    @classmethod
    def from_dh(
        cls,
        table: ArrayLike,
        convention: Literal["standard", "modified", "saha"] = "standard",
        *,
        joints: Sequence[str] | None = None,
        masses: ArrayLike | None = None,
        coms: ArrayLike | None = None,
        inertias: ArrayLike | None = None,
        armature: ArrayLike = 0.0,
        gravity: Sequence[float] = (0.0, 0.0, -9.81),
        base: ArrayLike | None = None,
        tool: ArrayLike | None = None,
        name: str = "arm",
    ) -> Self:
        """A serial arm from a table of Denavit and Hartenberg; see :mod:`linkwise.mechanism.dh` for the conventions.

        Bodies are ``link1``, …, joints ``joint1``, …; the table's frames are the named frames ``dh1``, …

        Args:
            table: a row (a, α, d, θ) for each joint, in m and rad. What the joint moves is an offset to its coordinate.
            convention: "standard", "modified" (Craig's), or "saha" (Saha 1999 appendix A).
            joints: a letter for each row, "R" or "P", e.g. "RRPRRR"; all revolute if not given.
            masses: kg, for each row. Without them the model has its kinematics, and forward dynamics is not finite.
            coms: mass centre of each link in its table's frame, m. With "saha" it is the paper's r, in frame i + 1:
                the way from the mass centre to the next joint.
            inertias: 3×3 (or its diagonal) about the mass centre of each link, in the axes of its table's frame, kg m².
            armature: rotor inertia, one for all joints or one for each.
            gravity: m/s².
            base: 4×4 pose of the first frame in the world.
            tool: 4×4 pose of a frame ``tool`` in the last of the table's frames.
            name: of the model.
        """
        builder = Builder(name, gravity)
        add_dh_chain(
            builder,
            table,
            convention,
            joints=joints,
            masses=masses,
            coms=coms,
            inertias=inertias,
            armature=armature,
            base=base,
            tool=tool,
        )
        return cls(**builder.mechanism(allow_massless=masses is None))

    # Functions in groups.
    constraints = cached_property(Constraints)
    contacts = cached_property(Contacts)
    centroidal = cached_property(Centroidal)
    statics = cached_property(Statics)
    operational = cached_property(Operational)

    # Run-time parameters.
    def with_parameters(self, names: Iterable[str]) -> Self:
        """A copy in which these constants are inputs: every function takes them as ``p=``, batched like the rest.

        Args:
            names: ``"body.mass"``, ``"body.com"``, ``"body.inertia"``, ``"body.xyz"``, ``"body.rpy"``,
                ``"body.armature"``, of a flexible body ``"body.stiffness"`` and ``"body.loss"``, or ``"gravity"``; see
                :mod:`linkwise.mechanism.parameters`.
        """
        return replace(self, _parameter_names=check_names(self, names))

    @property
    def _rolls(self) -> bool:
        """Whether sweeps run as loops: constant compile time, for many links. See :meth:`with_sweeps`."""
        if self._sweeps != "auto":
            return self._sweeps == "rolled"
        most = ROLLED_ABOVE if self._contact_scene is None else ROLLED_ABOVE_TOUCHING
        return len(self.bodies) > most and self._loops_are_full

    @cached_property
    def _loops_are_full(self) -> bool:
        """Whether loops compute little that written-out code leaves out."""
        return not self.closures or share_of_work(self) > ROLLED_SHARE

    def with_sweeps(self, sweeps: Literal["auto", "rolled", "unrolled"]) -> Self:
        """A copy whose functions run their sweeps as loops ("rolled") or written out ("unrolled").

        Unrolled code is faster and takes longer to compile; "auto" rolls models of more than some sixty bodies, unless
        most of what loops would compute is zero, as where many closures each hold a few bodies side by side.
        """
        check_choice("way to run sweeps", sweeps, ("auto", "rolled", "unrolled"))
        return replace(self, _sweeps=sweeps)

    def with_closure_solver(
        self,
        solver: str,
        *,
        independent: Sequence[str] | None = None,
        at: ArrayLike | None = None,
        t: float | None = None,
    ) -> Self:
        """A copy that finds accelerations under closures by a solver of this name; all give the same numbers.

        Args:
            solver: "auto", which is "branches" where it can be, else "multipliers": λ first, inside the articulated
                recursion; both are right at any configuration. "branches", for closures that each hold a branch of
                their own (the legs of a parallel robot): those first, as inertias of the body they hold; "embedding",
                in independent freedoms, chosen beforehand: the cheapest for mechanisms of few freedoms, and not finite
                where those chosen do not determine the others (a crank's angle does, that of its slider does not at the
                dead centres); "kkt", the full system of v̇ and λ; "nullspace", in
                the null space of J_c with a rank test, on numbers only and outside the compiled code: slow, and
                independent of the others.
            independent: names of joints for "embedding", whose freedoms are as many as the closed mechanism has. Found
                from the configuration if left out.
            at: a configuration (nq) for "embedding", near which there is a closed one that is not singular: there the
                freedoms, and the equations that count, are chosen. Near the neutral one if left out.
            t: time at that configuration, for closures that depend on it.
        """
        from linkwise.model.null_space import with_solver

        return with_solver(self, solver, independent, at, t)

    def __getstate__(self) -> dict[str, Any]:
        """Without what was compiled: it is made again (or read from the cache) where the copy is used."""
        return {f.name: self.__dict__[f.name] for f in fields(self)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def __hash__(self) -> int:
        return hash((self.name, self.gravity, self.parents))  # equal models have equal hashes; slices have none

    def __repr__(self) -> str:
        return f"<Model {self.name!r}: {len(self.bodies)} bodies, nq = {self.nq}, nv = {self.nv}>"

    def _repr_html_(self) -> str | None:
        """In a notebook: a picture and the facts; None where it cannot be drawn."""
        from linkwise.viz.recording import model_picture

        return model_picture(self)

    # Names that others use, which work and are not listed.
    if TYPE_CHECKING:
        rnea = Dynamics.inverse_dynamics
        aba = Dynamics.forward_dynamics
        crba = Dynamics.mass_matrix
    else:

        def __getattr__(self, name: str) -> Any:
            if name in _ALIASES:
                return getattr(self, _ALIASES[name])
            listed = not name.startswith("_") and not hasattr(tuple, name)
            places = (f"model.{g}.{name}" for g in _GROUPS if listed and hasattr(type(getattr(self, g)), name))
            raise no_attribute(f"{type(self).__name__!r} object", name, next(places, None))


_GROUPS = ("limits", "joint_constants", "constraints", "contacts", "centroidal", "operational", "statics")
_ALIASES = {"rnea": "inverse_dynamics", "aba": "forward_dynamics", "crba": "mass_matrix"}


def checked_model(model: object) -> Model:
    """The model that an argument should be."""
    if not isinstance(model, Model):
        raise InputError("this is not a model", got=type(model).__name__, allowed="lw.load(...) or builder.build()")
    return model


list_methods(Model, Centroidal, Constraints, Contacts, Operational)
