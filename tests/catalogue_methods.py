"""Methods of models by the names of their functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from linkwise.contact.catalogue import EVERY
from linkwise.model.model import Model


def method_of(model: Model, function: str) -> Callable[..., Any]:
    """The method of a model, or of one of its groups, that is this function of the catalogue; or has this name."""
    *groups, name = (EVERY[function].method or function if function in EVERY else function).split(".")
    owner: object = model
    for group in groups:
        owner = getattr(owner, group)
    method: Callable[..., Any] = getattr(owner, name)
    return method
