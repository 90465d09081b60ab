"""Links from arrays and links one by one are the same links, and so are bodies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.functions.rolled.symbolic_links import grouped
from linkwise.mechanism.layout import ManyLinks, lay_out
from linkwise.spatial.flattening import taken_apart
from tests.random_trees import BUILT_IN, random_inertia, random_joint, random_placement


class Pin(lw.Revolute):
    """A hinge that regroups by its own text, and not by the numbers written out for hinges."""

    def split(self, M: Any) -> Any:
        return super().split(M)


def _many(n: int, seed: int, hinge: type[lw.Revolute] | None = None, back: int = 4) -> lw.Model:
    rng = np.random.default_rng(seed)
    b = lw.ModelBuilder("many")
    for k in range(n):
        parent = "world" if k == 0 else f"b{max(0, k - int(rng.integers(1, back + 1)))}"
        joint = random_joint(rng, str(rng.choice(BUILT_IN))) if hinge is None else hinge(rng.normal(size=3))
        if k % 7 == 3 and hinge is not None:
            joint = hinge((0, 0, 1))
        place = random_placement(rng) if k % 5 else lw.transform(xyz=(0.3, 0, 0))
        b.add_body(f"b{k}", parent, joint, place, armature=0.1 * (k % 3 == 0), **random_inertia(rng))
    if hinge is not None:  # a rod on its axis, of which the split would leave no digits
        slender = np.diag((1.0, 0.7, 1e-18))
        b.add_body("rod", "b5", hinge((0, 0, 1)), mass=1.0, com=(0, 0, 0.5), inertia=slender, check_inertia=False)
    return b.build()


def _numbers(tree: Any) -> list[list[Any]]:
    fields = ("placement", "lead", "inertia", "to_body", "armature")
    return [taken_apart([getattr(link, name) for name in fields])[0] for link in tree.links]


@pytest.mark.parametrize("back", [1, 4])
def test_hinges_are_regrouped_as_their_type_says(back: int) -> None:
    written_out, by_text = (lay_out(_many(120, 3, hinge, back)) for hinge in (lw.Revolute, Pin))
    for a, b in zip(_numbers(written_out), _numbers(by_text), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-15 * max(map(abs, b)))
    assert [link.name for link in written_out.links if link.inertia.m != 0.0] == ["rod"]
    numbers = [taken_apart(tree.base_inertia)[0] for tree in (written_out, by_text)]
    np.testing.assert_allclose(*numbers, rtol=1e-12)


def test_kinds_from_arrays_and_link_by_link() -> None:
    links = lay_out(_many(150, 8)).links
    assert isinstance(links, ManyLinks)
    at_once, one_by_one = grouped(links), grouped(tuple(links))
    assert len(at_once) == len(one_by_one)
    for (many, first), (singly, comes_first) in zip(at_once, one_by_one, strict=True):
        assert (many.template.index, first, many.members) == (singly.template.index, comes_first, singly.members)
        np.testing.assert_array_equal(np.array(many.rows, float), np.array(singly.rows, float))


def test_links_are_made_when_looked_at() -> None:
    model = _many(100, 1, lw.Revolute)
    links = lay_out(model).links
    assert [link.name for link in links[3:5]] == ["b3", "b4"]
    assert links[-1] is links[100]
    with pytest.raises(IndexError):
        links[101]


def test_bodies_from_arrays() -> None:
    rng = np.random.default_rng(0)
    n = 50
    parents = np.array([-1, *(int(rng.integers(-1, k)) for k in range(1, n))])
    axes, bodies = rng.normal(size=(n, 3)), [random_inertia(rng) for _ in range(n)]
    masses, coms, inertias = (np.array([body[what] for body in bodies]) for what in ("mass", "com", "inertia"))
    placements = np.array([random_placement(rng) for _ in range(n)])
    together, singly = lw.ModelBuilder("tree"), lw.ModelBuilder("tree")
    together.add_body("hub", joint=lw.Free(), mass=1.0, inertia=np.eye(3))
    singly.add_body("hub", joint=lw.Free(), mass=1.0, inertia=np.eye(3))
    more = {"axes": axes, "armature": 0.1, "damping": masses}
    names = together.add_bodies("arm", parents, lw.Revolute, placements, masses, coms, inertias, root="hub", **more)
    for k in range(n):
        singly.add_body(
            f"arm{k}", "hub" if parents[k] < 0 else f"arm{parents[k]}", lw.Revolute(axes[k]), placements[k], masses[k],
            coms[k], inertias[k], armature=0.1, damping=masses[k],
        )  # fmt: skip
    a, b = together.build(), singly.build()
    assert names == b.bodies.names[1:]
    assert a.joints == b.joints
    assert a.parents == b.parents
    for one, other in zip(a.bodies, b.bodies, strict=True):
        assert (one.name, one.index, one.parts) == (other.name, other.index, other.parts)
        assert one.placement == other.placement
    q, v, x = b.random_configuration(1), rng.normal(size=b.nv), rng.normal(size=b.nv)
    np.testing.assert_allclose(a.inverse_dynamics(q, v, x), b.inverse_dynamics(q, v, x), rtol=1e-10, atol=1e-9)


def test_a_chain_of_one_kind() -> None:
    b = lw.ModelBuilder("rope")
    b.add_chain("link", 80, placements=lw.transform(xyz=(0, 0, -0.1)), masses=0.1, coms=(0, 0, -0.05), axes=(0, 1, 0))
    b.add_body("load", "link79", mass=1.0)
    rope = b.build()
    assert rope.parents == tuple(range(-1, 79))
    assert rope.bodies["link17"].mass == 0.1
    assert rope.bodies["link79"].mass == 1.1
    # hanging at rest in its place: only gravity off the vertical needs torque
    np.testing.assert_allclose(rope.gravity_force(np.zeros(80)), 0.0, atol=1e-12)
    assert rope.gravity_force(np.full(80, 0.01))[0] == pytest.approx(_hanging(np.full(80, 0.01)), rel=1e-12)


def _hanging(q: np.ndarray) -> float:
    """The torque at the top of a planar rope, summed by hand."""
    angle = np.cumsum(q)
    x = -0.1 * np.concatenate(([0.0], np.cumsum(np.sin(angle))[:-1]))  # joints; a turn about y takes -z to -x
    arms = x - 0.05 * np.sin(angle)
    return float(-9.81 * (0.1 * arms.sum() + 1.0 * (x[-1])))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"parents": [0, 0]}, "parents are not places of earlier bodies"),
        ({"parents": [-1, 0.5]}, "parents are not places of earlier bodies"),
        ({"names": ["a"]}, "names do not fit"),
        ({"names": ["a", "a"]}, "given twice"),
        ({"names": ["a", "taken"]}, "'taken' is taken"),
        ({"masses": [1.0, -1.0]}, "the mass of body 'b1' is not possible"),
        ({"coms": (0, 0)}, "the mass centres do not fit 2 bodies"),
        ({"coms": [(0, 0, 0), (0, np.nan, 0)]}, "the mass centre of 'b1' is not finite"),
        ({"inertias": -np.eye(3)}, "body 'b0' has a negative principal moment"),
        ({"placements": [np.eye(4), 2 * np.eye(4)]}, "the placement of body 'b1'"),
        ({"joints": [lw.Revolute()]}, "joints do not fit 2 bodies"),
        ({"joints": lw.Revolute(), "axes": (0, 0, 1)}, "axes go with a class"),
        ({"root": "nobody"}, "nobody"),
        ({"armature": -1.0}, "must be finite and not negative"),
    ],
)
def test_arrays_that_make_no_sense(change: dict[str, Any], says: str) -> None:
    b = lw.ModelBuilder("wrong")
    b.add_body("taken", joint=lw.Revolute(), mass=1.0)
    given: dict[str, Any] = {
        "names": "b",
        "parents": [-1, 0],
        "joints": lw.Revolute,
        "masses": 1.0,
        "inertias": np.eye(3),
    }
    with pytest.raises(lw.LinkwiseError, match=says):
        b.add_bodies(**(given | change))
    assert b.build().bodies.names == ("taken",)  # nothing of it came in


_SKEW = np.array([[1.0, 0.2, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])


@pytest.mark.parametrize(
    ("singly", "together"),
    [
        ({"inertia": np.diag((1.0, np.inf, 1.0))}, "inertias"),
        ({"inertia": np.diag((1.0, 1.0, np.nan))}, "inertias"),
        ({"inertia": _SKEW}, "inertias"),
        ({"inertia": np.diag((1.0, -0.5, 1.0))}, "inertias"),
        ({"placement": np.diag((1.0, 1.0, -1.0, 1.0))}, "placements"),
        ({"placement": np.eye(4) * np.nan}, "placements"),
        ({"placement": np.eye(4) + np.eye(4, k=-3)}, "placements"),
        ({"mass": -1.0}, "masses"),
        ({"com": (0.0, np.nan, 0.0)}, "coms"),
    ],
)
def test_one_body_and_many_are_refused_alike(singly: dict[str, Any], together: str) -> None:
    """The second of three bodies is wrong: the message is that of the body alone."""
    (field, wrong), good = (
        *singly.items(),
        {"inertia": np.eye(3), "placement": np.eye(4), "mass": 1.0, "com": (0, 0, 0)},
    )
    messages = []
    for add in (
        lambda b: b.add_body("b1", joint=lw.Revolute(), **(good | {field: wrong})),
        lambda b: b.add_bodies("b", [-1, 0, 1], lw.Revolute, **{together: [good[field], wrong, good[field]]}),
    ):
        with pytest.raises(lw.LinkwiseError) as caught:
            add(lw.ModelBuilder("one"))
        messages.append(str(caught.value).splitlines()[0])
    assert messages[0] == messages[1]
    assert "b1" in messages[0]


def test_impossible_inertias_are_warned_of_alike() -> None:
    inertia = np.diag((1.0, 1.0, 3.0))
    with pytest.warns(lw.errors.ModelWarning, match="inertia of body 'b1' breaks the triangle inequality") as one:
        lw.ModelBuilder("one").add_body("b1", joint=lw.Revolute(), mass=1.0, inertia=inertia)
    with pytest.warns(lw.errors.ModelWarning, match="inertia of body 'b1' breaks the triangle inequality") as many:
        lw.ModelBuilder("many").add_bodies("b", [-1, 0], lw.Revolute, inertias=[np.eye(3), inertia])
    assert [str(w.message) for w in one] == [str(w.message) for w in many]
    assert {w.filename for w in (*one, *many)} == {__file__}
