"""Flexible bodies: finite-element sources, modal reduction, modal integrals. Data only; no recursion, no tree.

`FlexibleBody` is what comes out; `Section` and `Member` describe beams and frames; `Choice` explains the keywords
that say which modes are kept.
"""

from linkwise.flexible.body import FlexibleBody, FlexibleNode
from linkwise.flexible.checks import StructureCheck, check
from linkwise.flexible.choice import Choice
from linkwise.flexible.frame import Member
from linkwise.flexible.integrals import ModalIntegrals
from linkwise.flexible.material import Section
from linkwise.flexible.reduction import Reduction

__all__ = [
    "Choice",
    "FlexibleBody",
    "FlexibleNode",
    "Member",
    "ModalIntegrals",
    "Reduction",
    "Section",
    "StructureCheck",
    "check",
]
