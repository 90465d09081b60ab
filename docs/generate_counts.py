"""Write operation_counts.md and its plot: `python docs/generate_counts.py`. Takes some minutes."""

from __future__ import annotations

from dataclasses import fields, replace
from fractions import Fraction
from functools import cache
from pathlib import Path

from linkwise.classics import ALGORITHMS
from linkwise.errors import InputError
from linkwise.functions.counting import (
    FRAMES,
    OWN,
    PUBLISHED,
    LinearizedCount,
    Published,
    chain,
    count,
    count_on,
    linearized_counts,
)
from linkwise.joints import Revolute
from linkwise.mechanism.layout import lay_out
from linkwise.mechanism.tree import Link, Tree
from linkwise.spatial.transforms import Transform

HERE = Path(__file__).parent
SHOWN = (6, 12, 30)
SAMPLED = (3, 4, 5, 6, 7, 8, 9, 12, 20, 30)  # where a formula is fitted and checked
BEST_INVERSE, BEST_FORWARD = "Balafoutis et al. 1988", "Featherstone 1983"

HEAD = """# Operation counts

Every algorithm of the library runs on any scalar. Run on traced scalars it leaves a straight-line program, and the
operations of that program can be counted: this page sets those counts beside the ones that the papers print. It is
generated (`python docs/generate_counts.py`); `linkwise.classics.count(name, n, kind)` gives any of the numbers.

**What is counted.** A serial chain of n links on revolute joints (`armstrong`: on ball joints) with nothing special
about it: every length, angle, mass and moment is there, gravity points anywhere, the base is at rest. M is
multiplications and divisions, A additions and subtractions. Constants and products of constants are folded, common
subexpressions are shared, results that nobody uses are dropped, signs are free. Sines and cosines (2n) and square
roots (n, in Cholesky's method) are not in M. A formula is exact for n = 3 (or as said) to 9, 12, 20 and 30; after ≈
it is the line through n = 12 and 30. (The signs of constants decide which terms can be shared: some algorithms count a
few operations more or fewer at other n.)

**Frames.** *general*: the link frames as some file has them. *DH*: the frames of Denavit and Hartenberg, which the
library chooses for itself whatever the file says. *regrouped*: these, and the inertias regrouped across the joints
(base parameters); this is what `model.inverse_dynamics` and the others run. A dash: the algorithm needs links that
have mass of their own.
"""


WHY = """## Where ours is lower, and why

{ladder}

- **Frames.** The dynamics do not care where a link's frame sits. Whatever angles a file was written with, the library
  puts z along the joint axis and x along the common normal to the next axis, so that a joint's constant placement is
  a shift (a, 0, b) and one turn about x, and its motion one turn about z.
- **Axial turns.** A turn about an axis costs 4 multiplications on a vector and 8 on a symmetric matrix, where a full
  rotation costs 8 or 9 and about 30 (successive axial screws, McMillan and Orin in Featherstone 2000). This is most of
  what forward dynamics gains: an articulated inertia has three 3×3 blocks to turn.
- **One matrix for ω.** E = ω'~ + ω~ω~ gives the acceleration of the next origin (a + E l), the force (m a + E h) and,
  with Euler's tensor ½ tr(J) 1 - J, the moment. Balafoutis' angular acceleration tensor is the same idea.
- **The bias carried outwards.** Forward dynamics takes the forces of the inverse dynamics of v̇ = 0, so that no
  product P a is needed in the recursion; Rosenthal's form of Kane's equations does the same, and has the same count.
- **Regrouping.** Each link hands to its parent the part of its inertia that its joint does not move. A hinge keeps
  seven numbers of ten; its mass, one first moment and one entry of Euler's tensor become structural zeros. Khalil's
  base parameters.
- **Exact zeros and ones.** After the joint is eliminated P⁺ has a row and a column of zeros, and the gain along the
  joint is one: neither is computed. A matrix whose in-plane part has one entry only is turned by the constants sin²,
  sin cos.

Where ours is not lower: with its 181 additions per link, forward dynamics passes the 174 per link of Featherstone's
row after n = 21 (its multiplications, 195 against 199 per link, stay below). And for a generic chain of up to 7 links
the
composite-body mass matrix with a triangular factorisation takes fewer operations than the articulated-body recursion,
also with our own ingredients (`linkwise_composite_forward`: {composite} at n = 6 in regrouped frames). On real arms,
whose parallel and crossing axes leave more zeros, the two are close (M + A, recursion against composite: Panda 1140 and
1143, UR5 495 and 524, Kinova 821 and 755), and the recursion is the more accurate one (Ascher, Pai and Cloutier, cited
in Featherstone 2000), so the library keeps to it.

## What the tables of Saha 1999 leave out

- Table 1 lists its rows in the order of the names above: each formula gives its printed value for n = 6.
- Table 2, row of Walker and Orin: the fractions are n³/6 + 11½n² + 38⅓n - 47 (both columns), and n³/6 + 7n² + 38⅚n -
  46, which gives 1716 for n = 12 as printed, but 475 for n = 6 where the table has 480.
- That row cannot include the bias force: at n = 6 its 633 multiplications are fewer than the 800 of the same authors'
  inverse dynamics in table 1. Our `composite_cholesky` has the same n³/6 + 11½n² and n³/6 + 7n²; its linear term is
  larger by the bias. The row of the proposed algorithm takes φ = τ - Cθ̇ as given too (Saha 1999 §5.2 lists it under the
  required input): to compare with it, see `linkwise_solve`.
- `direct_cholesky` and `symmetry_cholesky` count the same: Cholesky's method reads one half of the matrix, and what
  nobody reads is not computed. The two mass matrices themselves differ.
"""


LEFT_OUT = """
**Ours** take τ where the paper's algorithms 5 and 6 are given the accelerations, and find these on the way. They take
fewer multiplications than the paper's algorithms, run and counted, for every n = 2 … 40, and fewer operations; of
additions alone, 𝓜⁻¹, A_C, B_C take up to 0.3 % more from n = 38 on. Up to n = 9 (𝓜, A_D, B_D) and n = 10 they work in
link frames, beyond about one inertial point.

**Measured**, in batches of 64 states on one busy core (Zen 4), best of 80 rounds: for n = 12 𝓜⁻¹, A_C, B_C take 1.10 µs
a state, the paper's algorithm 6, which is given the accelerations, 1.12 µs, and products with the factors of 𝓜 (12 260
multiplications) 1.07 µs; for n = 20 2.35, 3.10 and 3.07 µs. Fewer operations are not less time in proportion: beside
the factors at n = 12 the recursion has 14 % fewer instructions of arithmetic, and writes 46 % more vectors to memory
(4443 against 3047 for eight states), since each axis keeps its P, Y and E until all rows have passed.

**What the printed counts leave out.** The links have to be referred to the inertial point first: H, Ḣ, Ḧ, V, α, M,
M̂ and the forces f, 247 multiplications a link by our count (7179 at n = 30). Algorithm 5's printed 259n - 129 cannot
contain them: (4.16), which comes after, takes 244 a link more, and all of it 549. Algorithm 6 shares both and prints
781n; it counts 27n² + 702n - 1088.
"""


@cache
def counted(name: str, n: int, kind: str) -> tuple[int, int] | None:
    """M and A, or None where the algorithm refuses."""
    try:
        counts = count(name, n, kind)
    except InputError:
        return None
    return counts.M, counts.A


@cache
def formula(name: str, kind: str, which: int) -> str:
    """The polynomial in n that gives M (0) or A (1) exactly for all sampled n; a line through n = 12, 30 otherwise."""
    values: dict[int, int] = {}
    for n in SAMPLED:
        both = counted(name, n, kind)
        if both is None:
            return "–"
        values[n] = both[which]
    for first in (3, 4, 5):
        sampled = [n for n in SAMPLED if n >= first]
        for degree in (1, 2, 3):
            nodes = sampled[: degree + 1]
            if all(_interpolate(nodes, values, n) == values[n] for n in sampled):
                return _text(_coefficients(nodes, values)) + (f" (n ≥ {first})" if first > 3 else "")
    slope = round((values[30] - values[12]) / 18)
    return f"≈ {_text([Fraction(values[30] - 30 * slope), Fraction(slope)])}"


def _interpolate(nodes: list[int], values: dict[int, int], n: int) -> Fraction:
    total = Fraction(0)
    for i in nodes:
        term = Fraction(values[i])
        for j in nodes:
            if j != i:
                term *= Fraction(n - j, i - j)
        total += term
    return total


def _coefficients(nodes: list[int], values: dict[int, int]) -> list[Fraction]:
    """Lowest first."""
    result = [Fraction(0)] * len(nodes)
    for i in nodes:
        term = [Fraction(values[i])]
        for j in nodes:
            if j != i:
                shifted = [Fraction(0), *term]
                term = [(s - j * t) / (i - j) for s, t in zip(shifted, [*term, Fraction(0)], strict=True)]
        result = [a + b for a, b in zip(result, term, strict=True)]
    return result


def _text(coefficients: list[Fraction]) -> str:
    parts = []
    for power, c in reversed(list(enumerate(coefficients))):
        if c:
            unknown = ("", "n", "n²", "n³")[power]
            size = abs(c)
            number = "" if size.numerator == 1 and unknown else str(size.numerator)
            over = f"/{size.denominator}" if size.denominator > 1 else ""
            parts.append(("- " if c < 0 else "+ ") + number + unknown + over)
    return " ".join(parts).removeprefix("+ ") or "0"


def _pair(both: tuple[float, float] | None) -> str:
    return "–" if both is None else f"{both[0]:.0f} / {both[1]:.0f}"


def row(name: str) -> str:
    """One line of a table: an algorithm of ours or of the papers, run and counted."""
    where = "" if name in OWN else f"{ALGORITHMS[name].paper} {ALGORITHMS[name].equations}"
    cells = [f"`{name}`", where, f"{formula(name, 'dh', 0)} ; {formula(name, 'dh', 1)}"]
    for kind in FRAMES:
        cells += [_pair(counted(name, n, kind)) for n in ((6,) if kind != "dh" else SHOWN)]
    return "| " + " | ".join(cells) + " |"


def published_row(p: Published) -> str:
    """One line as a paper prints it."""
    remark = f" ({p.remark})" if p.remark else ""
    cells = [p.name + remark, p.source, f"{p.M} ; {p.A}", "", *(_pair((p.M(n), p.A(n))) for n in SHOWN), ""]
    return "| " + " | ".join(cells) + " |"


COLUMNS = """| | where | M ; A, DH frames | general, n = 6 | DH, 6 | DH, 12 | DH, 30 | regrouped, 6 |
|---|---|---|---|---|---|---|---|"""


def table(kind: str) -> str:
    """All rows of one kind: printed, ours, and the classics."""
    own = [row(name) for name, (what, _) in OWN.items() if what == kind]
    classic = [row(a.name) for a in ALGORITHMS.values() if a.kind == kind]
    printed = [published_row(p) for p in PUBLISHED if p.kind == kind]
    return "\n".join([COLUMNS, *printed, *own, *classic])


def series_table() -> str:
    """n = 1 … 30 for what the library runs, beside the best printed rows."""
    best = {p.name: p for p in PUBLISHED if (p.name, p.kind) in ((BEST_INVERSE, "inverse"), (BEST_FORWARD, "forward"))}
    lines = [
        "| n | inverse, ours | Balafoutis et al. | forward, ours | Featherstone | `composite_cholesky`, DH "
        "| mass matrix, ours |",
        "|---|---|---|---|---|---|---|",
    ]
    for n in range(1, 31):
        cells = [
            str(n),
            _pair(counted("linkwise_inverse", n, "regrouped")),
            _pair((best[BEST_INVERSE].M(n), best[BEST_INVERSE].A(n))),
            _pair(counted("linkwise_forward", n, "regrouped")),
            _pair((best[BEST_FORWARD].M(n), best[BEST_FORWARD].A(n))),
            _pair(counted("composite_cholesky", n, "dh")),
            _pair(counted("linkwise_mass_matrix", n, "regrouped")),
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


class FullRotationLink(Link):
    """A link whose transform is one shift and one full 3×3 rotation, not a product of axial turns."""

    def phi(self, q):
        return Transform.rigid(*super().phi(q).matrix())


def with_full_rotations(tree: Tree) -> Tree:
    """The same tree without axial turns."""
    links = tuple(FullRotationLink(**{f.name: getattr(link, f.name) for f in fields(Link)}) for link in tree)
    return replace(tree, links=links)


def ladder(n: int = 6) -> str:
    """What each step of ours saves."""
    mechanism = chain(n, Revolute(axis=(0.0, 0.0, 1.0)))
    trees = {
        "general": lay_out(mechanism, align=False, regroup=False),
        "dh": lay_out(mechanism, regroup=False),
        "regrouped": lay_out(mechanism),
    }
    steps = [
        (
            "the printed algorithms, file's frames, full 3×3 rotations (R J Rᵀ by its trace)",
            "newton_euler",
            "articulated_body",
            "general",
            True,
        ),
        ("DH frames", "newton_euler", "articulated_body", "dh", True),
        ("a rotation is two axial turns", "newton_euler", "articulated_body", "dh", False),
        (
            "one matrix for all that is quadratic in ω; bias carried outwards",
            "linkwise_inverse",
            "linkwise_forward",
            "dh",
            False,
        ),
        ("inertias regrouped across the joints", "linkwise_inverse", "linkwise_forward", "regrouped", False),
    ]
    lines = [f"| step (each on top of the ones before), n = {n} | inverse, M / A | forward, M / A |", "|---|---|---|"]
    for text, inverse, forward, frames, full in steps:
        tree = with_full_rotations(trees[frames]) if full else trees[frames]
        pairs = [count_on(name, tree) for name in (inverse, forward)]
        lines.append(f"| {text} | " + " | ".join(_pair((c.M, c.A)) for c in pairs) + " |")
    return "\n".join(lines)


def linearized_table() -> str:
    """The six algorithms of Jain 1993."""
    lines = ["| | Jain 1993 | n | printed, M / A | counted, DH | ours, regrouped |", "|---|---|---|---|---|---|"]
    for number in range(6):
        for n in SHOWN:
            r = linearized(n)[number]
            first = f"{r.what} | alg. {r.number}" if n == SHOWN[0] else " | "
            lines.append(f"| {first} | {n} | {_pair(r.printed)} | {_pair(r.counted)} | {_pair(r.own)} |")
    return "\n".join(lines)


@cache
def linearized(n: int) -> list[LinearizedCount]:
    """All six, once for each n."""
    return linearized_counts(n)


def operations(name: str, n: int, kind: str) -> int:
    """M + A."""
    both = counted(name, n, kind)
    assert both is not None
    return sum(both)


def crossovers() -> str:
    """From which n on one algorithm takes fewer operations than another."""
    lines = ["| fewer operations (M + A, DH frames) | than | from n = |", "|---|---|---|"]
    pairs = [
        ("articulated_body", "composite_cholesky"),
        ("articulated_body", "innovations"),
        ("innovations", "composite_cholesky"),
        ("articulated_body", "direct_cholesky"),
        ("sparse_kkt", "composite_cholesky"),
        ("constraint_force", "composite_cholesky"),
        ("divide_and_conquer", "composite_cholesky"),
        ("sparse_kkt", "conjugate_gradient"),
        ("denoc", "composite"),
        ("linkwise_forward", "linkwise_composite_forward"),
    ]
    for a, b in pairs:
        wins = [n for n in range(1, 31) if operations(a, n, "dh") < operations(b, n, "dh")]
        first = next((n for n in wins if all(m in wins for m in range(n, 31))), None)
        lines.append(f"| `{a}` | `{b}` | {first if first is not None else 'beyond 30'} |")
    return "\n".join(lines)


def plot(path: Path) -> None:
    """Operations per link against n, forward dynamics."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "linkwise"
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 5))
    ns = range(1, 31)
    for name, kind, style in (
        ("newton_euler", "dh", "-"),
        ("newton_euler_spatial", "dh", "-"),
        ("composite_inverse", "dh", "-"),
        ("denoc_inverse", "dh", "-"),
        ("linkwise_inverse", "dh", "--"),
        ("linkwise_inverse", "regrouped", "-"),
    ):
        left.plot(ns, [operations(name, n, kind) / n for n in ns], style, label=f"{name} ({kind})")
    for name, kind, style in (
        ("composite_cholesky", "dh", "-"),
        ("direct_cholesky", "dh", "-"),
        ("conjugate_gradient", "dh", "-"),
        ("innovations", "dh", "-"),
        ("articulated_body", "dh", "-"),
        ("sparse_kkt", "dh", "-"),
        ("constraint_force", "dh", "-"),
        ("divide_and_conquer", "dh", "-"),
        ("linkwise_forward", "regrouped", "-"),
    ):
        right.plot(ns, [operations(name, n, kind) / n for n in ns], style, label=f"{name} ({kind})")
    for axes, kind, names in (
        (left, "inverse", (BEST_INVERSE, "Khalil et al. 1986", "Luh, Walker, Paul 1980")),
        (right, "forward", (BEST_FORWARD,)),
    ):
        for p in PUBLISHED:
            if p.kind == kind and p.name in names:
                axes.plot(ns, [(p.M(n) + p.A(n)) / n for n in ns], ":", color="black", lw=1)
                axes.annotate(p.name, (ns[-1], (p.M(30) + p.A(30)) / 30), fontsize=7, ha="right", va="bottom")
        axes.set_xlabel("links n")
        axes.set_ylabel("operations per link, (M + A) / n")
        axes.set_title(f"{kind} dynamics of a revolute chain")
        axes.grid(alpha=0.3)
        axes.legend(fontsize=7)
    right.set_yscale("log")
    right.set_ylim(100, 5000)
    left.set_ylim(0, 300)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def page() -> str:
    """The whole text."""
    return "\n".join(
        [
            HEAD,
            "## Inverse dynamics\n\n" + table("inverse") + "\n",
            "## Forward dynamics\n\n" + table("forward") + "\n",
            "## Mass matrix\n\n" + table("mass matrix") + "\n",
            "## Linearised dynamics\n\n" + linearized_table() + "\n" + LEFT_OUT,
            WHY.replace("{ladder}", ladder()).replace(
                "{composite}", _pair(counted("linkwise_composite_forward", 6, "regrouped"))
            ),
            "## Crossovers\n\n![Operations per link](operation_counts.svg)\n\n" + crossovers() + "\n",
            "## n = 1 … 30\n\nM / A.\n\n" + series_table() + "\n",
        ]
    )


if __name__ == "__main__":
    (HERE / "operation_counts.md").write_text(page(), encoding="utf-8")
    plot(HERE / "operation_counts.svg")
