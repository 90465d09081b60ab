"""Steps of bodies that move alone: they create no energy, and impulses explain the motion.

Where nothing but contact couples rigid bodies, the energy that a step creates is that of four works, each of which is
led to zero or below:

- Bias forces do none at the mean of the velocities before and after the step: v̄ is that mean, impulses of this very
  step included. It is found by solving again with the mean of the last solution, a few times after a blow, never for
  what stands.
- The way goes on with v⁺ instead of the mean (:meth:`linkwise.contact.step.MiddleOfStep.end`) as far as contacts have
  paid for what is lifted by that; and farther, where contacts did work that it takes back: v⁺ is what implicit Euler
  steps move with, and those lose energy.
- Normals do work λ(w + w⁺)/2 where surfaces that part are held, or overlaps recover. Only where the way does not take
  it back, surfaces may part no faster than they came, w⁺ ≤ -w.
- Tangents likewise: where that is not enough, friction opposes the mean slip.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from linkwise.algorithms.energy import kinetic_energy, mass, momentum
from linkwise.algorithms.inverse_dynamics import Forces
from linkwise.contact.cones import Cone, Response
from linkwise.contact.passivity import work_in_step
from linkwise.mechanism.contacts import ContactRules
from linkwise.spatial.scalar import Scalar, hold, maximum, minimum, repeated_while, where
from linkwise.spatial.vectors import Vec

if TYPE_CHECKING:
    from linkwise.contact.step import MiddleOfStep, Velocities

Flat = Sequence[Scalar]

FAINT, FAINT_SINGLE = 5e-11, 1e-6
"""m/s, at which normal impulses may do work: with sixteen digits, and with seven."""

PASSES = 4
"""The least number of evaluations of bias forces before the first solution: what flies then needs no other."""

ROUNDS = 8
"""The most solutions after the first."""

SLOW = 1.2e-7
"""m/s, below which bodies stand: overlaps part as if it cost nothing, with one slope on both sides, as derivatives say.
Differences by larger steps than that meet the kink where bodies begin to move."""

LEAVING = 4.0
"""Of the speed with which an overlap would be left in a step, where bodies count as standing."""

CLOSE_ALONE = 1e-12
"""m, by which surfaces of such bodies may overlap where they meet."""

SAME, SAME_SINGLE = 1e-17, 1e-12
"""Of the square of a mean velocity, how well it is to be known: with sixteen digits, and with seven."""

_DERIVED = 4  # times that derivatives of the mean follow those of its solution: each is a hundred times smaller
_TINY = 1e-30


class Acting(NamedTuple):
    """Joint forces, and forces on links."""

    tau: Flat
    f_ext: Forces


def are_alone(middle: MiddleOfStep) -> bool:
    """Whether nothing but contact couples the bodies."""
    free = all(link.parent < 0 and not link.modes and not link.is_mimic for link in middle.tree)
    return free and not middle.holding.pulls.count


def settled(
    middle: MiddleOfStep, response: Response, first: Velocities, mean: Flat, acting: Acting, rules: ContactRules
) -> tuple[Response, Velocities, list[Scalar]]:
    """The solution whose bias forces are those of its own mean velocity, its cones, and that mean.

    Args:
        middle: of the step.
        response: the cones.
        first: a solution with bias forces of another mean.
        mean: that mean.
        acting: forces.
        rules: of solving.
    """
    nv, n, same = len(middle.v), len(middle.before), by_digits(middle.h, SAME, SAME_SINGLE)

    def goes_on(state: Flat) -> Scalar:
        count, off = state[-2:]
        return (off > same) & (count < float(ROUNDS))

    def again(state: Flat) -> list[Scalar]:
        mean, impulses = state[:nv], state[2 * nv + n : -2]
        V0, nu = middle.free_velocities(mean, acting.tau, acting.f_ext)
        V, found = response.solved(response.pushed(V0, impulses), impulses, rules)
        v = [a + b for a, b in zip(middle.v, middle.moved(nu, middle.pushed(nu, found)), strict=True)]
        return judged(mean, v, V, found, state[-2] + 1.0)

    def judged(mean: Flat, v: Flat, V: Flat, impulses: Flat, count: Scalar) -> list[Scalar]:
        """A state of the loop: a solution, and how far its mean is from the one that it was found with."""
        own = _means(middle.v, v)
        square = sum((x * x for x in own), 0.0)
        off = sum(((a - b) * (a - b) for a, b in zip(mean, own, strict=True)), 0.0) / maximum(square, SLOW * SLOW)
        return [*own, *v, *V, *impulses, count, off]

    state = repeated_while(goes_on, again, judged(mean, first.v, first.V, first.impulses, 0.0))
    end = first._replace(v=state[nv : 2 * nv], V=state[2 * nv : 2 * nv + n], impulses=state[2 * nv + n : -2])
    if middle.solution is None:
        return response, end, list(state[:nv])
    V, impulses = [hold(x) for x in end.V], [hold(x) for x in end.impulses]
    pushed, end = middle.pushed(middle.no_innovations, impulses), end._replace(v=[hold(x) for x in end.v])
    for _ in range(_DERIVED):
        found = middle.solution.of_cones(
            end.v, _means(middle.v, end.v), pushed, response, V, impulses, rules.width_of_derivatives
        )
        end = type(end)(*found)
    return response, end, _means(middle.v, end.v)


def work_of_contacts(middle: MiddleOfStep, response: Response, V: Flat, impulses: Flat) -> tuple[Scalar, Scalar]:
    """Work of contacts against surfaces as they move, J, and how much counts as nothing."""
    total = sum(middle.work(response, V, impulses), 0.0)
    rows = iter(impulses)
    for point in middle.points:
        for drift, x in zip(point.drifts(), rows, strict=False):
            total = total - drift * x
    return total, by_digits(middle.h, FAINT, FAINT_SINGLE) * sum(
        (impulses[response.starts[k]] for k in middle.normals), 0.0
    )


def lifted(middle: MiddleOfStep, v: Flat, acting: Acting) -> Scalar:
    """Energy that the way takes if it goes on with the last velocity v alone, against gravity and forces, J."""
    shift = [0.5 * middle.h * (b - a) for a, b in zip(middle.v, v, strict=True)]
    still, tree = [0.0] * len(shift), middle.tree
    weight = tree.root.rotate(tree.gravity).dot(Vec.of(momentum(tree, middle.q, shift)[3:]))
    return -weight - work_in_step(tree, middle.q, middle.h, *acting, None, (still, still, shift))


def part_that_is_paid(middle: MiddleOfStep, s: Scalar, response: Response, end: Velocities, acting: Acting) -> Scalar:
    """The part s of the mean in the way, 0 to 1, with which no energy is created."""
    work, nothing = work_of_contacts(middle, response, end.V, end.impulses)
    cost = lifted(middle, end.v, acting)
    at_most = 1.0 - minimum(1.0 - s, maximum(nothing - work, 0.0) / maximum(cost, _TINY))
    taken_back = minimum(s, 1.0 - minimum(work / maximum(-cost, _TINY), 1.0))
    return where(middle.overlap > 0.0, s, where(cost > 0.0, at_most, where(work > nothing, taken_back, s)))


def by_digits(x: Scalar, double: float, single: float) -> Scalar:
    """One number where a positive x has sixteen digits, the other where it has seven."""
    return where(x + 1e-10 * x > x, double, single)


def _means(a: Flat, b: Flat) -> list[Scalar]:
    return [0.5 * (x + y) for x, y in zip(a, b, strict=True)]
