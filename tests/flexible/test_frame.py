"""Frames: a straight one is a beam however it lies; an L is what the textbook says."""

import numpy as np
import pytest

from linkwise.errors import LinkwiseError
from linkwise.flexible import FlexibleBody, Member, Section

SECTION = Section(EA=2.8e7, EI=(1.4e4, 2.0e4), GJ=1e4, mass_per_length=1.2, rotary_inertia=(6e-4, 8e-4), GA=(1e7, 1e7))
BEAM = {"rotary_inertia": (6e-4, 8e-4), "GA": 1e7}


def test_a_straight_frame_is_a_beam():
    members = [Member("a", "m", SECTION, 8), Member("m", "b", SECTION, 12)]
    frame = FlexibleBody.frame({"a": (0, 0, 0), "m": (4, 0, 0), "b": (10, 0, 0)}, members, root="a", modes=6)
    beam = FlexibleBody.beam(
        10.0, 2.8e7, (1.4e4, 2.0e4), 1e4, 1.2, elements=20, modes=3, axial_modes=0, torsion_modes=0, **BEAM
    )
    np.testing.assert_allclose(frame.frequencies, beam.frequencies, rtol=1e-7)
    for name, theirs in (("m", 8), ("b", "tip")):
        np.testing.assert_allclose(frame.node(name).Q, beam.node(theirs).Q, atol=1e-6)
    for name in ("J2", "A1", "a", "B"):
        np.testing.assert_allclose(getattr(frame.integrals, name), getattr(beam.integrals, name), atol=1e-6)


def test_a_frame_turned_in_space_is_the_same_frame():
    rng = np.random.default_rng(4)
    R = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    R *= np.sign(np.linalg.det(R))
    nodes = {"a": (0, 0, 0), "b": (2, 0, 0), "c": (2, 1.5, 0)}
    members = [Member("a", "b", SECTION, y=(0, 1, 0)), Member("b", "c", SECTION, y=(0, 0, 1))]
    turned = [Member(each.start, each.end, SECTION, y=tuple(R @ each.y)) for each in members]
    one = FlexibleBody.frame(nodes, members, root="a", modes=4)
    other = FlexibleBody.frame({key: R @ each + 5.0 for key, each in nodes.items()}, turned, root="a", modes=4)
    np.testing.assert_allclose(one.frequencies, other.frequencies, rtol=1e-9)
    sign = np.sign(np.einsum("ai,ai->i", R @ one.node("c").Gamma, other.node("c").Gamma))
    np.testing.assert_allclose(other.node("c").Gamma, R @ one.node("c").Gamma * sign, atol=1e-7)
    moved = np.einsum("ab,bij,i,j->aij", R, one.node("c").Q, sign, sign)
    np.testing.assert_allclose(other.node("c").Q, moved, atol=1e-6)
    np.testing.assert_allclose(other.inertia, R @ one.inertia @ R.T, atol=1e-9)


def test_static_deflection_of_an_l_frame():
    """A force along z at the end of an L: bending and twist of the first leg, bending of the second."""
    section = Section(EA=1e9, EI=(1.4e4, 2.0e4), GJ=1e4, mass_per_length=1.2, rotary_inertia=(6e-4, 8e-4))
    a, b = 2.0, 1.5
    body = FlexibleBody.frame(
        {"a": (0, 0, 0), "b": (a, 0, 0), "c": (a, b, 0)},
        [Member("a", "b", section, y=(0, 1, 0)), Member("b", "c", section, y=(-1, 0, 0))],
        root="a", modes=4, residuals=("c",),
    )  # fmt: skip
    c = body.node("c")
    compliance = c.Gamma[2] @ np.linalg.solve(body.stiffness, c.Gamma[2])
    # The second leg bends about its own y, which lies along -x: EI_y there as well.
    assert compliance == pytest.approx(a**3 / (3 * 1.4e4) + b**2 * a / 1e4 + b**3 / (3 * 1.4e4), rel=1e-8)


def test_numbers_names_and_default_axes():
    body = FlexibleBody.frame(
        [(0, 0, 0), (0, 1, 0), (0, 1, 1)], [Member(0, 1, SECTION, 2), Member(1, 2, SECTION, 2)], root=0, modes=2
    )
    assert [node.number for node in body.nodes] == [0, 1, 2]
    assert body.node("root").number == 0


def test_a_rectangle_is_a_section():
    section = Section.rectangle(0.02, 0.05, E=7e10, nu=0.33, density=2700.0)
    assert pytest.approx((7e10 * 0.05 * 0.02**3 / 12, 7e10 * 0.02 * 0.05**3 / 12)) == section.EI
    assert section.mass_per_length == pytest.approx(2.7)
    # Timoshenko and Goodier: J = 0.249 b a³ for b / a = 2.5.
    assert pytest.approx(0.249 * 0.05 * 0.02**3, rel=5e-3) == section.GJ * 2 * 1.33 / 7e10


@pytest.mark.parametrize(
    ("nodes", "members", "root", "text"),
    [
        ({"a": (0, 0, 0), "b": (1, 0, 0)}, [], "a", "needs members"),
        ({"a": (0, 0, 0), "b": (1, 0, 0)}, [Member("a", "c", SECTION)], "a", "does not have"),
        ({"a": (0, 0, 0), "b": (0, 0, 0)}, [Member("a", "b", SECTION)], "a", "no length"),
        ({"a": (0, 0, 0), "b": (1, 0, 0)}, [Member("a", "b", SECTION, y=(2, 0, 0))], "a", "lies along"),
        ({"a": (0, 0, 0), "b": (1, 0, 0)}, [Member("a", "b", SECTION)], "z", "no node"),
        ({"a": (0, 0, 0), "b": (1, 0, 0), "c": (2, 0, 0)}, [Member("a", "b", SECTION)], "a", "falls into 2 parts"),
        ({"a": (0, 0), "b": (1, 0, 0)}, [Member("a", "b", SECTION)], "a", "not points"),
    ],
)
def test_bad_frames(nodes, members, root, text):
    with pytest.raises(LinkwiseError, match=text):
        FlexibleBody.frame(nodes, members, root=root, modes=2)
