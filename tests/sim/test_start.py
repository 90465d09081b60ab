"""Where a simulation or a view begins that is not told where: the model's own start."""

from pathlib import Path

import numpy as np
import pytest

import linkwise as lw
from linkwise.samples import four_bar, quadruped, stanford_arm

LEG = """
<mujoco>
  <worldbody>
    <body name="trunk" pos="0 0 1.4"><freejoint name="root"/><geom type="sphere" size="0.1"/>
      <body name="shank" pos="0 0 -0.2"><joint name="knee" axis="0 1 0" range="-160 -2" limited="true"/>
        <geom type="capsule" fromto="0 0 0 0 0 -0.4" size="0.04"/></body>
    </body>
  </worldbody>
  {keys}
</mujoco>"""
KEY = '<keyframe><key name="bent" qpos="0 0 0.9 1 0 0 0 -1"/><key name="far" qpos="0 0 2 1 0 0 0 -2"/></keyframe>'


def leg(keys=""):
    pytest.importorskip("mujoco")
    return lw.loads(LEG.format(keys=keys))


def test_a_file_without_keyframes_starts_at_its_own_place_within_limits():
    """As gymnasium's humanoid and ant have it: knees that cannot be straight, and a qpos0 where they are."""
    model = leg()
    with pytest.raises(lw.InputError, match="limit"):
        lw.simulate(model, model.neutral(), duration=0.01)
    assert np.allclose(model.start, [1, 0, 0, 0, 0, 0, 1.4, np.radians(-2)])
    motion = lw.simulate(model, duration=0.01)
    assert np.allclose(motion.q[0], model.start) and motion.status == "done"


def test_a_keyframe_comes_first_and_a_start_by_name_before_it():
    model = leg(KEY)
    assert np.allclose(model.start, [1, 0, 0, 0, 0, 0, 0.9, -1])
    here = model.with_configuration("start", {"knee": -0.5})
    assert np.allclose(here.start, [1, 0, 0, 0, 0, 0, 0, -0.5])
    assert np.array_equal(model.neutral(), [1, 0, 0, 0, 0, 0, 0, 0])


def test_without_any_the_neutral_one():
    model = stanford_arm()
    assert np.array_equal(model.start, model.neutral())
    assert not model.start.flags.writeable


def test_a_start_is_closed():
    model = four_bar().with_configuration("start", [0.3, -0.25, 0.3])
    assert np.abs(model.closure_error(model.start)).max() < 1e-12
    assert lw.simulate(model, duration=0.01).status == "done"
    closed = four_bar().assemble([0.3, -0.3, 0.3])
    assert np.array_equal(four_bar().with_configuration("start", closed).start, closed)


def test_a_simulation_in_pieces_and_an_ensemble_begin_there_too():
    model = quadruped()
    assert np.allclose(lw.Simulation(model).q, model.configurations["stand"])
    study = lw.ensemble(model, {"v0": np.zeros((2, model.nv))}, duration=0.01)
    drop = np.asarray(study["q_final"])[:, 6] - model.start[6]
    assert np.allclose(drop, -9.81 * 0.01**2 / 2, rtol=1e-3)


def test_batches_of_velocities_share_it():
    model = quadruped()
    motion = lw.simulate(model, v0=np.zeros((3, model.nv)), duration=0.01)
    assert np.allclose(motion.q[:, 0], model.start)


def test_a_view_begins_there():
    from linkwise.viz.posing import resting

    assert np.array_equal(resting(quadruped()), quadruped().start)


@pytest.mark.parametrize("name", ["humanoid", "ant"])
def test_models_of_gymnasium_start_where_their_files_have_them(name):
    pytest.importorskip("mujoco")
    folder = Path(pytest.importorskip("gymnasium").__file__).parent / "envs" / "mujoco" / "assets"
    model = lw.load(folder / f"{name}.xml")
    with pytest.raises(lw.InputError, match="beyond joint limits"):
        lw.simulate(model, model.neutral(), duration=1e-3, method="rk4")
    assert lw.simulate(model, duration=1e-3, method="rk4").status == "done"
    assert np.allclose(model.start[:7], model.configurations["initial"][:7])  # the trunk stays where the file has it
