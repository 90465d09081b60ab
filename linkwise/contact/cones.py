"""Impulses that are confined to cones, and the sweeps that find them.

A mechanism feels impulses λ along some rows: normals and tangents of contacts, joint axes at their limits or with dry
friction, equations of closures. Rows that are confined together are a :class:`Cone`: a half line (normals), a disk
whose radius follows a normal (Coulomb), a disk of fixed size (dry friction), a whole line (closures). With w = W λ + w₀
the velocities along the rows, a solution has

    λ = proj(λ - w/ℓ)    for every cone,

ℓ > 0 any number: Signorini's condition, Coulomb's law with maximal dissipation, and closures, all in one list. The
range of a joint has two half lines in one row, one for each end, λ = max(λ - (w + b)/ℓ, 0) - max(-λ - (b' - w)/ℓ, 0).

Velocities are carried in fewer numbers than rows where several rows act on one link: V, those of the *pulls*, w = C V,
with V = V₀ + Λ C*λ and Λ = J𝓜⁻¹J* from one inward sweep (:func:`linkwise.algorithms.articulated.pull`); W is never
formed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from itertools import zip_longest

from linkwise.contact.elimination import eliminated, sparse_product, squared
from linkwise.contact.smoothed import SmoothedLaws, is_missed, nearest
from linkwise.dataclass import dataclass, replace
from linkwise.mechanism.contacts import ContactRules
from linkwise.spatial.scalar import (
    Scalar,
    absolute,
    by_digits,
    hold,
    is_zero,
    maximum,
    minimum,
    repeated,
    repeated_while,
    sqrt,
    waypoint,
    where,
)

Answer = Callable[[int, list[Scalar], list[Scalar]], list[Scalar]]
"""V after changes of the impulses of one cone, by its place."""

_TINY = 1e-30  # beside squares of velocities and impulses

WRITTEN_OUT = 4000
"""Products up to which sweeps are written out: numbers then stay in registers."""

UNSOLVED, UNSOLVED_SINGLE = 1e-6, 1e-3
"""m/s, of Signorini's condition, beyond which a step is taken for one without a solution; with seven digits."""

SPREADS, MUCH = 24, 0.01
"""Passes by which points between the same two links share what they press with, and the part of it that is a change."""

SWEEPS_AGAIN, FAR = 4000, 1000.0
"""The most sweeps for states that Newton steps do not solve: those that miss the tolerance by so many times."""

MOST_LEFT = 0.7
"""Of the change of one pass, the most that is counted on to be changed again by the next."""

PROXIMAL = 1e-6
"""On the diagonal of Newton's matrix, beside one: of redundant contacts some combination is found."""

FIRM = 1e-9
"""The same in the matrix of derivatives, where each row has a pull of its own: there it is nothing but an error."""


@dataclass(frozen=True)
class Row:
    """C of one row: numbers of pulls, and what each counts for."""

    pulls: tuple[int, ...]
    factors: tuple[Scalar, ...]

    @property
    def is_pull(self) -> bool:
        """Whether it has a pull of its own."""
        return len(self.pulls) == 1

    def of(self, V: Sequence[Scalar]) -> Scalar:
        """C V."""
        total: Scalar = 0.0
        for k, c in zip(self.pulls, self.factors, strict=True):
            total = total + c * V[k]
        return total


@dataclass(frozen=True)
class Cone:
    """Rows that are confined together.

    Args:
        rows: one, or two for a disk.
        bias: w + bias is what the cone speaks of, m/s, one number a row.
        kind: ``"half_line"`` (λ ≥ least), ``"range"`` (λ ≥ 0 at its lower end, λ ≤ 0 at its upper one), ``"disk"``
            (|λ| ≤ radius), ``"line"`` (free).
        radius: of a disk, N s; or a coefficient of friction, if it ``follows`` a half line.
        follows: the place of that half line in the list of cones, which comes before.
        compliance: R, the velocity by which a row gives way to an impulse, m/s for each N s.
        least: where a half line begins, N s.
        ends: of a range: w + b ≥ 0 and b' - w ≥ 0, None for an end that is not there.
        side: of a range, the sign of impulses at the end that smoothed laws speak of.
        links: numbers of the links between which surfaces touch; none of joints.
    """

    rows: tuple[Row, ...]
    bias: tuple[Scalar, ...]
    kind: str
    radius: Scalar = 0.0
    follows: int | None = None
    compliance: Scalar = 0.0
    least: Scalar = 0.0
    ends: tuple[Scalar | None, Scalar | None] = (None, None)
    side: Scalar = 1.0
    links: tuple[int, ...] = ()

    def held(self) -> Cone:
        """The same, of values that have no derivative."""
        low, high = self.ends
        return Cone(
            tuple(Row(row.pulls, tuple(hold(c) for c in row.factors)) for row in self.rows),
            tuple(hold(x) for x in self.bias),
            self.kind,
            hold(self.radius),
            self.follows,
            hold(self.compliance),
            hold(self.least),
            (low if low is None else hold(low), high if high is None else hold(high)),
            hold(self.side),
        )

    def nearest(self, impulses: Sequence[Scalar], normal: Scalar, inverse: Scalar = 1.0) -> list[Scalar]:
        """The proj of some λ - w/ℓ, for the impulse of the half line that the cone follows; of a range for 1/ℓ."""
        if self.kind == "half_line":
            return [maximum(impulses[0], self.least)]
        if self.kind == "range":
            up, down = (0.0 if x is None else maximum(x, 0.0) for x in self.beyond_ends(impulses[0], inverse))
            return [up - down]
        if self.kind == "line":
            return list(impulses)
        reach = self.radius * normal if self.follows is not None else self.radius
        if len(impulses) == 1:
            (x,) = impulses
            return [where(x > reach, reach, where(x < -reach, -reach, x))]
        square: Scalar = 0.0
        for x in impulses:
            square = square + x * x
        shrunk = reach / sqrt(maximum(square, _TINY))
        return [where(square > reach * reach, x * shrunk, x) for x in impulses]

    def beyond_ends(self, x: Scalar, inverse: Scalar) -> tuple[Scalar | None, Scalar | None]:
        """How far an x = λ - w/ℓ is beyond each end of a range, N s."""
        low, high = self.ends
        return None if low is None else x - low * inverse, None if high is None else -x - high * inverse

    def beyond_chosen_end(self, x: Scalar, inverse: Scalar) -> Scalar:
        """The same of the end that smoothed laws speak of."""
        low, high = self.beyond_ends(x, inverse)
        return high if low is None else low if high is None else where(self.side > 0.0, low, high)

    def with_end_chosen(self, w: Scalar) -> Cone:
        """The same, whose smoothed laws speak of the end that a velocity is nearer to."""
        return replace(self, side=self.nearer_end(w)[0]) if self.kind == "range" else self

    def nearer_end(self, w: Scalar) -> tuple[Scalar, Scalar]:
        """Of the end of a range that a velocity is nearer to the sign of its impulses, and w + b of it, or b' - w."""
        low, high = self.ends
        if low is None or high is None:
            return (1.0, w + low) if low is not None else (-1.0, (0.0 if high is None else high) - w)
        below, above = w + low, high - w
        is_low = below < above
        return where(is_low, 1.0, -1.0), where(is_low, below, above)


def turns_of(cones: Sequence[Cone]) -> list[tuple[int, ...]]:
    """Places of the cones that sweeps pass over at the same time, turn after turn.

    Cones between the same links wait for one another, and a processor with them: for a root and a division each. Those
    of two pairs of links without a link in common need not, since such links hardly feel each other within a step; and
    of two at a time, however they are coupled, no turn leads away from the solution.
    """
    queues: dict[tuple[int, ...], list[int]] = {}
    for k, cone in enumerate(cones):
        queues.setdefault(cone.links, []).append(k)
    found: list[tuple[int, ...]] = []
    while queues:
        links = next(iter(queues))
        beside = next((other for other in queues if links and other and not set(links) & set(other)), None)
        together = [queues.pop(links), queues.pop(beside) if beside is not None else []]
        found += [tuple(k for k in turn if k is not None) for turn in zip_longest(*together)]
    return found


class Response:
    """Cones with what their impulses do: U = ΛC* for each row, and the slope ℓ of each cone."""

    def __init__(self, cones: Sequence[Cone], Lambda: Sequence[Sequence[Scalar]]) -> None:
        self.cones = list(cones)
        self.starts: list[int] = []
        self.count = 0
        for cone in self.cones:
            self.starts.append(self.count)
            self.count += len(cone.rows)
        self.size, self.Lambda = len(Lambda), Lambda
        self.U = [[row.of(line) for line in Lambda] for cone in self.cones for row in cone.rows]
        self.slopes = [self._slope(k) for k in range(len(self.cones))]
        self.inverses = [1.0 / x for x in self.slopes]
        self.turns = turns_of(self.cones)

    def _slope(self, k: int) -> Scalar:
        """The largest eigenvalue of the cone's own block of W."""
        cone, start = self.cones[k], self.starts[k]
        W = [[row.of(self.U[start + j]) for j in range(len(cone.rows))] for row in cone.rows]
        if len(W) == 1:
            return maximum(W[0][0] + cone.compliance, _TINY)
        (a, b), (_, c) = W
        half = 0.5 * (a - c)
        return maximum(0.5 * (a + c) + sqrt(half * half + b * b) + cone.compliance, _TINY)

    def velocities(self, k: int, V: Sequence[Scalar], impulses: Sequence[Scalar]) -> list[Scalar]:
        """w + bias + Rλ of one cone."""
        cone, start = self.cones[k], self.starts[k]
        return [
            row.of(V) + bias + cone.compliance * impulses[start + j]
            for j, (row, bias) in enumerate(zip(cone.rows, cone.bias, strict=True))
        ]

    def pushed(self, V: Sequence[Scalar], impulses: Sequence[Scalar]) -> list[Scalar]:
        """V + ΛC*λ."""
        along: list[Scalar] = [0.0] * self.size
        for row, x in zip((row for cone in self.cones for row in cone.rows), impulses, strict=True):
            for k, c in zip(row.pulls, row.factors, strict=True):
                along[k] = along[k] + c * x
        return [a + sparse_product(line, along) for a, line in zip(V, self.Lambda, strict=True)]

    def wanted(self, k: int, V: Sequence[Scalar], impulses: Sequence[Scalar]) -> list[Scalar]:
        """The proj(λ - w/ℓ) of one cone."""
        cone, start, inverse = self.cones[k], self.starts[k], self.inverses[k]
        own = impulses[start : start + len(cone.rows)]
        w = self.velocities(k, V, impulses)
        normal = impulses[self.starts[cone.follows]] if cone.follows is not None else 0.0
        return cone.nearest([x - y * inverse for x, y in zip(own, w, strict=True)], normal, inverse)

    def sweep(
        self, V: Sequence[Scalar], impulses: Sequence[Scalar], answer: Answer | None = None
    ) -> tuple[list[Scalar], list[Scalar]]:
        """One pass over the cones, each with the velocities that the turns before it left."""
        V, impulses, answer = list(V), list(impulses), answer or self._answer_of_rows
        for turn in self.turns:
            for k, wanted in [(k, self.wanted(k, V, impulses)) for k in turn]:
                start = self.starts[k]
                changes = [x - impulses[start + j] for j, x in enumerate(wanted)]
                impulses[start : start + len(wanted)] = wanted
                V = answer(k, V, changes)
        return V, impulses

    def _answer_of_rows(self, k: int, V: list[Scalar], changes: list[Scalar]) -> list[Scalar]:
        """V + Uδ, for changes δ of the impulses of one cone."""
        for u, change in zip(self.U[self.starts[k] :], changes, strict=False):
            V = [a + b * change for a, b in zip(V, u, strict=True)]
        return V

    def _answer_along_pulls(self, k: int, V: list[Scalar], changes: list[Scalar]) -> list[Scalar]:
        """V + Λ(C*δ): the same without U, which then need not be kept at hand."""
        along: list[Scalar] = [0.0] * self.size
        for row, change in zip(self.cones[k].rows, changes, strict=True):
            for i, c in zip(row.pulls, row.factors, strict=True):
                along[i] = along[i] + c * change
        return [a + sparse_product(line, along) for a, line in zip(V, self.Lambda, strict=True)]

    def spread(self, V: Sequence[Scalar], impulses: Sequence[Scalar]) -> tuple[list[Scalar], list[Scalar]]:
        """V and impulses, where surfaces that begin to press on each other, or press much less, do so with all points.

        How they share what presses is left open by the laws where bodies are held from both sides: of a box between
        jaws that do not turn, any corners may bear all. Sweeps would give nearly all to the first of them, and what
        slips there turns. On the ground alone that is not so, and nothing is done.

        Impulses change by velocities over the sum of all |W| in a row, so that these passes come to an end: first
        normal ones, then friction too.
        """
        groups: dict[tuple[int, ...], list[int]] = {}
        for k, cone in enumerate(self.cones):
            if cone.kind == "half_line":
                groups.setdefault(cone.links, []).append(k)
        several = {links: own for links, own in groups.items() if len(own) > 2}
        if not any(len(links) > 1 for links in several):
            return list(V), list(impulses)
        normals = list(several.values())
        disks = [[k for k, c in enumerate(self.cones) if c.follows in own and len(c.rows) == 2] for own in normals]
        pressed: Scalar = 0.0
        change: Scalar = 0.0
        for k in (k for own in normals for k in own):
            now = impulses[self.starts[k]]
            pressed, change = pressed + now, change + absolute(self.wanted(k, V, impulses)[0] - now)
        begins, n = change > MUCH * pressed, len(V)

        def goes_on(state: list[Scalar]) -> Scalar:
            return (state[-1] < 2.0 * SPREADS) & begins

        def once(state: list[Scalar]) -> list[Scalar]:
            V, impulses = state[:n], state[n:-1]
            rubs = where(state[-1] < float(SPREADS), 0.0, 1.0)
            for alike, part in (*((own, 1.0) for own in normals), *((own, rubs) for own in disks)):
                changes = [[part * x for x in self._shared(k, alike, V, impulses)] for k in alike]
                for k, change in zip(alike, changes, strict=True):
                    for j, x in enumerate(change, self.starts[k]):
                        impulses[j] = impulses[j] + x
                    V = self._answer_of_rows(k, V, change)
            return [*V, *impulses, state[-1] + 1.0]

        found = repeated_while(goes_on, once, [*V, *impulses, 0.0])
        return found[:n], found[n:-1]

    def _shared(self, k: int, alike: Sequence[int], V: Sequence[Scalar], impulses: Sequence[Scalar]) -> list[Scalar]:
        """Changes of the impulses of one cone, as one of several that answer to the same velocities."""
        cone, start = self.cones[k], self.starts[k]
        answer: Scalar = 0.0
        for row in cone.rows:
            others = (u for j in alike for u in self.U[self.starts[j] : self.starts[j] + len(cone.rows)])
            answer = maximum(answer, sum((absolute(row.of(u)) for u in others), cone.compliance))
        inverse, own = 1.0 / maximum(answer, _TINY), impulses[start : start + len(cone.rows)]
        normal = impulses[self.starts[cone.follows]] if cone.follows is not None else 0.0
        w = self.velocities(k, V, impulses)
        better = cone.nearest([x - y * inverse for x, y in zip(own, w, strict=True)], normal, inverse)
        return [a - b for a, b in zip(better, own, strict=True)]

    def swept(self, V: Sequence[Scalar], impulses: Sequence[Scalar], count: int) -> tuple[list[Scalar], list[Scalar]]:
        """V and impulses after several passes; and where more would lead that leave the same part of a change each.

        Of passes that begin with no impulses that part is not known: the first of them find what bears at all.
        """
        n, size = len(V), len(V) + len(impulses)

        def once(state: list[Scalar]) -> list[Scalar]:
            V, impulses = self.sweep(state[:n], state[n:size])
            change = [a - b for a, b in zip([*V, *impulses], state, strict=False)]
            return [*V, *impulses, *change, _left(change[n:], state[size + n : -1])]

        state: list[Scalar] = [*V, *impulses, *([0.0] * size), 0.0]
        if count * len(self.U) * n > WRITTEN_OUT:
            state = repeated(count, once, state)
        else:
            for _ in range(count):
                state = once(state)
        more = where(squared(impulses) > 0.0, state[-1] / (1.0 - state[-1]), 0.0)
        return state[:size], [a + more * b for a, b in zip(state[:size], state[size:], strict=False)]

    def missing(self, V: Sequence[Scalar], impulses: Sequence[Scalar]) -> list[Scalar]:
        """The λ - proj(λ - w/ℓ) of every row, N s: zero where all laws hold."""
        wanted = [x for k in range(len(self.cones)) for x in self.wanted(k, V, impulses)]
        return [a - b for a, b in zip(impulses, wanted, strict=True)]

    @property
    def points(self) -> int:
        """Number of normals, at least one."""
        return sum(cone.kind in ("half_line", "range") for cone in self.cones) or 1

    def missed(self, V: Sequence[Scalar], impulses: Sequence[Scalar]) -> Scalar:
        """The square of the distance by which the laws are missed."""
        return squared(self.missing(V, impulses))

    def newton_step(
        self, V: Sequence[Scalar], impulses: Sequence[Scalar], width: Scalar, proximal: Scalar
    ) -> list[Scalar]:
        """The changes of V and of λ that laws ask for which are smoothed over a width."""
        return SmoothedLaws(self, V, impulses, width).newton_step(proximal)

    def solved(
        self,
        V: Sequence[Scalar],
        impulses: Sequence[Scalar],
        rules: ContactRules,
        eased: Response | None = None,
    ) -> tuple[list[Scalar], list[Scalar]]:
        """Impulses that obey all laws, and V with them; where there are none, those of ``eased`` laws, found anew."""
        reached, found = self._found(V, impulses, rules)
        if eased is None or rules.rounds == 1:
            return reached, found
        n = len(V)
        free = [a - b for a, b in zip(V, self.pushed([0.0] * n, impulses), strict=True)]
        limit = by_digits(self.slopes[0], UNSOLVED, UNSOLVED_SINGLE)

        def anew(state: list[Scalar]) -> list[Scalar]:
            V, found = eased._found(free, [0.0] * len(impulses), rules)
            return [*V, *found, 0.0]

        asked = where(self.signorini(reached, found) > limit, 1.0, 0.0)
        last = repeated_while(lambda state: state[-1] > 0.5, anew, [*reached, *found, asked])
        return last[:n], last[n:-1]

    def signorini(self, V: Sequence[Scalar], impulses: Sequence[Scalar]) -> Scalar:
        """The largest residual of Signorini's condition, m/s."""
        worst: Scalar = 0.0
        for k, (cone, start) in enumerate(zip(self.cones, self.starts, strict=True)):
            (w, *_), x, slope = self.velocities(k, V, impulses), impulses[start], self.slopes[k]
            if cone.kind == "range":
                sign, left = cone.nearer_end(w)
                worst = maximum(worst, abs(minimum(sign * x * slope, left)))
            elif cone.kind == "half_line":
                worst = maximum(worst, abs(minimum((x - cone.least) * slope, w)))
        return worst

    def _found(
        self, V: Sequence[Scalar], impulses: Sequence[Scalar], rules: ContactRules
    ) -> tuple[list[Scalar], list[Scalar]]:
        """Impulses that obey all laws, and V with them: sweeps, then Newton steps, then sweeps again.

        Points that jam (a foot pressed into the ground by its own friction) need impulses far larger than those which
        Newton's steps begin with, and are not found by them: a few states of a million. Sweeps go there, slowly.
        """
        n = len(V)
        V, impulses = self.spread(V, impulses)
        swept, ahead = self.swept(V, impulses, rules.sweeps)
        found, missed, nothing = nearest(self, swept[:n], swept[n:], rules, ahead)
        if rules.rounds == 1:
            return found[:n], found[n:]

        def goes_on(state: list[Scalar]) -> Scalar:
            missing = is_missed(state[-2], state[n:-2], rules.tolerance, nothing)
            return missing & (state[-1] < float(SWEEPS_AGAIN))

        def again(state: list[Scalar]) -> list[Scalar]:
            V, impulses = self.sweep(state[:n], state[n:-2], self._answer_along_pulls)
            return [*V, *impulses, self.missed(V, impulses), state[-1] + 1.0]

        far = is_missed(missed, found[n:], FAR * rules.tolerance, FAR * FAR * nothing)
        last = repeated_while(goes_on, again, [*found, missed, where(far, 0.0, float(SWEEPS_AGAIN))])
        return last[:n], last[n:-2]

    def with_ends_chosen(self, V: Sequence[Scalar]) -> Response:
        """The same, whose smoothed laws speak of the ends of ranges alone that velocities lead to."""
        if all(cone.kind != "range" for cone in self.cones):
            return self
        found = copy(self)
        found.cones = [cone.with_end_chosen(cone.rows[0].of(V)) for cone in self.cones]
        return found

    def _answered(self, slopes: list[ConeSlope], missing: Sequence[Scalar]) -> tuple[list[Scalar], list[Scalar]]:
        """Newton's step δ for F = λ - proj(λ - w/ℓ) (Alart and Curnier 1991), and y = C*δ, what it is along the pulls.

        With D the slope of proj, (I - D + D W/ℓ) δ = -F. I - D is block-diagonal, point by point, and has a closed
        inverse A⁻¹ once a little, ``proximal``, is on its diagonal, which also makes of redundant contacts some
        combination; W = CΛC*. So what is solved is no larger than the pulls: (I + GΛ) y = -C*A⁻¹F, G = C*A⁻¹D C/ℓ,
        and then V changes by Λy.
        """
        n = self.size
        G: list[list[Scalar]] = [[0.0] * n for _ in range(n)]
        right: list[Scalar] = [0.0] * n
        left: list[list[Scalar]] = [[1.0 if i == j else 0.0 for j in range(n)] for i in range(n)]
        for k, cone in enumerate(self.cones):
            if all(row.is_pull for row in cone.rows):
                # The rows of these pulls are those of the cone: (A - bound) y + DΛy/ℓ = -F, without an inverse.
                places = [row.pulls[0] for row in cone.rows]
                for i, x in zip(places, missing[self.starts[k] :], strict=False):
                    right[i] = -x
                for j, i in enumerate(places):
                    unit = [1.0 if m == j else 0.0 for m in range(len(places))]
                    for m, a, d in zip(places, slopes[k].times_A(unit), slopes[k].times_D(unit), strict=True):
                        left[m][i], G[m][i] = a, d
                    if cone.follows is not None:
                        left[i][self.cones[cone.follows].rows[0].pulls[0]] = -slopes[k].follow[j]
                continue
            lines = slopes[k].times_C(cone, slopes, self.cones)
            shift = slopes[k].solved(missing, self.starts, slopes, self.cones)
            for row, line, x in zip(cone.rows, lines, shift, strict=True):
                for i, c in zip(row.pulls, row.factors, strict=True):
                    right[i] = right[i] - c * x
                    for m, f in line.items():
                        G[i][m] = G[i][m] + c * f
        matrix = [[sparse_product(G[i], column) + left[i][j] for j, column in enumerate(self.Lambda)] for i in range(n)]
        y = eliminated(matrix, right)
        V_change = [sparse_product(line, y) for line in self.Lambda]
        change: list[Scalar] = []
        for k, cone in enumerate(self.cones):
            if all(row.is_pull for row in cone.rows):
                change += [y[row.pulls[0]] for row in cone.rows]
                continue
            moved = slopes[k].times_D([row.of(V_change) for row in cone.rows])
            own = missing[self.starts[k] : self.starts[k] + len(cone.rows)]
            force = [-(a + b) for a, b in zip(own, moved, strict=True)]
            normal = change[self.starts[cone.follows]] if cone.follows is not None else 0.0
            change += slopes[k].inverse(force, normal)
        return change, y

    def held(self) -> Response:
        """The same, of values that have no derivative."""
        return Response([cone.held() for cone in self.cones], [[hold(x) for x in line] for line in self.Lambda])

    def changes(
        self, V: Sequence[Scalar], impulses: Sequence[Scalar], V_changes: Sequence[Scalar], smoothing: float = 0.0
    ) -> tuple[list[Scalar], list[Scalar], list[Scalar]]:
        """The derivative of a solution: how λ, V and C*λ change, numbers of value zero.

        Of F(λ, V, …) = 0 it is Newton's step for the change of F, with a matrix of held values: what changes of F is
        what changes at held λ and V, the rows and biases of the cones, and V by ``V_changes``.

        Args:
            V: of the solution, held.
            impulses: of the solution, held.
            V_changes: of V at held impulses, as numbers of value zero.
            smoothing: width in N s over which slopes of projections are blended; see :meth:`ConeSlope.of`.
        """
        fixed = self.held()
        own_pulls = all(row.is_pull for cone in self.cones for row in cone.rows)
        slopes = fixed._cone_slopes(V, impulses, FIRM if own_pulls else PROXIMAL, smoothing)
        missing: list[Scalar] = []
        for k, (cone, kept, slope) in enumerate(zip(self.cones, fixed.cones, slopes, strict=True)):
            now = [changed(w) for w in self.velocities(k, V, impulses)]
            if cone.kind == "range":
                sign, left = cone.nearer_end(self.velocities(k, V, impulses)[0])
                now = [sign * changed(left)]
            w = [a + row.of(V_changes) for a, row in zip(now, kept.rows, strict=True)]
            normal = 1.0 if cone.follows is None else impulses[self.starts[cone.follows]]
            bound = changed(cone.least) if cone.kind == "half_line" else changed(cone.radius) * normal
            missing += [a - u * bound for a, u in zip(slope.times_D(w), slope.bound, strict=True)]
        missing = waypoint(missing)
        change, y = fixed._answered(slopes, missing)
        if not own_pulls:  # without what is on the diagonal: once more
            left = [a - PROXIMAL * x for a, x in zip(missing, change, strict=True)]
            change, y = fixed._answered(slopes, left)
        y = waypoint(y)
        V_all = [a + sparse_product(line, y) for a, line in zip(V_changes, fixed.Lambda, strict=True)]
        return change, V_all, y

    def _cone_slopes(
        self, V: Sequence[Scalar], impulses: Sequence[Scalar], proximal: float, smoothing: float = 0.0
    ) -> list[ConeSlope]:
        """The slopes of all projections."""
        found = []
        for k, (cone, start) in enumerate(zip(self.cones, self.starts, strict=True)):
            inverse = self.inverses[k]
            w = self.velocities(k, V, impulses)
            at = [impulses[start + j] - w[j] * inverse for j in range(len(w))]
            normal = impulses[self.starts[cone.follows]] if cone.follows is not None else 1.0
            found.append(ConeSlope.of(cone, at, normal, inverse, proximal, smoothing))
        return found


@dataclass(frozen=True)
class ConeSlope:
    """The slope of a cone's projection, D = ratio (I - u u*) + stay u u*, and by its bound, the least or the radius.

    A = (1 + proximal) I - D, with a row's compliance, has the inverse ``across`` I + (``along`` - ``across``) u u*.
    """

    ratio: Scalar
    stay: Scalar
    unit: tuple[Scalar, ...] | None
    """The direction of slip u, zero where it sticks; None for cones of one row that have no such."""
    bound: tuple[Scalar, ...]
    """How each row follows the bound of the cone."""
    follow: tuple[Scalar, ...]
    """How each row follows the normal: μ times that."""
    across: Scalar
    along: Scalar
    step: Scalar
    """1/ℓ."""
    proximal: float
    give: Scalar = 0.0
    """R/ℓ."""

    @classmethod
    def of(
        cls,
        cone: Cone,
        at: Sequence[Scalar],
        normal: Scalar,
        step: Scalar,
        proximal: float,
        smoothing: float = 0.0,
    ) -> ConeSlope:
        """At an argument x = λ - w/ℓ of the projection.

        With a ``smoothing`` σ, N s, the slopes on both sides of a bound are blended: with e the excess of x over the
        bound, b = (1 + e/√(e² + σ²))/2 of the one and 1 - b of the other.
        """
        none = (0.0,) * len(at)
        give = cone.compliance * step
        if cone.kind != "disk":
            beyond = [at[0] - cone.least]
            if cone.kind == "range":
                beyond = [x for x in cone.beyond_ends(at[0], step) if x is not None]
            held = True if cone.kind == "line" else beyond[0] > 0.0
            for x in beyond[1:]:
                held = held | (x > 0.0)
            if smoothing and cone.kind != "line":
                ratio = sum((_blend(x, smoothing) for x in beyond), 0.0)
                across = 1.0 / (1.0 + proximal - ratio * (1.0 - give))
            else:
                ratio, across = where(held, 1.0, 0.0), where(held, 1.0 / (proximal + give), 1.0 / (1.0 + proximal))
            return cls(ratio, ratio, None, (1.0 - ratio,), none, across, across, step, proximal, give)
        reach = cone.radius * normal
        length = sqrt(maximum(squared(at), _TINY))
        if smoothing:
            slip = _blend(length - reach, smoothing)
            stay = 1.0 - slip
            ratio = stay + slip * minimum(reach / length, 1.0) if len(at) > 1 else stay
            unit, bound = tuple(x / length for x in at), tuple(slip * x / length for x in at)
        else:
            slips = length > reach
            ratio, stay = (where(slips, reach / length, 1.0), 0.0) if len(at) > 1 else (where(slips, 0.0, 1.0),) * 2
            unit = bound = tuple(where(slips, x / length, 0.0) for x in at)
        follow = tuple(cone.radius * u for u in bound) if cone.follows is not None else none
        if len(at) == 1 and not smoothing:
            across = where(slips, 1.0 / (1.0 + proximal), 1.0 / proximal)
            return cls(ratio, stay, None, bound, follow, across, across, step, proximal)
        across, along = 1.0 / (1.0 + proximal - ratio), 1.0 / (1.0 + proximal - stay)
        return cls(ratio, stay, unit if len(at) > 1 else None, bound, follow, across, along, step, proximal)

    def _split(self, x: Sequence[Scalar], across: Scalar, along: Scalar) -> list[Scalar]:
        """across x + (along - across) u (u*x)."""
        if self.unit is None:
            return [across * a for a in x]
        part: Scalar = 0.0
        for u, a in zip(self.unit, x, strict=True):
            part = part + u * a
        part = (along - across) * part
        return [across * a + part * u for u, a in zip(self.unit, x, strict=True)]

    def times_D(self, x: Sequence[Scalar]) -> list[Scalar]:
        """D x/ℓ."""
        return self._split(x, self.ratio * self.step, 0.0 if is_zero(self.stay) else self.stay * self.step)

    def times_A(self, x: Sequence[Scalar]) -> list[Scalar]:
        """A x."""
        across, along = (1.0 + self.proximal - part * (1.0 - self.give) for part in (self.ratio, self.stay))
        return self._split(x, across, along)

    def inverse(self, x: Sequence[Scalar], normal: Scalar) -> list[Scalar]:
        """A⁻¹ x, where the normal's part of the solution is known."""
        moved = [a + b * normal for a, b in zip(x, self.follow, strict=True)]
        return self._split(moved, self.across, self.along)

    def times_C(self, cone: Cone, slopes: Sequence[ConeSlope], cones: Sequence[Cone]) -> list[dict[int, Scalar]]:
        """The rows of A⁻¹D C/ℓ, by pull."""
        places = sorted({i for row in cone.rows for i in row.pulls})
        own = [dict(zip(row.pulls, row.factors, strict=True)) for row in cone.rows]
        lines: list[dict[int, Scalar]] = [{} for _ in own]
        normal = {} if cone.follows is None else slopes[cone.follows].times_C(cones[cone.follows], slopes, cones)[0]
        for i in sorted({*places, *normal}):
            moved = self.inverse(self.times_D([line.get(i, 0.0) for line in own]), normal.get(i, 0.0))
            for line, x in zip(lines, moved, strict=True):
                if not is_zero(x):
                    line[i] = x
        return lines

    def solved(
        self, F: Sequence[Scalar], starts: Sequence[int], slopes: Sequence[ConeSlope], cones: Sequence[Cone]
    ) -> list[Scalar]:
        """The part of A⁻¹F of this cone."""
        k = next(k for k, slope in enumerate(slopes) if slope is self)
        cone = cones[k]
        normal = 0.0 if cone.follows is None else slopes[cone.follows].solved(F, starts, slopes, cones)[0]
        return self.inverse(F[starts[k] : starts[k] + len(cone.rows)], normal)


def _left(change: Sequence[Scalar], last: Sequence[Scalar]) -> Scalar:
    """Which part of the change of one pass that of the next one is."""
    part = sum((a * b for a, b in zip(change, last, strict=True)), 0.0) / maximum(squared(last), _TINY)
    return minimum(maximum(part, 0.0), MOST_LEFT)


def changed(x: Scalar) -> Scalar:
    """The change of a number: its value is zero, its derivative that of the number."""
    return x - hold(x)


def _blend(excess: Scalar, width: float) -> Scalar:
    """From 0 below a bound to 1 above it, over a width."""
    return 0.5 * (1.0 + excess / sqrt(excess * excess + width * width))
