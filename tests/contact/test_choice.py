"""Counts by which a contact solver is chosen, beside those of the programs themselves."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.contact.choice import in_loops, loops_are_cheaper, of_pair, written_out
from linkwise.contact.crowd import _frame
from linkwise.contact.geometry.pairs import PAIRS, contacts
from linkwise.contact.scene import kept_points, meetings_of
from linkwise.trace.calls import traced
from tests.contact.scenes import one_body, shape

SIZES = {
    "sphere": (0.1,),
    "capsule": (0.1, 0.3),
    "box": (0.1, 0.2, 0.3),
    "cylinder": (0.1, 0.2),
    "ellipsoid": (0.1, 0.2, 0.3),
}


@pytest.mark.parametrize("kinds", [pair for pair in PAIRS if pair[1] not in ("heightfield", "terrain")], ids="-".join)
@pytest.mark.parametrize("corners", [12, 64])
def test_pairs_take_as_many_operations_as_is_said(kinds: tuple[str, str], corners: int) -> None:
    rng = np.random.default_rng(0)

    def one(kind: str) -> lw.Geometry:
        if kind != "convex":
            return shape(kind, SIZES.get(kind, ()))
        vertices = tuple((float(x), float(y), float(z)) for x, y, z in rng.normal(size=(corners, 3)))
        return lw.Geometry("convex", (), None, (1, 1, 1), lw.transform(), "hull", vertices=vertices)

    a, b = map(one, kinds)

    def text(y: list) -> dict:
        found = contacts(a, _frame(y[:12]), b, _frame(y[12:])).points
        return {"points": [x for point in found for x in (point.gap, *point.normal, *point.point)]}

    program = traced("points", text, {"y": 24})
    counted = getattr(program, "length", None) or len(program.nodes)
    assert of_pair(*kinds, corners * kinds.count("convex")) == pytest.approx(counted, rel=0.35)


def legs(count: int, feet: int, joints: int = 3) -> lw.Model:
    """A trunk with legs, and some balls on each foot."""
    b = lw.ModelBuilder("legs")
    b.add_body("trunk", joint=lw.Free(), mass=1.0, inertia=np.eye(3))
    for k in range(count):
        on = "trunk"
        for j in range(joints):
            balls = [shape("sphere", (0.05,), lw.transform(xyz=(0.1 * i, 0, 0))) for i in range(feet)]
            b.add_body(
                f"leg{k}{j}",
                parent=on,
                joint=lw.Revolute((0, 1, 0)),
                placement=lw.transform(xyz=(0.5, 0.1 * k, 0)),
                mass=1.0,
                inertia=np.eye(3) * 0.01,
                collisions=balls if j == joints - 1 else [],
            )
            on = f"leg{k}{j}"
    return b.build()


@pytest.mark.parametrize(("count", "feet"), [(4, 1), (4, 4), (2, 8), (8, 2)])
def test_steps_take_as_many_operations_as_is_said(count: int, feet: int) -> None:
    """By both solvers, all points used."""
    bare = legs(count, feet)
    ground = [f"leg{k}2" for k in range(count)]
    for solver in ("dual", "primal"):
        model = bare.with_contacts(lw.Ground(), only=ground, rules=lw.ContactRules(solver=solver))
        counted = model.function("contact_step").program.length
        meetings = meetings_of(model)
        said = written_out(meetings, model.nv) if solver == "dual" else in_loops(count * feet, 3, model.nv)
        assert said == pytest.approx(counted, rel=0.45), solver


def test_the_solver_is_the_one_that_takes_less() -> None:
    """Many points of one body are written out; as many of many legs go in loops; a name has its way."""
    one = legs(1, 30, joints=1).with_contacts(lw.Ground(), only=["leg00"])
    assert kept_points(one) is None
    feet = [f"leg{k}0" for k in range(15)]
    many = legs(15, 2, joints=1).with_contacts(lw.Ground(), only=feet)
    assert sum(m.points for m in meetings_of(one)) == sum(m.points for m in meetings_of(many)) == 30
    assert kept_points(many) == 16
    assert not loops_are_cheaper(meetings_of(one), 16, one.nv)
    named = many.with_contacts(lw.Ground(), only=feet, rules=lw.ContactRules(solver="dual"))
    assert kept_points(named) is None
    slippery = one_body("ellipsoid", SIZES["ellipsoid"], 1.0, [0.01, 0.01, 0.01])
    assert kept_points(slippery.with_contacts(lw.Ground(), material=lw.Material(friction=0.0))) is None
