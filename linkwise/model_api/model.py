"""`Model`: a mechanism together with its functions, compiled on first use."""

from __future__ import annotations

import inspect
import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from linkwise.algorithms.catalogue import Trees, input_shape, link_start
from linkwise.algorithms.closed_catalogue import EVERY
from linkwise.algorithms.closure_solvers import BY_NUMBERS, TRACED
from linkwise.algorithms.kinematics import configuration_rate
from linkwise.algorithms.regressor import inertial_parameters
from linkwise.compiled.arrays import is_one_state, is_plain_batch
from linkwise.compiled.function import Chart, CompiledFunction
from linkwise.errors import InputError, UnknownNameError
from linkwise.model.builder import Builder
from linkwise.model.dh import add_dh_chain
from linkwise.model.mechanism import Mechanism
from linkwise.model.parameters import Parameter, check_names, parameters
from linkwise.model_api.closed_dynamics import ClosedDynamics
from linkwise.model_api.closed_linearization import ClosedLinearization
from linkwise.model_api.closures import Closures
from linkwise.model_api.dynamics import Dynamics
from linkwise.model_api.editing import Editing
from linkwise.model_api.energy import Energies
from linkwise.model_api.inverse_kinematics import InverseKinematics
from linkwise.model_api.kinematics import Kinematics
from linkwise.model_api.linearization import Linearization
from linkwise.model_api.memory import Memory, shadow
from linkwise.model_api.operational import Operational
from linkwise.model_api.sensitivity import Sensitivities
from linkwise.model_api.state_space import StateSpaces
from linkwise.model_api.statics import Statics
from linkwise.once import cached_property, once
from linkwise.spatial.scalar import is_exact

if TYPE_CHECKING:
    from linkwise.operators import Operators

Array = NDArray[Any]

BY_NUMBERS_ALONE = ("forward_dynamics", "constraint_forces", "project_velocity", "impulse")
"""Functions that a closure solver answers."""

ROLLED_ABOVE = 60
"""Bodies above which sweeps are rolled: where unrolled code begins to outgrow the instruction cache."""


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
    Dynamics,
    Kinematics,
    InverseKinematics,
    Energies,
    Operational,
    Closures,
    ClosedDynamics,
    ClosedLinearization,
    Linearization,
    StateSpaces,
    Sensitivities,
    Editing,
    Statics,
    Mechanism,
):
    """A mechanism and its dynamics.

    Frozen: every function is a pure function of its arguments, and the ``with_…`` methods return changed copies.

    Every function takes one state or any leading batch axes, broadcasts like NumPy, and returns what it was given:
    float64 in, float64 out; float32 if all inputs are float32; object arrays of symbols run the same text on them.
    ``out=`` takes an array to fill, ``threads=`` splits a batch, ``p=`` gives run-time parameters (nominal values if
    left out). Quaternions need not have length one: only their direction counts.
    """

    sweeps: Literal["auto", "rolled", "unrolled"] = "auto"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything that the model has to a native file, which :func:`linkwise.load` reads again, bit by bit.

        Large arrays (those of flexible bodies) go into an archive beside it, ``name.lw.npz``. What is a program cannot
        be stored and is refused with its name: user-defined joints, closures that hold functions.

        >>> import linkwise as lw
        >>> from linkwise.models import stanford_arm
        >>> stanford_arm().save("arm.lw.json")
        >>> lw.load("arm.lw.json") == stanford_arm()
        True

        Args:
            path: a name that ends in ``.lw.json``.
        """
        from linkwise.native import save

        save(self, path)

    def to_urdf(self, path: str | os.PathLike[str]) -> list[str]:
        """Write a URDF file, and return what it cannot say.

        Joints of several freedoms become joints of one in series; loops go into a side file, ``name.loops.yaml``, for
        ``load(..., loops=...)``. Flexible bodies and user-defined joints are refused.
        """
        from linkwise.writing.urdf import write_urdf

        return write_urdf(self, path)

    def to_mjcf(self, path: str | os.PathLike[str]) -> list[str]:
        """Write an MJCF file for MuJoCo, and return what it cannot say.

        Closures and joints that follow others become equality constraints, which MuJoCo meets softly. Flexible bodies
        and user-defined joints are refused.
        """
        from linkwise.writing.mjcf import write_mjcf

        return write_mjcf(self, path)

    @cached_property
    def inertial_parameters(self) -> Array:
        """π (10 n_bodies): for each body m, m c (3), and Jxx, Jxy, Jyy, Jxz, Jyz, Jzz about its origin, body axes."""
        return np.array(inertial_parameters(Trees(self).in_body_frames), float)

    # Spatial operators.
    def operators(
        self,
        q: ArrayLike,
        v: ArrayLike | None = None,
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
            v: velocity (..., nv); needed for ``V``, ``a``, ``b``, ``f`` and ``U`` only.
            t: time (...), for closures that depend on it; zero if left out.
            p: run-time parameters (np), one set for all states.
            frames: ``"body"`` gives blocks in the bodies' frames. ``"link"`` gives them in frames chosen along the
                joints, with what of an inertia a joint does not feel handed to its parent: cheaper when compiled.
                Joint-space results (D, HφMφ*H*, its inverse, HψK, Hφf, …) are the same; vectors and blocks over the
                links are not the bodies', and M, R, P, b and f are regrouped: H M H* alone, say, is not that of the
                bodies.
        """
        from linkwise.operators import operators

        if p is not None and not self.parameter_names:
            raise _no_parameters("operators")
        trees = self._trees if p is None else Trees(self, list(np.asarray(p)))
        return operators(trees, q, v, frames, t)

    # Configurations.
    def neutral(self) -> Array:
        """The zero configuration (nq)."""
        q = np.zeros(self.nq)
        for joint in self.joints:
            if joint.mimic is None:
                q[joint.q_slice] = joint.type.neutral()
        return q

    def random_configuration(
        self, rng: np.random.Generator | int | None = None, size: int | tuple[int, ...] | None = None
    ) -> Array:
        """A random configuration (nq) within the joint limits (±π rad, ±1 m where there are none).

        Flexible bodies are bent a little: each mode moves no node by more than 2 % of the body's size.

        Args:
            rng: a generator, or a seed.
            size: how many, as NumPy's generators take it: ``size=100`` gives (100, nq), ``size=(4, 5)`` (4, 5, nq).
        """
        generator = np.random.default_rng(rng)
        if size is not None:
            shape = (size,) if isinstance(size, (int, np.integer)) else tuple(size)
            many = [self.random_configuration(generator) for _ in range(math.prod(shape))]
            return np.array(many, float).reshape(*shape, self.nq)
        q = np.zeros(self.nq)
        for joint in self.joints:
            if joint.mimic is None:
                part = joint.q_slice
                q[part] = joint.type.random(generator, self.lower[part].tolist(), self.upper[part].tolist())
        for body in self.bodies:
            if body.flexible is not None:
                q[body.q_slice] = body.flexible.random_deformation(generator)
        return q

    def integrate(self, q: ArrayLike, dv: ArrayLike, *, out: Array | None = None, threads: int | None = None) -> Array:
        """The configuration (..., nq) reached from q by the constant velocity dv (..., nv) in unit time."""
        return self._run("integrate", q, dv, out=out, threads=threads)

    def difference(
        self, q0: ArrayLike, q1: ArrayLike, *, out: Array | None = None, threads: int | None = None
    ) -> Array:
        """The dv (..., nv) for which ``integrate(q0, dv)`` is q1."""
        return self._run("difference", q0, q1, out=out, threads=threads)

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
        """A serial arm from a table of Denavit and Hartenberg; see :mod:`linkwise.model.dh` for the conventions.

        Bodies are ``link1``, …, joints ``joint1``, …; the table's frames are the named frames ``dh1``, …

        Args:
            table: a row (a, α, d, θ) for each joint, in m and rad. What the joint moves is an offset to its coordinate.
            convention: "standard", "modified" (Craig's), or "saha" (002 appendix A).
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

    # Run-time parameters.
    def with_parameters(self, names: Iterable[str]) -> Self:
        """A copy in which these constants are inputs: every function takes them as ``p=``, batched like the rest.

        Args:
            names: ``"body.mass"``, ``"body.com"``, ``"body.inertia"``, ``"body.xyz"``, ``"body.rpy"``,
                ``"body.armature"``, of a flexible body ``"body.stiffness"`` and ``"body.loss"``, or ``"gravity"``; see
                :mod:`linkwise.model.parameters`.
        """
        return replace(self, parameter_names=check_names(self, names))

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """The declared run-time parameters, their places in p and their nominal values."""
        return parameters(self)

    @property
    def nominal_parameters(self) -> Array:
        """Parameters p (np) with the values the model was built with."""
        return np.array([x for parameter in self.parameters for x in parameter.nominal], float)

    # Compiled functions.
    def function(self, name: str, *optional: str, **static: Any) -> CompiledFunction:
        """The compiled function behind a method, to look at its counts, program and source.

        Args:
            name: of the method.
            optional: names of optional arrays it takes (``"f_ext"``, ``"point"``, ``"t"``).
            static: arguments that are not arrays (``body="hand"``).
        """
        key = (name, optional, tuple(sorted(static.items())))
        function: CompiledFunction | None = self._functions.get(key)
        return function or once(self._functions, key, lambda: self._make(name, optional, static))

    def _make(self, name: str, optional: tuple[str, ...], static: dict[str, Any]) -> CompiledFunction:
        if name not in EVERY:
            raise UnknownNameError("function", name, EVERY)
        text = EVERY[name]
        names = (*text.inputs, *(n for n in text.optional if n in optional), *(("p",) if self.parameter_names else ()))

        def run(*flat: Sequence[Any]) -> Any:
            given = dict(zip(names, flat, strict=True))
            exact = any(is_exact(x) for array in flat for x in array)
            plain = self._exact_trees if exact else self._trees
            trees = Trees(self, given.pop("p", None), exact) if self.parameter_names else plain
            arguments = [given.get(n) for n in (*text.inputs, *text.optional)]
            result = text.function(trees, *arguments, **static)
            return np.empty(text.empty, object) if isinstance(result, list) and not result else result

        doc = getattr(getattr(type(self), name, None), "__doc__", None) or ""
        inputs = [(n, input_shape(self, n)) for n in names]
        charts = {n: self.chart for n in names if link_start(n) == "q"}
        if self.closure_solver in BY_NUMBERS and self.closures and name in BY_NUMBERS_ALONE:
            from linkwise.model_api.state_by_state import solved_by_numbers

            return solved_by_numbers(self, name, run, inputs, doc, charts)
        if self.rolls:
            from linkwise.rolled.choose import rolled_function

            return rolled_function(self, name, run, inputs, doc, static, charts)
        return CompiledFunction(name, run, inputs, doc, charts)

    @property
    def rolls(self) -> bool:
        """Whether sweeps run as loops: constant compile time, for many links. See :meth:`with_sweeps`."""
        if self.sweeps != "auto":
            return self.sweeps == "rolled"
        # Many closures add many columns to every sweep, most of them zeros that only written-out code can leave out.
        return len(self.bodies) > ROLLED_ABOVE * (1 + len(self.closures) // 4)

    def with_sweeps(self, sweeps: Literal["auto", "rolled", "unrolled"]) -> Self:
        """A copy whose functions run their sweeps as loops ("rolled") or written out ("unrolled").

        Unrolled code is faster and takes longer to compile; "auto" rolls models of more than some sixty bodies, sixty
        more for every four closures.
        """
        if sweeps not in ("auto", "rolled", "unrolled"):
            raise InputError("no such way to run sweeps", got=repr(sweeps), allowed='"auto", "rolled" or "unrolled"')
        return replace(self, sweeps=sweeps)

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
        if solver not in (*TRACED, *BY_NUMBERS):
            raise UnknownNameError("closure solver", solver, (*TRACED, *BY_NUMBERS))
        if solver != "embedding":
            given = [name for name, x in (("independent", independent), ("at", at), ("t", t)) if x is not None]
            if given:
                raise InputError(
                    f"the closure solver {solver!r} chooses no freedoms",
                    got=", ".join(given),
                    allowed='these are for "embedding"',
                )
            named = replace(self, closure_solver=solver, closure_reference=None)
            if solver == "branches":
                named._trees.closed(named.neutral().tolist(), [0.0] * self.nv, None)  # says so now if it cannot be
            return named
        from linkwise.model_api.embedding import reference

        chosen = replace(self, closure_solver=solver, closure_reference=reference(self, independent, at, t))
        chosen._trees.pivots()  # says so now if those named are not independent
        return chosen

    def _run(
        self,
        name: str,
        *required: Any,
        p: Any = None,
        out: Any = None,
        threads: int | None = None,
        f_ext: Any = None,
        point: Any = None,
        t: Any = None,
        at_v: Any = None,
        active: Any = None,
        **static: Any,
    ) -> Array:
        arrays, optional = list(required), []
        for extra, value in (("f_ext", f_ext), ("point", point), ("t", t), ("v", at_v), ("active", active)):
            if value is not None:
                arrays.append(np.asarray(value) if isinstance(value, (int, float)) else value)
                optional.append(extra)
        if self.parameter_names:
            arrays.append(self._nominal_beside(arrays) if p is None else p)
        elif p is not None:
            raise _no_parameters(name)
        function = self.function(name, *optional, **static)
        result: Array = function(*arrays, out=out, threads=threads)
        if not (optional or static or self.parameter_names or out is not None or threads is not None):
            self._install(name, function, arrays)
        return result

    def _nominal_beside(self, arrays: Sequence[Any]) -> Array:
        """The nominal parameters in single precision if all else is: what was not given does not decide it."""
        single = all(getattr(array, "dtype", None) == np.float32 for array in arrays)
        return self.nominal_parameters.astype(np.float32 if single else np.float64)

    def _install(self, name: str, function: CompiledFunction, arrays: Sequence[Any]) -> None:
        """Shadow the method, on this object, by a builtin for calls like the one just served, which hands back others.

        Not where a subclass has a method of its own by that name: that is the one to be called.
        """
        method = _METHODS.get(name)
        if method is None or getattr(type(self), name) is not method:
            return
        shadows = Memory.of(self).table("serve one state")  # by name
        one_state = is_one_state(arrays, function.inputs)
        if name in shadows and (shadows[name] or not one_state):
            return
        if one_state or is_plain_batch(arrays, function.inputs):
            bound = method.__get__(self)
            shown = _without_annotations(inspect.signature(bound))
            fast = function.builtin(bound, name, shown, one_state=one_state)
            shadows[name] = one_state or fast is None
            if fast is not None:
                shadow(self, name, fast)

    @cached_property
    def _functions(self) -> dict[Any, Any]:
        return Memory.of(self).table("functions")

    @cached_property
    def chart(self) -> Chart:
        """The tangent space of the configuration: q̇ from v, over any scalar; derivatives by q are taken in it."""
        return Chart(self.nv, lambda q, v: configuration_rate(self._trees.fast, q, v))

    @cached_property
    def _trees(self) -> Trees:
        return Trees(self)

    @cached_property
    def _exact_trees(self) -> Trees:
        return Trees(self, exact=True)

    def _at(self, body: object, node: str | int | None) -> dict[str, Any]:
        if not isinstance(body, str):
            raise InputError(
                "body must be a name", got=repr(body), allowed="the name of a body or frame, e.g. model.bodies[0].name"
            )
        self.frame(body, node)
        return {"body": body} if node is None else {"body": body, "node": node}

    def __getstate__(self) -> dict[str, Any]:
        """Without what was compiled: it is made again (or read from the cache) where the copy is used."""
        from dataclasses import fields

        return {f.name: self.__dict__[f.name] for f in fields(self)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def __hash__(self) -> int:
        return hash((self.name, self.gravity, self.parents))  # equal models have equal hashes; slices have none

    def __repr__(self) -> str:
        return f"<Model {self.name!r}: {len(self.bodies)} bodies, nq = {self.nq}, nv = {self.nv}>"

    def _repr_html_(self) -> str | None:
        """In a notebook: a picture and the facts; None where it cannot be drawn. What draws lies above this layer."""
        html: str | None = import_module("linkwise.viz.inline").model_picture(self)
        return html

    rnea = Dynamics.inverse_dynamics
    aba = Dynamics.forward_dynamics
    crba = Dynamics.mass_matrix


_METHODS = {name: getattr(Model, name) for name in EVERY if hasattr(Model, name)}


def _without_annotations(signature: inspect.Signature) -> str:
    """A signature as builtin functions can show it."""
    plain = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    return str(signature.replace(parameters=plain, return_annotation=signature.empty))


def _no_parameters(name: str) -> Exception:
    return InputError(
        f"{name} was given p, but this model has no run-time parameters",
        do='declare them first: model.with_parameters(["body.mass", …])',
    )
