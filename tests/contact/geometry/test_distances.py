"""Distances of a robot's shapes as compiled functions, against MuJoCo's on the same file."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.contact.geometry.selection import meetings

ARM = """<mujoco><option ccd_tolerance="1e-10" ccd_iterations="200"/><worldbody>
  <geom type="plane" size="1 1 1" pos="0 0 -.6"/><geom type="box" size=".1 .2 .3" pos=".5 .1 0"/>
  <body><joint axis="0 0 1"/><geom type="capsule" size=".05 .2" pos="0 0 .2"/>
    <body pos="0 0 .4"><joint axis="0 1 0"/><geom type="cylinder" size=".04 .2" pos="0 0 .2"/>
      <body pos="0 0 .4"><joint axis="0 1 0"/><geom type="box" size=".05 .03 .1" pos="0 0 .1" euler="0 0 30"/>
        <body pos="0 0 .2"><joint axis="1 0 0"/><geom type="sphere" size=".06" pos="0 0 .05"/></body>
      </body></body></body></worldbody></mujoco>"""


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    mujoco = pytest.importorskip("mujoco")
    path = tmp_path_factory.mktemp("files") / "arm.xml"
    path.write_text(ARM)
    return lw.load(path), mujoco.MjModel.from_xml_path(str(path)), mujoco


def test_distances_and_collisions_are_those_of_mujoco(scene):
    model, mj_model, mujoco = scene
    pairs = meetings(model)
    touching = model.with_contacts()
    data = mujoco.MjData(mj_model)
    q = np.random.default_rng(0).uniform(-2.5, 2.5, size=(24, model.nq))
    found, hit = touching.distances(q), touching.collides(q)
    geoms = {(int(b), int(t)): g for g, (b, t) in enumerate(zip(mj_model.geom_bodyid, mj_model.geom_type, strict=True))}
    kinds = {"plane": 0, "sphere": 2, "capsule": 3, "cylinder": 5, "box": 6}

    def geom(outline):
        return geoms[outline.body + 1, kinds[outline.shape.kind]]

    compared = 0
    for k in range(len(q)):
        data.qpos[:] = q[k]
        mujoco.mj_kinematics(mj_model, data)
        theirs = [mujoco.mj_geomDistance(mj_model, data, geom(p.a), geom(p.b), 10.0, None) for p in pairs]
        for ours, other in zip(found[k], theirs, strict=True):
            if other > -0.01:
                assert ours == pytest.approx(other, abs=2e-6)
                compared += 1
        assert hit[k] == (min(theirs) < 0.0)
    assert compared > 100
    assert 0 < hit.sum() < len(q)


def test_derivatives_of_distances(scene):
    model, _, _ = scene
    known = [k for k, p in enumerate(meetings(model)) if "cylinder" not in (p.a.shape.kind, p.b.shape.kind)]
    touching = model.with_contacts()
    q = np.array([0.3, 0.9, -0.4, 0.5])
    J = touching.function("distances").jacobian("q")(q)[known]

    def gaps(q):
        return touching.distances(q)[known]

    h = 1e-6
    columns = [(gaps(q + h * e) - gaps(q - h * e)) / (2 * h) for e in np.eye(4)]
    np.testing.assert_allclose(J, np.stack(columns, axis=-1), atol=1e-8)


def test_every_pair_has_its_points(scene):
    model, _, _ = scene
    points = model.with_contacts(rules=lw.ContactRules(solver="dual")).contacts.points(np.array([0.3, 0.9, -0.4, 0.5]))
    assert len(points.gap) == sum(pair.slots for pair in meetings(model))
    np.testing.assert_allclose(np.linalg.norm(points.normal, axis=-1), 1.0, atol=1e-12)
