"""Environments for learning: Gymnasium's own checks and classics, resets in all modes, seeds, drawn parameters."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

gymnasium = pytest.importorskip("gymnasium", reason="needs the extra gym")

import linkwise as lw  # noqa: E402
from linkwise.errors import InputError, UnknownNameError  # noqa: E402
from linkwise.gym.environment_step import seeds  # noqa: E402
from linkwise.gym.tasks import (  # noqa: E402
    NAMES,
    registered_name,
)
from tests.files.recording import robot_files  # noqa: E402

QUICK = [name for name in NAMES if name not in ("stewart", "quadruped")]


@pytest.mark.parametrize("name", QUICK)
@pytest.mark.filterwarnings("ignore:.*(infinity|normalized|not having a spec)")
def test_gymnasium_finds_nothing_wrong(name: str) -> None:
    env = gymnasium.make(registered_name(name))
    from gymnasium.utils.env_checker import check_env

    check_env(env.unwrapped, skip_render_check=True)


def test_gymnasium_finds_names_by_itself() -> None:
    """In a process that has imported nothing of ours: the module before the colon is enough."""
    made = "; ".join(f"print(gymnasium.{call}).spec.id)" for call in ("make(NAME", "make_vec(NAME, num_envs=2"))
    program = f"import gymnasium; NAME = 'linkwise.gym:{registered_name('cart_pole')}'; {made}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [registered_name("cart_pole")] * 2


def test_pictures_show_what_moves() -> None:
    env = gymnasium.make(registered_name("cart_pole"), render_mode="rgb_array")
    env.reset(seed=1)
    before = env.render()
    for _ in range(5):
        env.step(1)
    after = env.render()
    assert before.shape == after.shape == (480, 640, 3) and before.dtype == np.uint8
    changed = (before != after).any(axis=-1)
    assert 0.005 < changed.mean() < 0.5  # the pole and the cart, not the floor
    many = gymnasium.make_vec(registered_name("cart_pole"), 2, render_mode="rgb_array")
    many.reset(seed=1)
    assert len(many.render()) == 2
    assert lw.gym.task("cart_pole").render() is None


def test_environments_travel() -> None:
    cloudpickle = pytest.importorskip("cloudpickle")
    env = lw.gym.task("cart_pole", 2)
    env.reset(seed=1)
    again = cloudpickle.loads(cloudpickle.dumps(env))
    assert np.array_equal(again.step(np.array([0, 1]))[0], env.step(np.array([0, 1]))[0])


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"model": "arm.urdf"}, "not a model"),
        ({"dt": 0.0}, "dt is not a positive number"),
        ({"render_mode": "human"}, "not shown so"),
        ({"dtype": "int32"}, "no code for this precision"),
        ({"observe": None}, "observe is not a function"),
        ({"reward": lambda now: now.q}, "reward does not return one number"),
        ({"done": lambda now: now.q > 1.0}, "done does not return one number"),
        ({"done": lambda now: now.q[0]}, "done does not return a condition"),
        ({"act": lambda now: now.action}, "too few or too many joint forces"),
        ({"act": None}, "an action has a number for each joint force"),
        ({"choices": None, "actions": ([1.0], [-1.0])}, "wrong order"),
        ({"randomize": {"pole.mass": (0.2, 0.1)}}, "pole.mass has no bounds"),
        ({"randomize": {"pole.mass": 0.2}}, "pole.mass has no bounds"),
        ({"randomize": {"pole.mass": (-0.1, 0.2)}}, "pole.mass cannot be negative"),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        lw.gym.task("cart_pole", **options)


def test_actions_for_another_number_of_environments_are_refused() -> None:
    env = lw.gym.task("cart_pole", 4)
    env.reset(seed=1)
    with pytest.raises(InputError, match="actions have the wrong shape"):
        env.step(np.zeros(3))


def test_a_cart_pole_moves_as_gymnasiums_does() -> None:
    theirs = gymnasium.make("CartPole-v1").unwrapped
    theirs.kinematics_integrator = "semi-implicit euler"
    ours = lw.gym.task("cart_pole", 2, dtype=np.float64, autoreset_mode="disabled")
    seen, _ = ours.reset(seed=5)
    theirs.reset()
    theirs.state = tuple(seen[1])
    rng = np.random.default_rng(2)
    for _ in range(200):
        action = int(rng.integers(2))
        _, reward, ended, _, _ = theirs.step(action)
        seen, rewards, terminated, _, _ = ours.step(np.array([1 - action, action]))
        np.testing.assert_allclose(seen[1], theirs.state, rtol=0, atol=1e-13)
        assert (rewards[1], terminated[1]) == (reward, ended)
        if ended:
            break
    assert ended


def test_an_acrobot_moves_as_gymnasiums_does() -> None:
    theirs = gymnasium.make("Acrobot-v1").unwrapped
    ours = lw.gym.task("acrobot", 1, dtype=np.float64)
    ours.reset(seed=5)
    theirs.reset()
    theirs.state = np.concatenate([ours.state["q"][0], ours.state["v"][0]])
    for action in [0, 2, 2, 1, 0, 0, 2, 2, 1, 0] * 2:
        expected, reward, *_ = theirs.step(action)
        seen, rewards, *_ = ours.step(np.array([action]))
        np.testing.assert_allclose(seen[0], expected, atol=2e-6)  # theirs are of float32
        np.testing.assert_allclose(np.sin(ours.state["q"][0]), np.sin(theirs.state[:2]), atol=1e-11)
        assert rewards[0] == reward


def test_next_step_resets() -> None:
    env = lw.gym.task("cart_pole", 64)
    env.reset(seed=1)
    before = np.zeros(64, bool)
    lengths, ends = np.zeros(64, int), 0
    for _ in range(120):
        seen, rewards, terminated, truncated, info = env.step(np.ones(64, int))
        assert info == {}
        assert (rewards == np.where(before, 0.0, 1.0)).all()
        assert (np.abs(seen[before]) <= 0.05).all()  # the first of a new episode
        assert not (terminated & before).any()
        lengths = np.where(before, 0, lengths + 1)
        assert (env.state["clock"][:, 0] == lengths).all()
        fallen = (np.abs(seen[:, 2]) > np.float32(12 * np.pi / 180)) | (np.abs(seen[:, 0]) > 2.4)
        assert (terminated == fallen).all()
        before, ends = terminated | truncated, ends + int(terminated.sum())
    assert ends > 300


def test_same_step_resets_and_truncation() -> None:
    env = lw.gym.task("cart_pole", 16, autoreset_mode="same_step", max_episode_steps=5)
    env.reset(seed=1)
    for k in range(1, 11):
        seen, rewards, terminated, truncated, info = env.step(np.zeros(16, int))
        assert (rewards == 1).all()
        assert truncated.all() == (k % 5 == 0)
        assert (info["_final_obs"] == (terminated | truncated)).all()
        if k % 5 == 0:
            assert (np.abs(seen) <= 0.05).all() and (np.abs(info["final_obs"][:, 1]) > 0.5).all()
        else:
            assert (seen == info["final_obs"]).all()


def test_resets_of_some_on_demand() -> None:
    env = lw.gym.task("cart_pole", 8, autoreset_mode=gymnasium.vector.AutoresetMode.DISABLED)
    env.reset(seed=1)
    for _ in range(30):
        env.step(np.zeros(8, int))
    old, mask = env.state["q"].copy(), np.arange(8) % 2 == 0
    env.reset(options={"reset_mask": mask})
    assert (env.state["q"][~mask] == old[~mask]).all()
    assert (np.abs(env.state["q"][mask]) <= 0.05).all()


def test_seeds_and_threads() -> None:
    def run(seed: int, threads: int | None = None) -> Any:
        env = lw.gym.task("cart_pole", 40, threads=threads)
        env.action_space.seed(0)
        seen = [env.reset(seed=seed)[0]] + [env.step(env.action_space.sample())[0] for _ in range(60)]
        return np.stack(seen)

    assert (run(3) == run(3, threads=2)).all()
    assert (run(3) != run(4)).any()


def test_numbers_that_are_drawn_are_uniform_and_independent() -> None:
    """By SciPy's tests of one column, of two neighbours, and of all environments."""
    stats = pytest.importorskip("scipy.stats")
    draws = lw.gym.Draws(list(seeds(np.random.default_rng(0), 20_000).T))
    columns = np.stack([np.asarray(draws.uniform(), float) for _ in range(4)])
    for column in columns:
        assert stats.kstest(column, "uniform").pvalue > 1e-3
    assert np.abs(np.corrcoef(columns) - np.eye(4)).max() < 0.03
    one = lw.gym.Draws([1.0, 2.0, 3.0])
    row = np.array([one.uniform() for _ in range(5000)])
    assert stats.kstest(row, "uniform").pvalue > 1e-3
    assert abs(np.corrcoef(row[1:], row[:-1])[0, 1]) < 0.05
    # The numbers that the paper's generator gives (AS 183): x = 171 x mod 30269 and so on.
    x, y, z = 171 % 30269, 172 * 2 % 30307, 170 * 3 % 30323
    assert row[0] == pytest.approx((x / 30269 + y / 30307 + z / 30323) % 1.0, abs=1e-12)
    assert stats.kstest(np.asarray(draws.normal(2)[0], float), "norm").pvalue > 1e-3
    w = np.stack([np.asarray(part, float) for part in draws.rotation()])
    np.testing.assert_allclose((w * w).sum(axis=0), 1.0)
    assert stats.kstest(np.arccos(w[0]) * 2, lambda a: (a - np.sin(a)) / (2 * np.pi)).pvalue > 1e-3


def test_parameters_are_drawn_for_every_episode_and_used() -> None:
    bounds = {"pole.mass": (0.05, 0.5), "cart.mass": (0.8, 1.2)}
    env = lw.gym.task("cart_pole", 32, dtype=np.float64, randomize=bounds, autoreset_mode="same_step")
    env.reset(seed=1)
    before = {name: env.state[name].copy() for name in ("q", "v", "p")}
    for k, (low, high) in enumerate([(0.05, 0.5), (0.8, 1.2)]):
        drawn = before["p"][:, env.model.parameters[k].slice]
        assert (low <= drawn).all() and (drawn <= high).all() and np.ptp(drawn) > 0.7 * (high - low)
    env.step(np.ones(32, int))
    force = np.tile([10.0, 0.0], (32, 1))
    rate = env.model.forward_dynamics(before["q"], before["v"], force, p=before["p"])
    np.testing.assert_allclose(env.state["v"], before["v"] + 0.02 * rate, rtol=0, atol=1e-14)
    assert (env.state["p"] == before["p"]).all()
    for _ in range(60):
        env.step(np.ones(32, int))
    assert (env.state["p"] != before["p"]).all()


@pytest.mark.parametrize("name", QUICK)
def test_every_task_runs(name: str) -> None:
    env = gymnasium.make_vec(registered_name(name), num_envs=9)
    assert env.metadata["autoreset_mode"] is gymnasium.vector.AutoresetMode.NEXT_STEP
    seen, _ = env.reset(seed=1)
    env.action_space.seed(2)
    assert np.ptp(seen, axis=0).max() > 0  # environments differ
    for _ in range(5):
        seen, rewards, terminated, truncated, _ = env.step(env.action_space.sample())
        assert seen in env.observation_space
        assert rewards.shape == terminated.shape == truncated.shape == (9,)
        assert np.isfinite(rewards).all()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*(infinity|normalized|not having a spec)")
@pytest.mark.parametrize("name", sorted(set(NAMES) - set(QUICK)))
def test_every_large_task_runs(name: str) -> None:
    test_every_task_runs(name)
    test_gymnasium_finds_nothing_wrong(name)
    env = lw.gym.task(name, 8)
    env.reset(seed=0)
    if name == "stewart":
        for _ in range(100):
            env.step(env.action_space.sample())
        assert np.abs(env.model.closure_error(env.state["q"].astype(float))).max() < 1e-4


@pytest.mark.parametrize("robot", ["own", pytest.param("panda", marks=pytest.mark.slow)])
def test_inverse_kinematics_reaches_what_is_to_be_learned(robot: str) -> None:
    from linkwise.gym.tasks.arm_reach import kinematic_policy

    model, tool = None, "tool"
    if robot == "panda":
        path = next(file for file in robot_files(".urdf") if file.name == "panda.urdf")
        model, tool = lw.load(path, locked=["panda_finger_joint1", "panda_finger_joint2"]), "panda_hand"
    env = lw.gym.task("arm_reach", 16, model=model, tool=tool)
    seen, _ = env.reset(seed=3)
    far, policy = np.linalg.norm(seen[:, -3:], axis=1), kinematic_policy(env, tool)
    for _ in range(149):
        seen, *_ = env.step(policy(seen))
    near = np.linalg.norm(seen[:, -3:], axis=1)
    assert far.mean() > 0.3
    assert near.max() < 0.01


def test_both_precisions_agree() -> None:
    """Ten steps in float32 are those in float64, to rounding."""
    for dtype, tolerance in ((np.float64, 0.0), (np.float32, 1e-3)):
        env = lw.gym.task("hopper", 4, dtype=dtype)
        env.reset(seed=1)
        for _ in range(10):
            env.step(np.zeros((4, 2)))
        if tolerance == 0.0:
            exact = env.state["q"]
        else:
            np.testing.assert_allclose(env.state["q"], exact, atol=tolerance)


def test_mistakes() -> None:
    with pytest.raises(UnknownNameError):
        lw.gym.task("cartpole")
    with pytest.raises(InputError, match="autoreset"):
        lw.gym.task("cart_pole", autoreset_mode="sometimes")
    with pytest.raises(InputError, match="before it was reset"):
        lw.gym.task("cart_pole").step([0])
    with pytest.raises(InputError, match="not environments of linkwise"):
        lw.gym.as_sb3(gymnasium.make(registered_name("cart_pole")))
    with pytest.raises(InputError, match="same_step"):
        lw.gym.as_sb3(lw.gym.task("cart_pole"))
    with pytest.raises(InputError, match="method"):
        lw.gym.task("cart_pole", method="dop853")
    with pytest.raises(InputError, match="num_envs"):
        lw.gym.task("cart_pole", num_envs=0)


def test_stable_baselines_sees_ends_and_last_observations() -> None:
    pytest.importorskip("stable_baselines3", reason="needs the extra sb3")
    from stable_baselines3 import PPO
    from stable_baselines3.common.vec_env import VecMonitor

    env = lw.gym.as_sb3(lw.gym.task("cart_pole", 4, autoreset_mode="same_step"))
    env.seed(3)
    first = env.reset()
    assert first.shape == (4, 4)
    ended = False
    while not ended:
        seen, _, dones, infos = env.step(np.ones(4, int))
        for k in np.flatnonzero(dones):
            assert abs(infos[k]["terminal_observation"][2]) > 0.2 and (np.abs(seen[k]) <= 0.05).all()
            assert not infos[k]["TimeLimit.truncated"]
            ended = True
    PPO("MlpPolicy", VecMonitor(env), n_steps=16, batch_size=64, n_epochs=1).learn(64)


def test_floors_of_random_friction():
    """Each environment slides on its own."""
    b = lw.ModelBuilder("box")
    b.add_body("box", joint=lw.Free(), shape=lw.shapes.box((0.2, 0.2, 0.1), density=500))
    box = b.build().with_contacts(lw.Ground(), material=lw.Material(friction=0.5))
    env = lw.gym.VectorEnv(
        box,
        lambda now: [*now.v],
        lambda now: now.v[3],
        lambda now: now.q[6] < -1.0,
        dt=0.01,
        actions=1,
        act=lambda now: [0.0 * now.action[0]] * 6,
        reset=lambda model, draws: ([1, 0, 0, 0, 0, 0, 0.05], [0, 0, 0, 2.0, 0, 0]),
        num_envs=4,
        randomize={"friction": (0.0, 1.5)},
    )
    env.reset(seed=1)
    factors = env.state["p"].ravel()
    for _ in range(10):
        seen, *_ = env.step(np.zeros((4, 1)))
    assert np.allclose(seen[:, 3], 2.0 - 0.5 * factors * 9.81 * 0.1, atol=1e-5)
    assert np.ptp(factors) > 0.5
    with pytest.raises(InputError, match="friction cannot be negative"):
        lw.gym.task("quadruped", 4, randomize={"friction": (-0.3, 1.0)})
