"""What the groups of methods ask of the model that they are part of."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray


class Methods:
    """One group of a model's functions: names, arguments and meaning; the model runs them."""

    def _run(self, name: str, *required: Any, **others: Any) -> NDArray[Any]:
        """Evaluate a function of the catalogue."""
        raise TypeError(f"{type(self).__name__} is a part of a model and cannot stand alone")

    def _check_parameters(self, name: str, p: object) -> None:
        """Raise InputError where a function is given parameters and the model has declared none."""
        raise TypeError(f"{type(self).__name__} is a part of a model and cannot stand alone")

    def _at(self, body: object, node: str | int | None) -> dict[str, Any]:
        """A place by the checked name of a body or frame, and a node of it."""
        raise TypeError(f"{type(self).__name__} is a part of a model and cannot stand alone")
