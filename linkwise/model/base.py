"""The interface of a model that its groups of methods are written on."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, ClassVar, TypedDict

from numpy.typing import ArrayLike, NDArray

from linkwise.mechanism.mechanism import Mechanism

if TYPE_CHECKING:
    from linkwise.algorithms.catalogue import Trees
    from linkwise.functions.function import CompiledFunction
    from linkwise.mechanism.parameters import Parameters
    from linkwise.model.closures import Constraints
    from linkwise.model.dynamics import Centroidal
    from linkwise.model.model import Model
    from linkwise.model.statics import Statics


class ByName(TypedDict, total=False):
    """Arguments that every function of the catalogue takes by name, None if left out."""

    p: ArrayLike | None
    """Run-time parameters (..., np); nominal values if not given."""
    out: NDArray[Any] | None
    """Array to fill."""
    threads: int | None
    """Threads to split a batch over."""


def by_name(function: str, given: ByName) -> tuple[Any, Any, Any]:
    """The arguments p, out and threads; raises TypeError, as Python does, where there are others."""
    for name in given:
        if name not in ByName.__annotations__:
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}")
    return given.get("p"), given.get("out"), given.get("threads")


class Methods(Mechanism):
    """One group of a model's functions: names, arguments and meaning; the model runs them."""

    def __init_subclass__(cls) -> None:
        """The arguments by name are written out in the signatures that people and tools see."""
        super().__init_subclass__()
        _write_out(cls)

    @property
    def _whole(self) -> Model:
        """Itself: these methods are a part of a model and do not stand alone."""
        return self  # type: ignore[return-value]

    def _run(self, name: str, *required: Any, others: ByName | None = None, **more: Any) -> NDArray[Any]:
        """Evaluate a function of the catalogue; ``others`` are as the caller of a method gave them."""
        raise TypeError(f"{type(self).__name__} is a part of a model and cannot stand alone")

    def _check_parameters(self, name: str, p: object) -> None:
        """Raise InputError where a function is given parameters and the model has declared none."""
        raise TypeError(f"{type(self).__name__} is a part of a model and cannot stand alone")

    def _run_at(
        self,
        name: str,
        body: object,
        *required: Any,
        node: str | int | None = None,
        reference: str = "mixed",
        point: Any = None,
        others: ByName | None = None,
    ) -> NDArray[Any]:
        """Evaluate a function of a place: a body or frame by its name, or a node of it."""
        raise TypeError(f"{type(self).__name__} is a part of a model and cannot stand alone")

    def _at(self, body: object, node: str | int | None) -> dict[str, Any]:
        """A place by the checked name of a body or frame, and a node of it."""
        raise TypeError(f"{type(self).__name__} is a part of a model and cannot stand alone")

    if TYPE_CHECKING:
        _trees: Trees

        @property
        def parameters(self) -> Parameters:
            """The declared run-time parameters."""

        @property
        def constraints(self) -> Constraints:
            """The equations of all closures and couplings."""

        @property
        def centroidal(self) -> Centroidal:
            """Momentum and inertia of the whole about its mass centre."""

        @property
        def statics(self) -> Statics:
            """The model at rest."""

        def function(self, name: str, *optional: str, **static: Any) -> CompiledFunction:
            """The compiled function behind a method."""


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
