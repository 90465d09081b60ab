"""Parts of the report: what fails is shown as failed, and what moves moves as the model does."""

import base64
import re
from xml.etree import ElementTree

import numpy as np

from linkwise import samples
from linkwise.papers import closed_loops, flexible_links, opening
from linkwise.papers.animation import Line, animation, projected, skeleton
from linkwise.papers.linearized_models import differences
from linkwise.papers.report_page import ReportPage, mathml
from linkwise.papers.review import exponent
from linkwise.papers.unified import RULES


def test_what_does_not_hold_is_shown():
    page = ReportPage("title", "lead")
    page.section("Jain 1991", "first")
    page.found([(True, "holds"), (False, "does not")])
    page.table(["", "x"], [["row", False], ["other", True]])
    html = page.html()
    assert "<b>2 of 4</b> checks" in html
    assert '<li class="no">does not</li>' in html
    assert '<td class="no">✗</td>' in html


def test_text_is_escaped():
    page = ReportPage("a < b", "lead")
    page.section("x", "<script>")
    page.table(["&"], [["<td>"]])
    page.code("if a < b: ...")
    html = page.html().split("<script>", 1)[0]
    assert "&lt;script&gt;" in html
    assert "&lt;td&gt;" in html


def points_of(html):
    """The pictures of every line of an animation, in units of the motion's own picture."""
    kinds, data = (re.search(rf'data-{name}="([^"]*)"', html).group(1) for name in ("kinds", "points"))
    numbers = np.frombuffer(base64.b64decode(data), "<i2").astype(float)
    lines, at = [], 0
    for kind in kinds.split(";"):
        pictures, points = (int(x) for x in kind.split(",")[:2])
        lines.append(numbers[at : at + 2 * pictures * points].reshape(pictures, points, 2))
        at += 2 * pictures * points
    assert at == len(numbers)
    return lines


def test_the_animation_shows_the_poses_of_the_model():
    model = samples.planar_arm()
    t = np.linspace(0.0, 1.0, 5)
    q = np.random.default_rng(0).normal(size=(5, 3))
    lines = points_of(animation(t, skeleton(model, q), "arm", view="xy"))
    assert len(lines) == 3
    joints = model.poses(q)[:, :, :2, 3]
    tip = model.pose(q, "tip")[:, :2, 3]
    ends = np.concatenate([joints, tip[:, None]], axis=1)
    scale = np.linalg.norm(lines[0][0, 1] - lines[0][0, 0]) / 0.5  # of a link
    for k, line in enumerate(lines):
        ours = (line - lines[0][0, 0]) / scale
        np.testing.assert_allclose(ours, ends[:, k : k + 2] - ends[0, 0], atol=2e-3)


def test_flexible_bodies_are_bent_and_closures_meet():
    beam = flexible_links.turntable()
    q = np.zeros((2, beam.nq))
    q[1] = 0.05
    bent = skeleton(beam, q)[0].points
    assert bent.shape[1] > 2
    np.testing.assert_allclose(bent[1, -1], beam.pose(q[1], "beam", node="tip")[:3, 3])
    assert np.ptp(bent[1] @ np.cross(bent[1, 1] - bent[1, 0], (0, 0, 1))) > 0.01  # no straight line
    bars = samples.four_bar(1)
    q = bars.neutral()[None]
    ends = np.concatenate([line.points[0] for line in skeleton(bars, q)])
    assert sum(np.allclose(end, (1.0, 0.0, 1.0)) for end in ends) == 2  # the coupler's and the second rod's


def test_the_eye_looks_from_where_it_is_said_to():
    up = Line(np.array([[0.0, 0, 0], [0, 0, 1], [0, 1, 0], [1, 0, 0]]))
    from_front = projected([up], (0.0, 0.0))[0].points  # from +x: y to the right, z up
    np.testing.assert_allclose(from_front, [[0, 0], [0, 1], [1, 0], [0, 0]], atol=1e-15)
    from_above = projected([up], (0.0, 90.0))[0].points
    np.testing.assert_allclose(from_above, [[0, 0], [0, 0], [1, 0], [0, -1]], atol=1e-15)


def test_differences_and_exponents():
    jacobian = differences(lambda x: np.array([np.sin(x[0]) * x[1], x[1] ** 3]), np.array([0.3, 0.7]))
    np.testing.assert_allclose(jacobian, [[np.cos(0.3) * 0.7, np.sin(0.3)], [0.0, 3 * 0.49]], atol=1e-10)
    assert abs(exponent((4, 8, 16), [n**2.5 for n in (4, 8, 16)]) - 2.5) < 1e-12


def test_the_steps_on_a_redundant_loop():
    """Where the constraints have more rows than rank."""
    model = samples.four_bar(1)
    q = model.assemble(np.array([0.4, -0.4, 0.4]))
    v = model.constraints.project_velocity(q, np.array([1.0, -1.0, 1.0]))
    rows, total = closed_loops.step_rows(model, q, v, np.array([1.0, 2.0, 3.0]))
    assert [row[0] for row in rows] == list("ABCDEF")
    assert max(error for _, _, error in rows) < 1e-9
    assert total < 1e-9


def test_the_four_bar_is_the_exact_one_and_a_wrong_one_is_told():
    motion, exact = closed_loops.four_bar_motion()
    model = samples.four_bar(2)
    assert all(holds for holds, _ in closed_loops.four_bar_checks(model, motion, exact))
    assert not closed_loops.four_bar_checks(model, motion, exact + 1e-3)[0][0]


def test_the_clamped_beam_is_the_textbooks():
    assert max(flexible_links.cantilever_errors()) < 1e-4


def test_the_controller_brings_the_arm_onto_its_way():
    again = opening.controlled_arm()
    half = opening.controlled_arm(opening.SWING / 2)
    assert np.abs(half.q[-1] - again.q[len(again.t) // 2]).max() < 1e-5  # the same motion
    np.testing.assert_allclose(again.q[-1] - again.q[0], -opening.ASIDE, atol=1e-3)  # a period later, no offset


def test_the_platform_and_the_satellite():
    platform = opening.driven_platform(1.0)
    assert np.abs(platform.closure_error).max() < 1e-8
    assert np.arccos(platform.pose("plate")[:, 2, 2]).min() > 0.1  # rad: it tilts, and the tilt goes around
    satellite = opening.swinging_satellite(2.0)
    momentum = satellite.model.momentum(satellite.q, satellite.v)
    np.testing.assert_allclose(momentum, np.broadcast_to(momentum[0], momentum.shape), atol=1e-4)
    assert np.ptp(satellite.energy) < 1e-4 * satellite.energy[0]


def test_the_ten_lines_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(opening.CODE, {})
    assert {path.name for path in tmp_path.iterdir()} == {"arm.png", "arm.html"}
    assert len(opening.CODE.strip().splitlines()) <= 11


def test_peers_compute_the_same():
    """Times are not looked at; that Pinocchio's result is ours is asserted on the way."""
    model = samples.seven_joint_arm().with_joint_constants(damping=0.0)
    states = np.random.default_rng(0).uniform(-1.0, 1.0, (3, 16, 7))
    times, missing = opening.peers_times(model, states)
    assert len(times) + len(missing) == 2
    assert all(value > 0.0 for pair in times.values() for value in pair)


def test_formulas_are_typeset():
    """Each as well-formed MathML, with adjoints, indices and accents where they belong."""
    for rule in RULES.values():
        for part in ElementTree.fromstring(mathml(rule.statement).replace("&nbsp;", " ")).iter():
            assert part.tag in ("math", "mrow", "mi", "mo", "mn", "msup", "msub", "mover", "mtext")
            if part.tag in ("msup", "msub", "mover"):
                assert len(part) == 2
    assert mathml("A_D") == "<math><mrow><msub><mi>A</mi><mi>D</mi></msub></mrow></math>"
    assert mathml("φ*") == "<math><mrow><msup><mi>φ</mi><mrow><mo>∗</mo></mrow></msup></mrow></math>"
    assert "<mover" in mathml("τ̄")
