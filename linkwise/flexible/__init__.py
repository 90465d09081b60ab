"""Flexible bodies: finite-element sources, modal reduction, modal integrals. Data only; no recursion, no tree.

`FlexibleBody` is what comes out; `Section` and `Member` describe beams and frames; `Choice` explains the keywords
that say which modes are kept.
"""

from linkwise.flexible.body import FlexibleBody, FlexibleNode
from linkwise.flexible.frame import Member
from linkwise.flexible.integrals import ModalIntegrals
from linkwise.flexible.mode_choice import Choice
from linkwise.flexible.reduction import Reduction
from linkwise.flexible.section import Section
from linkwise.flexible.structure_checks import StructureCheck, check

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
