"""What the tests of the operators share: trees with states, and how far two operators differ."""

from __future__ import annotations

import numpy as np

from linkwise.operators.atoms import WrittenOut
from linkwise.operators.expressions import Identity, Inverse, Sum, Transposed, product
from linkwise.operators.operator import Operator
from tests.random_trees import random_state, random_tree


def tree_and_operators(seed, n, *, armature=0.0, batch=(), **how):
    """A random tree of all joint types, the operators of a random state, and the state."""
    rng = np.random.default_rng(seed)
    model = random_tree(rng, n, armature=armature, **how)
    q, v, vdot = random_state(model, rng, batch)
    return model, model.operators(q, v, vdot), (q, v, vdot)


def eagerly(function, *arrays):
    """One of the model's functions for one state, run on its text and not compiled: quicker for a single call."""
    return np.asarray(function(*(np.asarray(a, object) for a in arrays)), float)


def largest(x):
    return float(np.abs(x).max(initial=0.0))


def difference(left: Operator, right: Operator, x) -> float:
    """max |left x - right x|, relative to the largest number that the sums on either side add up. x: columns."""
    if isinstance(left, Inverse):  # A⁻¹ = B is tested as A B = I and B A = I
        one = Identity(left.engine, left.rows)
        return max(difference(product(*pair), one, x) for pair in ((left.operator, right), (right, left.operator)))
    scale = max(largest(y) for op in (left, right) for y in summands(op, x))
    return largest(left @ x - right @ x) / scale if scale else 0.0


def summands(op: Operator, x) -> list:
    """The operator applied with, for each sum in it, one term alone: what cancels in the sums counts too."""
    values = [x]
    for factor in reversed(getattr(op, "factors", (op,))):
        sizes = [added_up(factor, y) for y in values]
        parts = terms(factor)
        values = [z for y in values for p in parts for z in ([p @ y] if parts == [factor] else summands(p, y))]
        values = sorted([*values, *(size for size in sizes if size is not None)], key=largest)[-6:]
    return values


def added_up(factor: Operator, y):
    """|X| |y| of a matrix X that is written out: V×H* of one hinge is nothing but the rounding of such sums."""
    bare, adjoint = (factor.operator, True) if isinstance(factor, Transposed) else (factor, False)
    if not isinstance(bare, WrittenOut):
        return None
    size = np.abs(bare.matrix)
    return (size.swapaxes(-1, -2) if adjoint else size) @ np.abs(y)


def terms(factor: Operator) -> list:
    """The terms of a sum; τ̄ = I - τ and E_ψ = E_φ - KH are sums too, and lose digits when little is left of them."""
    ops = factor.engine.owner
    if isinstance(factor, Transposed):
        return [term.T for term in terms(factor.operator)]
    if isinstance(factor, Sum):
        return [term for _, term in factor.terms]
    return {
        "tau_bar": [ops.identity("links"), ops.tau],
        "E_psi": [ops.E_phi, ops.K @ ops.H],
    }.get(factor.key, [factor])
