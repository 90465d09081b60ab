"""Book's flexible arms in 4×4 matrices beside the library's, which are written without a matrix of that size."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.classics import run
from linkwise.functions.counting import count_on
from linkwise.mechanism.layout import lay_out


def link(rng: np.random.Generator, modes: int, turning: float) -> lw.FlexibleBody:
    """Particles along a rod that modes of no special shape move, and two nodes, which they turn or do not."""
    x = np.linspace(0.05, 0.95, 12)
    points = np.stack([x, 0.03 * rng.normal(size=12), 0.03 * rng.normal(size=12)], axis=1)
    nodes = {
        name: (place, 0.5 * rng.normal(size=(3, modes)), turning * rng.normal(size=(3, modes)))
        for name, place in (("tip", (1.0, 0.1, 0.0)), ("middle", (0.5, 0.0, 0.1)))
    }
    root = rng.normal(size=(modes, modes))
    K = 30.0 * root @ root.T + np.eye(modes)
    shapes = rng.normal(size=(12, 3, modes)) * x[:, None, None]
    return lw.FlexibleBody.from_modes(
        points, rng.uniform(0.05, 0.2, 12), shapes, K, nodes=nodes, damping=0.01 * K
    )  # fmt: skip


def arm(rng: np.random.Generator, n: int, turning: float = 0.0) -> lw.Model:
    """Hinges and a slide, every third link rigid, and a load welded beside the last tip."""
    b = lw.ModelBuilder("arm", gravity=5.0 * rng.normal(size=3))
    for k in range(n):
        on = {"parent": f"link{k - 1}"} | ({"at": "tip"} if (k - 1) % 3 != 2 else {}) if k else {}
        joint = lw.Prismatic(axis=rng.normal(size=3)) if k % 4 == 1 else lw.Revolute(axis=rng.normal(size=3))
        place = lw.transform(xyz=0.2 * rng.normal(size=3), rpy=rng.uniform(-1, 1, 3))
        own = (
            {"mass": 1.0, "com": 0.2 * rng.normal(size=3), "inertia": np.diag([0.1, 0.12, 0.09])}
            if k % 3 == 2
            else {"flexible": link(rng, 2 + k % 3, turning)}
        )
        b.add_body(f"link{k}", joint=joint, placement=place, armature=0.05, **own, **on)
    if n % 3:
        load = {"mass": 0.7, "com": (0.1, 0.0, 0.2), "inertia": np.diag([0.02, 0.03, 0.04])}
        b.add_body("load", parent=f"link{n - 1}", at="middle", placement=lw.transform(rpy=(0.3, 0.2, 0.1)), **load)
    return b.build()


def difference(model: lw.Model, q: np.ndarray, v: np.ndarray, vdot: np.ndarray) -> float:
    """Relative, of Book's forces and the library's."""
    expected = model.inverse_dynamics(q, v, vdot)
    return float(np.abs(run("book", model, q, v, vdot) - expected).max() / np.abs(expected).max())


@pytest.mark.parametrize("n", [1, 2, 5])
def test_book_is_exact_where_ends_do_not_turn(n: int) -> None:
    """At deflections of any size: 1e-10 is asked, some 1e-16 is found."""
    rng = np.random.default_rng(n)
    model = arm(rng, n)
    assert difference(model, 0.5 * rng.normal(size=model.nq), *rng.normal(size=(2, model.nv))) < 1e-10


def test_book_is_the_limit_of_small_deflections_where_ends_turn() -> None:
    """The difference is proportional to the deflection, and gone without any: forces in the undeformed arm agree."""
    rng = np.random.default_rng(2)
    model = arm(rng, 4, turning=1.0)
    q, v, vdot = rng.normal(size=(3, model.nv))
    hinge = np.zeros(model.nv, bool)
    hinge[[joint.v_slice.start for joint in model.joints if joint.nv]] = True
    found = []
    for size in (1e-3, 1e-4, 1e-5):
        scale = np.where(hinge, 1.0, size)
        found.append(difference(model, q * scale, v * scale, vdot))
    np.testing.assert_allclose(np.divide(found[:-1], found[1:]), 10.0, rtol=0.02)
    assert difference(model, q * hinge, v * hinge, vdot) < 1e-10


def test_book_takes_more_operations() -> None:
    """4×4 matrices are its price, as 3×3 ones are Hollerbach's: the counts of docs/papers.md, for three links of two
    modes each that turn their ends as they bend. Ours do so by rotations, which Book's do not."""
    rng = np.random.default_rng(3)
    b = lw.ModelBuilder("arm")
    for k in range(3):
        on = {"parent": f"link{k - 1}", "at": "tip"} if k else {}
        place = lw.transform(xyz=rng.normal(size=3), rpy=rng.uniform(-1, 1, 3))
        hinge = lw.Revolute(axis=rng.normal(size=3))
        b.add_body(f"link{k}", joint=hinge, placement=place, flexible=link(rng, 2, 1.0), **on)
    book, ours = (count_on(name, lay_out(b.build())) for name in ("book", "linkwise_inverse"))
    assert (ours.M, ours.A) < (book.M, book.A) and ours.A < book.A
    assert abs(book.M - 2922) < 30 and abs(ours.M - 1802) < 30


def test_book_refuses_beams_that_shorten() -> None:
    b = lw.ModelBuilder("beam")
    beam = lw.FlexibleBody.beam(1.0, 4e6, (300.0, 300.0), 230.0, 0.155, elements=4, modes=2)
    b.add_body("beam", joint=lw.Revolute((0, 0, 1)), flexible=beam)
    model = b.build()
    with pytest.raises(lw.InputError, match="points move along their modes"):
        run("book", model, np.zeros(model.nq))
