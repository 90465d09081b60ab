"""The six algorithms of Jain 1993 on the chains the paper treats."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.algorithms.catalogue import Trees
from linkwise.classics.linearized import LINEARIZED
from linkwise.functions.counting import linearized_counts
from tests.derivatives.differences import eager, relative
from tests.random_trees import random_state, random_tree


@pytest.mark.parametrize("algorithm", LINEARIZED, ids=lambda a: a.name)
@pytest.mark.parametrize("n", [1, 2, 5])
def test_algorithm(algorithm: object, n: int) -> None:
    rng = np.random.default_rng(n)
    model = random_tree(rng, n, ("revolute",), branching=0.0, armature=0.0, structured=0.2)
    q, v, tau = random_state(model, rng)
    dq, dv, dx = rng.normal(size=(3, n))
    forward = eager(model, "linearize_forward", q, v, tau)
    inverse = eager(model, "linearize_inverse", q, v, forward.vdot)
    delta_tau = inverse.dq @ dq + inverse.dv @ dv + inverse.dvdot @ dx
    delta_vdot = forward.dq @ dq + forward.dv @ dv + forward.dtau @ dx
    forward_matrices = (forward.dtau, -forward.dv, -forward.dq)
    expected = {
        1: (delta_tau,),
        2: (inverse.dvdot, inverse.dv, inverse.dq),
        3: (delta_vdot,),
        4: forward_matrices,
        5: (delta_vdot,),
        6: forward_matrices,
    }[algorithm.number]  # type: ignore[attr-defined]
    changes = [x.tolist() for x in (dq, dv, dx)] if algorithm.changes else []  # type: ignore[attr-defined]
    tree = Trees(model).in_body_frames
    result = algorithm.function(tree, q.tolist(), v.tolist(), forward.vdot.tolist(), *changes)  # type: ignore[attr-defined]
    arrays = result if isinstance(result, tuple) else (result,)
    for ours, theirs in zip(arrays, expected, strict=True):
        assert relative(np.array(ours, float), theirs) < 1e-8


def test_only_chains_of_hinges() -> None:
    model = random_tree(0, 3, ("prismatic",), branching=0.0)
    with pytest.raises(lw.InputError, match="Revolute"):
        LINEARIZED[0].function(Trees(model).in_body_frames, *[[0.0] * 3] * 6)


def test_counts_beside_the_paper() -> None:
    """Counted, the matrices cost no more than printed, and the library's own less than that for n = 6."""
    rows = {row.number: row for row in linearized_counts(6)}
    for number in (1, 2, 4, 6):
        assert rows[number].counted[0] <= rows[number].printed[0]
        assert rows[number].counted[1] <= rows[number].printed[1]
    for number in (1, 2, 6):
        own = rows[number].own
        assert own is not None
        assert own[0] <= 0.8 * rows[number].printed[0]
    # Of O(n): the same more for each link.
    one, two, three = (linearized_counts(n)[4].counted[0] for n in (6, 7, 8))
    assert two - one == three - two
