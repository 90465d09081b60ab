"""What is written as URDF is read again as the same mechanism, by us and by Pinocchio."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import linkwise as lw
from linkwise import samples
from tests.files.recording import robot_files
from tests.oracles.eager import Eager
from tests.random_trees import random_state, random_tree
from tests.seeds import usual

EXACT = ("revolute", "prismatic", "helical", "cylindrical", "universal", "planar", "free")


def written(model: lw.Model, folder: Path) -> tuple[lw.Model, list[str]]:
    lost = model.save(folder / "m.urdf")
    side = folder / "m.loops.yaml"
    return lw.load(folder / "m.urdf", gravity=model.gravity, loops=side if side.exists() else None), lost


@pytest.mark.filterwarnings("ignore::linkwise.errors.ModelWarning")
@pytest.mark.parametrize("seed", range(6))
def test_random_trees_come_back(seed: int, tmp_path: Path) -> None:
    model = random_tree(seed, 7, (*EXACT, "fixed"), mimic=0.3, armature=0.0)
    again, lost = written(model, tmp_path)
    assert not any("coordinates" in each for each in lost)
    assert (again.nq, again.nv) == (model.nq, model.nv)
    q, v, vdot = random_state(model, np.random.default_rng(seed))
    to_q, to_v = order(model, again)
    ours = Eager(model).inverse_dynamics(q, v, vdot)[to_v]
    np.testing.assert_allclose(Eager(again).inverse_dynamics(q[to_q], v[to_v], vdot[to_v]), ours, rtol=1e-9, atol=1e-9)
    poses, expected = Eager(again).poses(q[to_q]), Eager(model).poses(q)
    for body in model.bodies:
        k = again.frame(body.name).body
        X = poses[k] @ np.array(again.frame(body.name).placement)
        np.testing.assert_allclose(X, expected[body.index], atol=1e-10)


def order(model: lw.Model, again: lw.Model) -> tuple[list[int], list[int]]:
    """Places in q and v of the model, in the order of what was read again: a joint may have become several."""
    to_q: list[int] = []
    to_v: list[int] = []
    for joint in again.joints:
        if joint.mimic is None:
            name, _, k = joint.name.rpartition("_")
            own = joint.name in [each.name for each in model.joints]
            source = model.joints[joint.name if own else name]
            skip = 0 if own else int(k) - 1
            to_q += list(range(source.q_slice.start + skip, source.q_slice.start + skip + joint.nq))
            to_v += list(range(source.v_slice.start + skip, source.v_slice.start + skip + joint.nv))
    return to_q, to_v


@pytest.mark.filterwarnings("ignore::linkwise.errors.ModelWarning")
@pytest.mark.parametrize("part", usual([0], *range(1, 4)))
def test_every_robot_comes_back(part: int, tmp_path: Path) -> None:
    """The files of example-robot-data: what we write of them is the same mechanism to rounding."""
    for file in (robot_files() + robot_files(".sdf"))[part::4]:
        try:
            model = lw.load(file, allow_unphysical=True)
        except lw.LinkwiseError:
            continue
        if "cassie" in file.name:
            continue  # ball joints: written as three turns
        model.save(tmp_path / "m.urdf")
        again = lw.load(tmp_path / "m.urdf", allow_unphysical=True)
        assert [joint.name for joint in again.joints] == [joint.name for joint in model.joints], file.name
        for a, b in zip(model.bodies, again.bodies, strict=True):
            np.testing.assert_allclose(b.placement, a.placement, atol=1e-12, err_msg=file.name)
            assert b.mass == pytest.approx(a.mass, rel=1e-14)
            assert len(b.visuals) == len(a.visuals)
        np.testing.assert_array_equal(again.limits.lower, model.limits.lower)
        np.testing.assert_array_equal(again.joint_constants.damping, model.joint_constants.damping)


def test_pinocchio_reads_the_same(tmp_path: Path) -> None:
    pin = pytest.importorskip("pinocchio")
    model = samples.stanford_arm().with_joint_constants(armature=0.0)
    model.save(tmp_path / "m.urdf")
    theirs = pin.buildModelFromUrdf(str(tmp_path / "m.urdf"))
    data = theirs.createData()
    rng = np.random.default_rng(0)
    q, v, vdot = rng.normal(size=(3, model.nv))
    # A continuous joint of Pinocchio has its cosine and sine as coordinates.
    values: list[float] = []
    for joint in theirs.joints.tolist()[1:]:
        x = q[joint.idx_v]
        values += [np.cos(x), np.sin(x)] if joint.nq == 2 else [x]
    tau = pin.rnea(theirs, data, np.array(values), v, vdot)
    np.testing.assert_allclose(model.inverse_dynamics(q, v, vdot), tau, rtol=1e-10, atol=1e-10)


def test_loops_go_into_the_side_file(tmp_path: Path) -> None:
    for model in (samples.four_bar(), samples.slider_crank()):
        again, lost = written(model, tmp_path)
        assert any("loops" in each for each in lost)
        q = model.assemble(model.random_configuration(0))
        np.testing.assert_allclose(again.closure_error(q), model.closure_error(q), atol=1e-10)
        (tmp_path / "m.loops.yaml").unlink()


def test_what_is_lost_is_listed(tmp_path: Path) -> None:
    b = lw.ModelBuilder("m", gravity=(0, 0, -1))
    b.add_body("a", joint=lw.Revolute(), mass=1.0, com=(1, 0, 0), armature=0.1, stiffness=2.0)
    b.add_body("c", "a", joint=lw.Spherical(), mass=1.0, inertia=np.eye(3))
    b.add_actuator(lw.equipment.Actuator("motor", lw.equipment.JointTransmission({"a_joint": 1.0})))
    b.add_configuration("home", {"a_joint": 1.0})
    b.add_closure("rod", "c", None, "world", joint=lw.closures.Distance(1.0))
    lost = b.build().with_parameters(["a.mass"]).save(tmp_path / "m.urdf")
    text = "\n".join(lost)
    assert all(
        word in text for word in ("gravity", "armature", "spring", "motor", "home", "rod", "a.mass", "three turns")
    )
    with pytest.raises(lw.ModelError, match="flexible"):
        samples.flexible_arm().save(tmp_path / "m.urdf")
