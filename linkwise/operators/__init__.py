"""The spatial operator algebra: operators that run as sweeps, expressions of them, and the identities between them.

Example::

    ops = model.operators(q, v)
    I, H, phi, psi, M, K, D = ops.I, ops.H, ops.phi, ops.psi, ops.M, ops.K, ops.D
    (H @ phi @ M @ phi.T @ H.T).inv()          # (I − HψK)* D⁻¹ (I − HψK)
"""

from linkwise.operators.operator import Operator
from linkwise.operators.rewrite import Step, expand, explain, inverse, rewrite, simplify
from linkwise.operators.rules import RULES, Rule, rules
from linkwise.operators.stacked_vectors import Vector
from linkwise.operators.state import Operators, operators

__all__ = [
    "RULES",
    "Operator",
    "Operators",
    "Rule",
    "Step",
    "Vector",
    "expand",
    "explain",
    "inverse",
    "operators",
    "rewrite",
    "rules",
    "simplify",
]
