"""Where loops are opened, and what closes them: every closure against the same joint in a tree."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.files.file_description import JointWritten
from linkwise.files.topology import span
from linkwise.joints.directions import RelativePose
from linkwise.mechanism.closures.instances import ClosureInstance
from tests.files.mujoco_of_sdf import agree
from tests.files.test_sdf_reads import AXES, POSE, joint, link, loads, placed, sdf


def residuals(model: lw.Model, q: np.ndarray) -> dict[str, np.ndarray]:
    poses = model.poses(q)
    found = {}
    for closure in model.closures:
        if isinstance(closure, ClosureInstance):
            a, b = (
                RelativePose.from_matrix((np.eye(4) if k < 0 else poses[k]) @ np.array(X))
                for k, X in ((closure.body_a, closure.placement_a), (closure.body_b, closure.placement_b))
            )
            found[closure.name] = np.array(closure.type.residual(b.seen_from(a), 0.0))
    return found


def four_bar(*order: int) -> str:
    joints = [
        joint("ground_a", "revolute", "world", "a", "<axis><xyz>0 1 0</xyz></axis>"),
        joint("a_b", "revolute", "a", "b", "<axis><xyz>0 1 0</xyz></axis>"),
        joint("b_c", "revolute", "b", "c", "<pose>0 0 1 0 0 0</pose><axis><xyz>0 1 0</xyz></axis>"),
        joint("ground_c", "revolute", "world", "c", "<axis><xyz>0 1 0</xyz></axis>"),
    ]
    links = (link("a"), link("b", "0 0 1 0 0 0"), link("c", "1 0 0 0 0 0"))
    return sdf(*links, *(joints[k] for k in order or range(4)))


def test_the_second_joint_of_a_link_closes_the_loop() -> None:
    model = loads(four_bar())
    assert [closure.name for closure in model.closures] == ["ground_c"]
    assert [joint.name for joint in model.joints] == ["ground_a", "a_b", "b_c"]
    assert loads(four_bar(3, 0, 1, 2)).closures[0].name == "b_c"
    assert {"world", "c"} == {
        "world" if k < 0 else model.bodies[k].name for k in (model.closures[0].body_a, model.closures[0].body_b)
    }


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 2, 1, 0), (2, 1, 3, 0), (1, 2, 3, 0)])
def test_wherever_it_is_opened_it_is_the_same_linkage(order: tuple[int, ...]) -> None:
    """A parallelogram turned by any angle closes, in each of the trees that the order of the joints can give."""
    model = loads(four_bar(*order))
    assert len(model.closures) == 1
    angle = 0.4
    turned = {"ground_a": angle, "a_b": -angle, "b_c": angle, "ground_c": angle}
    q = model.neutral()
    for name, value in turned.items():
        if name in [joint.name for joint in model.joints]:
            q[model.joints[name].q_slice] = value
    (residual,) = residuals(model, q).values()
    assert abs(residual).max() < 1e-14
    assert np.allclose(placed(model, "b", q)[:3, 3], (np.sin(angle), 0, np.cos(angle)))
    q[0] += 0.1
    assert abs(next(iter(residuals(model, q).values()))).max() > 1e-3


KINDS = ["revolute", "prismatic", "ball", "universal", "revolute2", "screw", "piston", "fixed"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_closure_leaves_free_what_the_joint_does(kind: str) -> None:
    """Two free bodies: tied by the joint in the tree of one file, by a closure in the other."""
    inside = POSE + AXES + "<screw_thread_pitch>0.3</screw_thread_pitch>"
    parts = (link("a", "1 2 3 0.1 0.2 0.3"), link("b", "-1 0.5 2 0.7 -0.4 0.9"), link("c", "3 1 1 0 0 1"))
    tied = joint("j", kind, "a", "b", inside)
    tree = loads(sdf(*parts, tied), floating=True)
    # The loop a - b - c, of which j is the last: c hangs on a by a ball, b on c by a screw.
    around = joint("i", "ball", "a", "c", ""), joint("k", "ball", "c", "b", "<pose>0.5 0.1 0 0 0 0</pose>")
    loop = loads(sdf(*parts, *around, tied), floating=True)
    assert [closure.name for closure in loop.closures] == ["j"]
    closure = loop.closures[0]
    rng = np.random.default_rng(0)
    poses = {k: np.array(p) for k, p in ((closure.body_a, closure.placement_a), (closure.body_b, closure.placement_b))}
    a, b = closure.body_a, closure.body_b
    assert (loop.bodies[a].name, loop.bodies[b].name) == ("a", "b")
    for _ in range(5):
        q = tree.random_configuration(rng)
        X_a, X_b = placed(tree, "a", q) @ poses[a], placed(tree, "b", q) @ poses[b]
        X = RelativePose.from_matrix(np.linalg.inv(X_a) @ X_b)
        assert np.abs(closure.type.residual(X, 0.0)).max() < 1e-12
    off = np.linalg.inv(X_a) @ X_b @ lw.transform((0.01, 0.02, 0.03), (0.02, 0.03, 0.01))
    assert np.abs(closure.type.residual(RelativePose.from_matrix(off), 0.0)).max() > 1e-3


@pytest.mark.parametrize("kind", ["revolute", "prismatic", "universal", "piston", "screw", "fixed"])
def test_a_joint_the_wrong_way_round_is_the_same_joint(kind: str) -> None:
    """The link in the middle is the child of both joints: one of them is turned over, with the same coordinates."""
    inside = POSE + AXES + "<screw_thread_pitch>0.3</screw_thread_pitch>"
    parts = (link("a", "1 2 3 0.1 0.2 0.3"), link("b", "-1 0.5 2 0.7 -0.4 0.9"), link("c", "3 1 1 0 0 1"))
    text = sdf(
        *parts,
        joint("hold", "fixed", "world", "a", ""),
        joint("i", "revolute", "a", "b"),
        joint("j", kind, "c", "b", inside),
    )
    model = loads(text)
    assert not model.closures
    assert [body.name for body in model.bodies][:2] == (["b", "c"] if kind != "fixed" else ["b"])
    if kind in ("revolute", "prismatic"):
        agree(text, model, count=3)
    upright = loads(sdf(*parts, joint("hold", "fixed", "world", "c", ""), joint("j", kind, "c", "b", inside)))
    rng = np.random.default_rng(1)
    own = upright.random_configuration(rng)
    there = np.linalg.inv(placed(upright, "c", own)) @ placed(upright, "b", own)
    q = np.concatenate([[0.3], own[::-1] if kind == "universal" else own])
    here = np.linalg.inv(placed(model, "c", q)) @ placed(model, "b", q)
    np.testing.assert_allclose(here, there, atol=1e-13)


def test_a_joint_that_must_close_the_loop() -> None:
    must = "<physics><simbody><must_be_loop_joint>true</must_be_loop_joint></simbody></physics>"
    text = four_bar().replace('name="a_b" type="revolute">', f'name="a_b" type="revolute">{must}')
    assert [closure.name for closure in loads(text).closures] == ["a_b"]


def test_a_circle_of_parents_has_a_root_all_the_same() -> None:
    text = sdf(link("a"), link("b"), joint("i", "revolute", "a", "b"), joint("j", "ball", "b", "a", ""))
    model = loads(text, floating=True)
    assert [joint.name for joint in model.joints] == ["root_joint", "i"]
    assert [closure.name for closure in model.closures] == ["j"]


def test_joints_that_say_the_same_twice() -> None:
    text = sdf(
        link("a"),
        link("b"),
        joint("i", "fixed", "a", "b", ""),
        joint("j", "fixed", "a", "b", ""),
        joint("k", "revolute", "world", "a"),
    )
    model = loads(text)
    assert (model.nv, len(model.closures)) == (1, 0)


def test_random_graphs() -> None:
    """However the links are connected: a forest and its loops, each link reached once, parents first."""
    rng = np.random.default_rng(5)
    for _ in range(300):
        n = int(rng.integers(1, 9))
        names = [f"l{k}" for k in range(n)]
        joints = []
        for k in range(int(rng.integers(0, 14))):
            parent, child = rng.choice(["world", *names]), rng.choice(names)
            if parent != child:
                joints.append(JointWritten(f"j{k}", 1, "revolute", str(parent), str(child)))
        found = span(names, joints)
        assert sorted([j.child for j in found.joints] + list(found.roots)) == sorted(names)
        assert sorted([j.name for j in (*found.joints, *found.closing)]) == sorted(j.name for j in joints)
        inboard = {j.child: j.parent for j in found.joints}
        for name in names:
            steps = 0
            while name in inboard:
                name, steps = inboard[name], steps + 1
                assert steps <= n
            assert name == "world" or name in found.roots


# -- gearboxes
GEARED = """<gearbox_ratio>{ratio}</gearbox_ratio><gearbox_reference_body>base</gearbox_reference_body>
<axis><xyz>0 0 {a}</xyz></axis><axis2><xyz>0 0 {b}</xyz></axis2>"""


@pytest.mark.parametrize(
    ("a", "b", "s_motor", "s_wheel"), [(1, 1, 1, 1), (-1, 1, 1, 1), (1, -1, 1, 1), (1, 1, -1, 1), (1, 1, 1, -1)]
)
def test_a_gearbox(a: int, b: int, s_motor: int, s_wheel: int) -> None:
    """θ₂ = -ratio θ₁, each angle about its own axis whatever way the joints turn."""
    text = sdf(
        link("base"), link("motor"), link("wheel"), joint("root", "revolute", "world", "base"),
        joint("m", "revolute", "base", "motor", f"<axis><xyz>0 0 {s_motor}</xyz></axis>"),
        joint("w", "revolute", "base", "wheel", f"<axis><xyz>0 0 {s_wheel}</xyz></axis>"),
        joint("gear", "gearbox", "motor", "wheel", GEARED.format(ratio=0.1, a=a, b=b)),
    )  # fmt: skip
    coupling = loads(text).closures["gear"].type
    assert isinstance(coupling, lw.closures.Coupling)
    terms = dict(zip(coupling.joints, coupling.coefficients, strict=True))
    theta_1 = 1.0  # about axis; the coordinates that give it
    theta_2 = -0.1 * theta_1
    assert terms["m"] * (theta_1 * a * s_motor) + terms["w"] * (theta_2 * b * s_wheel) == pytest.approx(0.0, abs=1e-15)
    locked = loads(text, locked={"m": 2.0}).closures["gear"].type
    assert isinstance(locked, lw.closures.Coupling)
    assert locked.joints == ("w",)
    assert locked.offset / locked.coefficients[0] == pytest.approx(-0.1 * (2.0 * a * s_motor) * b * s_wheel)


def test_a_gearbox_through_several_hinges() -> None:
    """A planet carried round: the angle from the base to the planet is the sum of two."""
    text = sdf(
        link("base"), link("carrier"), link("planet", "1 0 0 0 0 0"), joint("root", "fixed", "world", "base", ""),
        joint("c", "revolute", "base", "carrier"), joint("p", "revolute", "carrier", "planet"),
        joint("gear", "gearbox", "carrier", "planet", GEARED.format(ratio=3, a=1, b=1)),
    )  # fmt: skip
    coupling = loads(text).closures["gear"].type
    assert isinstance(coupling, lw.closures.Coupling)
    assert dict(zip(coupling.joints, coupling.coefficients, strict=True)) == {"c": 1.0 + 3.0, "p": 1.0}


def test_gearboxes_that_mean_nothing() -> None:
    text = sdf(
        link("base"), link("motor"), link("wheel"), joint("root", "fixed", "world", "base", ""),
        joint("m", "prismatic", "base", "motor"), joint("w", "revolute", "base", "wheel"),
        joint("gear", "gearbox", "motor", "wheel", GEARED.format(ratio=1, a=1, b=1)),
    )  # fmt: skip
    for bad, words in [
        (text, "turn about other axes"),
        (text.replace("prismatic", "revolute").replace("<gearbox_ratio>1<", "<gearbox_ratio>0<"), "ratio of zero"),
        (
            text.replace("prismatic", "revolute").replace("<axis2><xyz>0 0 1", "<axis2><xyz>0 1 1"),
            "turn about other axes",
        ),
        (text.replace("body>base", "body>bass"), "does not exist here"),
        (
            text.replace('name="m" type="prismatic"', 'name="m" type="fixed"').replace(
                'name="w" type="revolute"', 'name="w" type="fixed"'
            ),
            "couples nothing",
        ),
    ]:
        with pytest.raises(lw.errors.ModelFileError, match=words):
            loads(bad)
