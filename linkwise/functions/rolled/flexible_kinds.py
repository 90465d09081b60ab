"""A link that deforms and stands for all of its kind."""

from __future__ import annotations

from dataclasses import dataclass

from linkwise.functions.rolled.kinds import Kind, SymbolicLink
from linkwise.mechanism.flexible_link import FlexibleLink


@dataclass(frozen=True, eq=False)
class SymbolicFlexibleLink(SymbolicLink, FlexibleLink):
    """Link whose modes are the same for all of the kind; where it is and on what joint, from the loop's arrays."""

    kind: Kind = None  # type: ignore[assignment]
