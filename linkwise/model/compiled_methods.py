"""The base of a model's methods: functions of the catalogue, compiled when first asked for, and how they are called."""

from __future__ import annotations

import inspect
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypedDict

import numpy as np
from numpy.typing import ArrayLike

from linkwise.algorithms.catalogue import Trees
from linkwise.algorithms.kinematics import REFERENCES, configuration_rate
from linkwise.array_types import Array, MaybeArray
from linkwise.contact.catalogue import CONTACT, EVERY
from linkwise.errors import InputError
from linkwise.functions.function import Chart, CompiledFunction
from linkwise.mechanism.mechanism import Mechanism
from linkwise.mechanism.parameters import Parameters, parameters
from linkwise.memoized import Memory, cached_property, once
from linkwise.model.making import install, install_at, made

if TYPE_CHECKING:
    from linkwise.model.closures import Constraints
    from linkwise.model.model import Model
    from linkwise.model.statics import Statics


class ByName(TypedDict, total=False):
    """Arguments that every function of the catalogue takes by name, None if left out."""

    p: ArrayLike | None
    """Run-time parameters (..., np); nominal values if not given."""
    out: Array | tuple[Array, ...] | None
    """Array to fill; a tuple of them where several are returned."""
    threads: int | None
    """Threads to split a batch over."""


def by_name(function: str, given: ByName) -> tuple[MaybeArray, object, int | None]:
    """The arguments p, out and threads; raises TypeError, as Python does, where there are others."""
    for name in given:
        if name not in ByName.__annotations__:
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}")
    return given.get("p"), given.get("out"), given.get("threads")


class Methods(Mechanism):
    """A group of a model's functions, as methods: names, arguments and meaning."""

    def __init_subclass__(cls) -> None:
        """The arguments by name are written out in the signatures that people and tools see."""
        super().__init_subclass__()
        _write_out(cls)

    @property
    def _whole(self) -> Model:
        """Itself: these methods are a part of a model and do not stand alone."""
        return self  # type: ignore[return-value]

    @cached_property
    def parameters(self) -> Parameters:
        """The declared run-time parameters, their places in p and their nominal values."""
        return parameters(self)

    def function(self, name: str, *optional: str, **static: object) -> CompiledFunction:
        """The compiled function behind a method, to look at its counts, program and source.

        Args:
            name: of the method, with its group if it is in one: ``"constraints.jacobian"``.
            optional: names of optional arrays it takes (``"f_ext"``, ``"point"``, ``"t"``).
            static: arguments that are not arrays (``body="hand"``).
        """
        key = (name, optional, tuple(sorted(static.items())))
        return self._functions.get(key) or once(self._functions, key, lambda: self._made(name, optional, static))

    def _made(self, name: str, optional: tuple[str, ...], static: Mapping[str, object]) -> CompiledFunction:
        if name in CONTACT:
            self._whole._check_contacts(name)
        function = made(self._whole, name, optional, static)
        function.origin = lambda: (_function_of, (self._whole, name, optional, static))
        return function

    def _run(
        self,
        name: str,
        *required: ArrayLike,
        others: ByName | None = None,
        p: ArrayLike | None = None,
        out: object = None,
        threads: int | None = None,
        by: tuple[str, ...] = (),
        **more: object,
    ) -> Array:
        """Evaluate a function of the catalogue, or its Jacobians ``by`` some of its inputs.

        ``others`` are as the caller of a method gave them.
        """
        if others:
            p, out, threads = by_name(name, others)
        arrays: list[object] = list(required)
        optional = []
        for extra in EVERY[name].optional:
            value = more.pop(extra, None)
            if value is not None:
                arrays.append(np.asarray(value) if isinstance(value, (int, float)) else value)
                optional.append(extra)
        static = {key: value for key, value in more.items() if value is not None}
        if self._parameter_names:
            arrays.append(self._nominal_beside(arrays) if p is None else p)
        else:
            self._check_parameters(name, p)
        function = self.function(name, *optional, **static)
        if by:
            function = function.jacobians(*by)
        result: Array = function(*arrays, out=out, threads=threads)
        if not (by or optional or static or self._parameter_names):
            install(self._whole, name, function, arrays)
        return result

    def _run_at(
        self,
        name: str,
        body: object,
        *required: ArrayLike,
        node: str | int | None = None,
        reference: str = "mixed",
        point: ArrayLike | None = None,
        others: ByName | None = None,
    ) -> Array:
        """Evaluate a function of a place: a body or frame by its name, or a node of it."""
        if reference not in REFERENCES:
            raise InputError("no such reference", got=repr(reference), allowed='"mixed", "local" or "world"')
        at = self._at(body, node) | ({} if reference == "mixed" else {"reference": reference})
        result = self._run(name, *required, point=point, others=others, **at)
        if len(at) == 1 and point is None and not self._parameter_names:
            install_at(self._whole, name, str(body), self.function(name, **at))
        return result

    def _check_parameters(self, name: str, p: object) -> None:
        """Raise InputError where a function is given parameters and the model has declared none."""
        if p is not None and not self._parameter_names:
            raise InputError(
                f"{name} was given p, but this model has no run-time parameters",
                do='declare them first: model.with_parameters(["body.mass", …])',
            )

    def _nominal_beside(self, arrays: Sequence[object]) -> Array:
        """The nominal parameters in single precision if all else is: what was not given does not decide it."""
        single = all(getattr(array, "dtype", None) == np.float32 for array in arrays)
        return self.parameters.nominal.astype(np.float32 if single else np.float64)

    @cached_property
    def _functions(self) -> dict[Hashable, CompiledFunction]:
        return Memory.of(self).table("functions")

    @cached_property
    def _chart(self) -> Chart:
        """The tangent space of the configuration: q̇ from v, over any scalar; derivatives by q are taken in it."""
        return Chart(self.nv, lambda q, v: configuration_rate(self._trees.fast, q, v))

    @cached_property
    def _trees(self) -> Trees:
        return Trees(self)

    @cached_property
    def _exact_trees(self) -> Trees:
        return Trees(self, exact=True)

    def _at(self, body: object, node: str | int | None) -> dict[str, Any]:
        """A place by the checked name of a body or frame, and a node of it."""
        if not isinstance(body, str):
            raise InputError(
                "body must be a name", got=repr(body), allowed="the name of a body or frame, e.g. model.bodies[0].name"
            )
        self.frame(body, node)
        return {"body": body} if node is None else {"body": body, "node": node}

    if TYPE_CHECKING:  # what the whole model has besides

        @property
        def constraints(self) -> Constraints:
            """The equations of all closures and couplings."""

        @property
        def statics(self) -> Statics:
            """The model at rest."""


def _function_of(model: Model, name: str, optional: tuple[str, ...], static: Mapping[str, object]) -> CompiledFunction:
    return model.function(name, *optional, **static)


class Group:
    """Functions of a model that are found together under one name: ``model.constraints.jacobian(q)``."""

    attribute: ClassVar[str]
    """Its name on the model."""

    def __init__(self, model: Model) -> None:
        self.model = model

    def __init_subclass__(cls) -> None:
        """The arguments by name are written out in the signatures, as for the model's own methods."""
        super().__init_subclass__()
        _write_out(cls)

    def __reduce__(self) -> tuple[Any, ...]:
        """As an attribute of the model."""
        return getattr, (self.model, self.attribute)

    def __repr__(self) -> str:
        return f"<{self.attribute} of {self.model!r}>"


def _write_out(cls: type) -> None:
    for method in vars(cls).values():
        if getattr(method, "__annotations__", {}).get("others") == "Unpack[ByName]":
            method.__signature__ = _written_out(inspect.signature(method))


def _written_out(signature: inspect.Signature) -> inspect.Signature:
    """A signature with the arguments of :class:`ByName` in place of ``**others``."""
    *own, last = signature.parameters.values()
    if last.kind is not last.VAR_KEYWORD:  # a second name of a method
        return signature
    named = [
        inspect.Parameter(name, last.KEYWORD_ONLY, default=None, annotation=kind.__forward_arg__)
        for name, kind in ByName.__annotations__.items()
    ]
    return signature.replace(parameters=[*own, *named])
