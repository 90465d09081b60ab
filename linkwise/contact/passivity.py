"""Steps that create no energy: those of bodies that nothing but contact couples, and of mechanisms that are asked to.

And those of mechanisms whose joints turn far in a step (:func:`balanced_where_needed`).

Forces act in the middle of a step and do work at the mean of the velocities before and after. What errs is the rest:
bias forces belong to a mean velocity that nobody knows before a blow, inertias change on the way, and so does the
height of what is lifted. In four places that is led back to the works of the step:

- The way goes on with v⁺ instead of the mean (:meth:`linkwise.contact.step.MiddleOfStep.end`) as far as contacts have
  paid for what is lifted by that; and farther, where contacts did work that it takes back.
- No step leaves an overlap, of which something would have to be lifted (:mod:`linkwise.contact.lifting`).
- Velocities at the end are scaled, by one factor, to where the energy at the end is no more than that at the start and
  the work of all forces, and no less than that with the work that contacts took. What flies keeps the velocity of its
  mass centre, so that forces explain its momentum; against it, all its parts move as much slower or faster.
- What cannot fly is not shifted out of overlaps: it leaves them as far as its motion can pay for it (:class:`Parting`).

Springs, and bodies that deform, do the work of their forces in the middle of the step: what they store is theirs, and a
step that is long for their vibrations is not made to keep it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from linkwise.algorithms.configuration import carried, carry, carry_rates
from linkwise.algorithms.energy import gravity_energy, kinetic_energy, mass, momentum
from linkwise.algorithms.inverse_dynamics import Forces, inverse_dynamics
from linkwise.algorithms.kinematics import placed, velocities
from linkwise.contact.lifting import masses_that_fly, root_of
from linkwise.mechanism.tree import Tree
from linkwise.spatial.scalar import Items, Scalar, by_digits, hold, is_zero, looped_over, maximum, minimum, sqrt, where
from linkwise.spatial.vectors import Vec

Flat = Sequence[Scalar]

FAINT, FAINT_SINGLE = 5e-11, 1e-6
"""m/s, at which normal impulses may do work: with sixteen digits, and with seven."""

SLACK = 2e-9
"""m, by which surfaces may overlap without being parted: what rests would be lifted."""

SHARE = 0.1
"""Of kinetic energy, what a step may spend on lifting all bodies where surfaces that overlap are parted."""

DEEP = 1e-4
"""m, from which on surfaces that overlap are parted also where kinetic energy cannot pay for it."""

_ROUNDING, _ROUNDING_SINGLE = 2e-14, 1e-5  # of energies, beside what they are: with sixteen digits, and with seven
_FASTER, _SLOWER = 1.001, 0.98  # the most that velocities are scaled up and down by, where not all are slowed down
_UNPAID = 1e-10  # of energies, what may be lifted for nothing: what comes to rest is not stopped for less
_SOME, _FAR = 0.08, 0.12  # rad, that a freedom turns by in a step: from there on, and there fully, energy is balanced
_STILL = 1e-9  # of kinetic energy, below which what does not fly with the mass centre is left alone
_TINY = 1e-30


class Acting(NamedTuple):
    """Joint forces, and forces on links."""

    tau: Flat
    f_ext: Forces


class Works(NamedTuple):
    """Works in a step, J.

    Args:
        forces: of all forces but gravity, with belts, springs at points, and what is granted.
        contact: of rigid contacts, ends of ranges and dry friction.
        granted: for the parting of overlaps that no step has left.
    """

    forces: Scalar
    contact: Scalar
    granted: Scalar = 0.0


class Parting(NamedTuple):
    """How surfaces that overlap are parted.

    Args:
        height: m, by which kinetic energy can pay for lifting all bodies in a step.
    """

    height: Scalar

    @classmethod
    def of(cls, tree: Tree, q: Flat, v: Flat) -> Parting:
        """At the start of a step."""
        weight = mass(tree, q) * sqrt(tree.gravity.dot(tree.gravity))
        return cls(SHARE * kinetic_energy(tree, q, v) / maximum(weight, _TINY))

    def wanted(self, gap: Scalar) -> Scalar:
        """A gap, where it is an overlap no more than what is to be parted."""
        shallow = maximum(minimum(gap + SLACK, 0.0), -self.height)
        return where(gap < 0.0, where(self.is_granted(gap), gap, shallow), gap)

    def is_granted(self, gap: Scalar) -> Scalar:
        """Whether surfaces are parted for nothing."""
        granted: Scalar = gap < -maximum(self.height, DEEP)
        return granted


def balanced(
    tree: Tree, start: tuple[Flat, Flat], end: tuple[Flat, Flat], works: Works, stays: bool = True
) -> tuple[list[Scalar], list[Scalar]]:
    """Configuration and velocity at the end of a step, with an energy that its start and works explain.

    Args:
        tree: of links.
        start: configuration and velocity.
        end: likewise, as the step has them.
        works: in it.
        stays: whether what would be lifted by more than it has energy for stays where it was, and stops.
    """
    scaling, q = _scaling(tree, start, end, works, stays)
    return q, scaling.of(end[1])


class _Scaling(NamedTuple):
    """Velocities as they are scaled: all by one factor, and what is added to those of mass centres that fly.

    Args:
        factor: of all velocities.
        added: to velocities, by freedom.
    """

    factor: Scalar
    added: dict[int, Scalar]

    def of(self, v: Flat) -> list[Scalar]:
        """Velocities that are scaled."""
        found = [self.factor * x for x in v]
        for k, x in self.added.items():
            found[k] = found[k] + x
        return found


def _scaling(
    tree: Tree, start: tuple[Flat, Flat], end: tuple[Flat, Flat], works: Works, stays: bool
) -> tuple[_Scaling, list[Scalar]]:
    """How velocities are scaled, and the configuration at the end; see :func:`balanced`."""
    first, last = (_Energies.of(tree, *state) for state in (start, end))
    moving = last.kinetic
    most = first.kinetic + first.of_gravity + works.forces - last.of_gravity
    size = first.kinetic + moving + abs(first.of_gravity) + abs(last.of_gravity)
    rounding = size * by_digits(size, _ROUNDING, _ROUNDING_SINGLE)
    least = minimum(most - works.granted + minimum(works.contact, 0.0) - rounding, (_FASTER * _FASTER) * moving)
    wanted = minimum(maximum(moving, least), maximum(most + rounding, 0.0))
    back = (most + maximum(rounding, _UNPAID * size) < 0.0) if stays else False
    q = [where(back, a, b) for a, b in zip(start[0], end[0], strict=True)]
    # What flies keeps the velocity of its mass centre. Only where it would not do to slow all parts down against it by
    # two hundredths, all is slowed down.
    moves, inner = moving > rounding, moving - last.flying
    part = sqrt(maximum(wanted - last.flying, 0.0) / maximum(inner, _TINY))
    part = where(moves & (inner > _STILL * wanted), minimum(maximum(part, _SLOWER), _FASTER), 1.0)
    left = last.flying + part * part * inner
    rest = where(moves, minimum(sqrt(wanted / maximum(left, _TINY)), 1.0), where(back, 0.0, 1.0))
    total = part * rest
    return _Scaling(total, {k: (rest - total) * x for k, x in last.centres.items()}), q


class _Energies(NamedTuple):
    """Energies of a state, J.

    Args:
        kinetic: of all.
        of_gravity: zero with all mass at the world's origin.
        flying: that of the mass centres of what flies.
        centres: their velocities, by freedoms of the links that fly.
    """

    kinetic: Scalar
    of_gravity: Scalar
    flying: Scalar
    centres: dict[int, Scalar]

    @classmethod
    def of(cls, tree: Tree, q: Flat, v: Flat) -> _Energies:
        """At a configuration and a velocity."""
        if tree.has_modes:
            return cls(kinetic_energy(tree, q, v), gravity_energy(tree, q), 0.0, {})
        frames, twists, masses = placed(tree, q), velocities(tree, q, v), masses_that_fly(tree)
        momenta, moment = {root: Vec.zero() for root in masses}, Vec.zero()
        for link in tree:
            frame, inertia, root = frames[link], link.rigid_part, root_of(tree, link).index
            moment = moment + frame.R @ inertia.h + frame.p * inertia.m
            if root in masses:
                momenta[root] = momenta[root] + frame.R @ (inertia @ twists[link]).lin
        centres: dict[int, Scalar] = {}
        flying: Scalar = 0.0
        for root, p in momenta.items():
            link, flying = tree.links[root], flying + 0.5 * p.dot(p) / masses[root]
            velocity = frames[link].R.transpose_times(p * (1.0 / masses[root]))
            centres.update({link.v_start + 3 + k: x for k, x in enumerate(velocity)})
        return cls(kinetic_energy(tree, q, v), -tree.root.rotate(tree.gravity).dot(moment), flying, centres)


def balanced_where_needed(
    tree: Tree,
    start: tuple[Flat, Flat],
    end: tuple[Flat, Flat],
    middle: tuple[Flat, Flat],
    h: Scalar,
    gain: Scalar,
) -> list[Scalar]:
    """The velocity at the end of a step, with the energy that works explain where that is needed.

    Where freedoms turn far in a step, the mean velocity at which bias forces are taken is far from the true one, and
    links that whirl after a blow would gain energy without bounds. And Newton's law of impact, which asks for the
    speed with which surfaces part whatever friction does meanwhile, creates energy in some blows (Kane and Levinson
    1985): that is taken back. All that acts does the work of those joint forces which the motion of the middle takes.
    Elsewhere nothing is computed, and derivatives are those of the velocity as it was.

    Args:
        tree: of links.
        start: configuration and velocity.
        end: likewise, as the step has them.
        middle: the velocity at the end in the axes of the middle, and the one that bias forces were taken at.
        h: s.
        gain: work of rigid contacts that bounce, J, which is none where it is not positive.
    """
    far = hold(h * h * maximum(*(_fastest(tree, *state) for state in (start, end))))
    given = [far, maximum(hold(gain), 0.0), *(hold(x) for part in (*start, *end, *middle) for x in part)]
    places = [link.v_start + k for link in tree if link.index in masses_that_fly(tree) for k in (3, 4, 5)]

    def asks(_: Flat, given: Flat) -> Scalar:
        asked: Scalar = given[0] > _SOME * _SOME
        return asked if is_zero(gain) else asked | (given[1] > 0.0)

    def once(_: Flat, given: Flat) -> tuple[list[Scalar], list[Scalar]]:
        gained, numbers = given[1], iter(given[2:])
        q, v, q_end, v_end, after, mean = ([next(numbers) for _ in part] for part in (*start, *end, *middle))
        half = [0.5 * h * x for x in v]
        before = carried(tree, v, half)
        turning = zip(carry_rates(tree, mean), before, after, strict=True)
        efforts = inverse_dynamics(tree, carry(tree, q, half), mean, [x + (b - a) / h for x, a, b in turning])
        work: Scalar = 0.0
        for effort, a, b in zip(efforts, before, after, strict=True):
            work = work + effort * (0.5 * h * (a + b))
        scaling, _ = _scaling(tree, (q, v), (q_end, v_end), Works(work - gained, 0.0), stays=False)
        share = minimum((sqrt(given[0]) - _SOME) / (_FAR - _SOME), 1.0)
        share = share if is_zero(gain) else where(gained > 0.0, 1.0, share)
        changes = [scaling.factor - 1.0, *scaling.added.values()]
        return [], [where(asks([], given), share * x, 0.0) for x in changes]

    ((less, *added),) = looped_over([Items.rows([given])], once, [], (asks,))[1]
    return _Scaling(1.0 + hold(less), dict(zip(places, map(hold, added), strict=True))).of(end[1])


def _fastest(tree: Tree, q: Flat, v: Flat) -> Scalar:
    """The largest square of the velocities along freedoms that turn."""
    found: Scalar = 0.0
    for link in tree:
        for column, speed in zip(link.S(q), link.rates(v), strict=False):
            if not all(is_zero(x) for x in column.ang):
                found = maximum(found, speed * speed)
    return found


def work_in_step(
    tree: Tree,
    q: Flat,
    h: Scalar,
    tau: Flat,
    f_ext: Forces,
    implicit: Flat | None,
    ways: tuple[Flat, Flat, Flat],
) -> Scalar:
    """Work of joint forces, forces on links and elastic forces in a step, J.

    Args:
        tree: of links.
        q: configuration in the middle.
        h: s.
        tau: joint forces in the middle, at the velocity of the start.
        f_ext: forces on links.
        implicit: by how much they fall with the change of velocity, times h.
        ways: mean velocity, its change, and the way beyond h times the mean, in the axes of the middle.
    """
    mean, change, shift = ways
    way = [h * a + b for a, b in zip(mean, shift, strict=True)]
    total: Scalar = 0.0
    for k, (force, speed, along) in enumerate(zip(tau, mean, way, strict=True)):
        total = total + force * along
        if implicit is not None:
            total = total - implicit[k] * change[k] * speed
    if f_ext is not None:
        twists = velocities(tree, q, way)
        for link in tree:
            total = total + twists[link].dot(f_ext[link])
    for link in tree if tree.has_modes else ():
        for force, along in zip(link.elastic_forces(q, mean), link.rates(way), strict=False):
            total = total - force * along
    return total


def part_of_mean_that_is_paid(
    tree: Tree, q: Flat, shift: Flat, s: Scalar, work: Scalar, pressed: Scalar, h: Scalar, acting: Acting
) -> Scalar:
    """The part s of the mean velocity in the way, 0 to 1, with which no energy is created.

    Args:
        tree: of links.
        q: configuration in the middle.
        shift: (nv), by how much farther than with the mean the way would go with the last velocity alone.
        s: the part that gaps ask for.
        work: of contacts, against surfaces as they move, J.
        pressed: the sum of normal impulses, N s.
        h: s.
        acting: forces.
    """
    still = [0.0] * len(shift)
    weight = tree.root.rotate(tree.gravity).dot(Vec.of(momentum(tree, q, shift)[3:]))
    cost = -weight - work_in_step(tree, q, h, *acting, None, (still, still, shift))
    nothing = by_digits(h, FAINT, FAINT_SINGLE) * pressed
    at_most = 1.0 - minimum(1.0 - s, maximum(nothing - work, 0.0) / maximum(cost, _TINY))
    taken_back = minimum(s, 1.0 - minimum(work / maximum(-cost, _TINY), 1.0))
    return where(cost > 0.0, at_most, where(work > nothing, taken_back, s))
