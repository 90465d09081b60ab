"""Segments joined two at a time: associative, with a neutral element, and the same accelerations as any other way."""

from __future__ import annotations

import numpy as np
import pytest

from linkwise.algorithms.segments import SEGMENT, Segment, ends_of_both, joined, symmetric
from linkwise.functions.rolled.chain_segments import ParallelForwardDynamics
from linkwise.functions.rolled.on_device import PairwiseForwardDynamics
from tests.functions.rolled.test_long_chain import CUT, chain, state


def random_segment(rng: np.random.Generator, rank: int = 6) -> Segment:
    """P of a given rank and Λ are symmetric and not negative, as those of mechanisms are."""
    roots = rng.normal(size=(2, 6, 6))
    P, Lambda = (root @ root.T for root in (roots[0][:, :rank], roots[1]))
    z, c = rng.normal(size=(2, 6))
    return Segment(P.tolist(), z.tolist(), rng.normal(size=(6, 6)).tolist(), Lambda.tolist(), c.tolist())


def test_the_equations_of_both_hold_at_the_cut() -> None:
    rng = np.random.default_rng(0)
    for rank in (6, 5, 3):
        one, two = random_segment(rng), random_segment(rng, rank)
        both, cut = joined(one, two)
        alpha, F = rng.normal(size=(2, 6))
        (_, F_cut), (alpha_cut, _) = ends_of_both(one, cut, alpha.tolist(), F.tolist())
        np.testing.assert_allclose(np.array(two.P) @ alpha_cut + two.z + np.array(two.Psi) @ F, F_cut, rtol=1e-9)
        tip = np.array(one.Psi).T @ alpha + one.c - np.array(one.Lambda) @ F_cut
        np.testing.assert_allclose(tip, alpha_cut, rtol=1e-9)
        base = np.array(one.P) @ alpha + one.z + np.array(one.Psi) @ F_cut
        np.testing.assert_allclose(np.array(both.P) @ alpha + both.z + np.array(both.Psi) @ F, base, rtol=1e-9)
        tip = np.array(two.Psi).T @ alpha_cut + two.c - np.array(two.Lambda) @ F
        np.testing.assert_allclose(
            np.array(both.Psi).T @ alpha + both.c - np.array(symmetric(both.numbers[63:84])) @ F, tip, rtol=1e-9
        )


def test_associative_and_neutral() -> None:
    rng = np.random.default_rng(1)
    a, b, c = (random_segment(rng) for _ in range(3))
    left = joined(joined(a, b)[0], c)[0].numbers
    right = joined(a, joined(b, c)[0])[0].numbers
    assert len(left) == SEGMENT
    np.testing.assert_allclose(left, right, rtol=1e-8, atol=1e-8)
    nothing = Segment.of_no_links()
    for same in (joined(a, nothing)[0], joined(nothing, a)[0]):
        np.testing.assert_allclose(same.numbers, a.numbers, rtol=0, atol=1e-12 * np.abs(a.numbers).max())


@pytest.mark.parametrize(("kind", "n", "segments"), [*((kind, 37, 5) for kind in CUT), ("revolute", 400, 64)])
def test_the_same_accelerations(kind: str, n: int, segments: int) -> None:
    model = chain(n, CUT[kind], n)
    q, v, tau = state(model)
    expected = model.forward_dynamics(q, v, tau)
    tree = model._trees.aligned
    got = PairwiseForwardDynamics(tree, segments)(q, v, tau)
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-9 * np.abs(expected).max())
    one_by_one = ParallelForwardDynamics(tree, segments)(q, v, tau)
    np.testing.assert_allclose(got, one_by_one, rtol=0, atol=1e-9 * np.abs(expected).max())
    missed = np.abs(model.inverse_dynamics(q, v, got) - tau).max()
    assert missed < 1e-11 * np.abs(model.bias_force(q, v)).max()
