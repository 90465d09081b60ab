"""Environments for learning: many copies of one mechanism, stepped and reset by one compiled function; or one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, get_args

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike, DTypeLike

from linkwise.array_types import Array
from linkwise.checks import check_count, check_positive
from linkwise.errors import InputError, UnknownNameError, require_extra
from linkwise.gym.environment_step import Autoreset, Beginning, Draws, Method, Moment, Rules, State, seeds
from linkwise.model.model import Model, checked_model
from linkwise.spatial.scalar import Flat, Scalar
from linkwise.targets import real

if TYPE_CHECKING:
    from linkwise.viz.video import Pictured

_PICTURES = "rgb_array"

_MODES: dict[Autoreset, AutoresetMode] = {
    "next_step": AutoresetMode.NEXT_STEP,
    "same_step": AutoresetMode.SAME_STEP,
    "disabled": AutoresetMode.DISABLED,
}


class VectorEnv(gymnasium.vector.VectorEnv[Array, ArrayLike, Array]):
    """Many environments of one mechanism, as Gymnasium knows them.

    ``observe``, ``reward``, ``done``, ``act`` and ``reset`` are traced once, as functions of ``lw.compile`` are: they
    use ``lw.math`` or NumPy and ``lw.math.where`` instead of ``if``. A step of all environments, with rewards, ends of
    episodes and resets, is then one call of one kernel, on the processor or on a GPU.

    Args:
        model: the mechanism. One with contacts moves by ``model.contact_step``.
        observe: observation, an array, of a :class:`Moment`.
        reward: of the moment that a step leads to; its ``action`` is the one that led there.
        done: whether the episode ends there (``terminated``); if None, it never does.
        dt: of a step, s.
        reset: of the model and :class:`Draws`: q and v at the beginning of an episode and, if there is a goal, its
            numbers. If None, ``model.start`` with its velocity.
        act: joint forces (nv) of a moment with its action; if None, the action is these.
        actions: bounds ``(low, high)`` of an action, arrays of one length; a number n stands for n between -1 and 1.
            If neither these nor choices are given, effort limits bound all joint forces.
        choices: rows of actions (n, size), such as ``[[-10.0], [10.0]]``; the action space is then ``Discrete(n)``.
        num_envs: number of environments.
        max_episode_steps: after which an episode is truncated.
        substeps: steps of the motion in a step.
        method: ``"semi-implicit"`` (Euler) or ``"rk4"``; a model with contacts has ``"contact"``.
        randomize: run-time parameters that every episode draws anew, with their bounds: ``{"pole.mass": (0.05, 0.2)}``.
        autoreset_mode: ``"next_step"``, ``"same_step"`` or ``"disabled"``, or Gymnasium's own.
        dtype: precision of everything.
        device: ``"cpu"``; or ``"cuda"``: arrays are then CuPy's, and stay on the GPU.
        threads: that share a step on the processor.
        bounds: of observations ``(low, high)``, where they have any.
        render_mode: ``"rgb_array"``: :meth:`render` gives pictures.

    Example:
        >>> env = lw.gym.VectorEnv(model, observe, reward, done, dt=0.02, num_envs=4096)  # doctest: +SKIP
        >>> observations, info = env.reset(seed=1)  # doctest: +SKIP
        >>> observations, rewards, terminated, truncated, info = env.step(actions)  # doctest: +SKIP
    """

    def __init__(
        self,
        model: Model,
        observe: Callable[[Moment], Flat | Array],
        reward: Callable[[Moment], Scalar],
        done: Callable[[Moment], Scalar] | None,
        dt: float,
        *,
        reset: Callable[[Model, Draws], Beginning] | None = None,
        act: Callable[[Moment], Flat | Array] | None = None,
        actions: tuple[ArrayLike, ArrayLike] | int | None = None,
        choices: ArrayLike | None = None,
        num_envs: int = 1,
        max_episode_steps: int | None = None,
        substeps: int = 1,
        method: Method | None = None,
        randomize: Mapping[str, tuple[ArrayLike, ArrayLike]] | None = None,
        autoreset_mode: Autoreset | AutoresetMode = "next_step",
        dtype: DTypeLike = np.float32,
        device: str = "cpu",
        threads: int | None = None,
        bounds: tuple[ArrayLike, ArrayLike] | None = None,
        render_mode: str | None = None,
    ) -> None:
        checked_model(model)
        check_count(num_envs=num_envs, substeps=substeps)
        if max_episode_steps is not None:
            check_count(max_episode_steps=max_episode_steps)
        check_positive(dt=dt)
        needed: dict[str, object] = {"observe": observe, "reward": reward}
        optional: dict[str, object] = {"done": done, "act": act, "reset": reset}
        for name, given in (needed | {name: each for name, each in optional.items() if each is not None}).items():
            if not callable(given):
                raise InputError(f"{name} is not a function", got=repr(given)[:80], allowed="a function of a Moment")
        self.num_envs, self.dt, self.mode = int(num_envs), float(dt), _mode(autoreset_mode)
        self.metadata = {
            "render_modes": [_PICTURES],
            "render_fps": round(1.0 / self.dt),
            "autoreset_mode": _MODES[self.mode],
        }
        if render_mode not in (None, _PICTURES):
            raise InputError("environments are not shown so", got=repr(render_mode), allowed=f"None, {_PICTURES!r}")
        self.render_mode = render_mode
        self._pictured: Pictured | None = None
        self.dtype, self._threads, self._device = real(dtype), threads, device
        _library(device)  # says where there is none
        self.single_action_space, table, size = _action_space(model, actions, choices, act is None, self.dtype)
        model, drawn = _randomized(model, randomize or {})
        self.rules = Rules(
            model,
            observe,
            reward,
            done or (lambda now: False),
            act,
            reset or (lambda model, draws: (model.start, model._start_velocity)),
            table,
            size,
            self.dt,
            int(substeps),
            _method(model, method),
            drawn,
            max_episode_steps,
        )
        self._step, self._begin = self.rules.compiled_step(self.mode), self.rules.compiled_reset()
        seen = next(spec for spec in self._step.program.outputs if spec.name == "obs")
        low, high = (-np.inf, np.inf) if bounds is None else bounds
        self._shape = seen.shape or (1,)
        edges = [np.broadcast_to(np.asarray(edge, self.dtype), self._shape) for edge in (low, high)]
        self.single_observation_space = gymnasium.spaces.Box(edges[0], edges[1], dtype=self.dtype.type)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._state: State = {}

    @property
    def _xp(self) -> Any:
        return _library(self._device)

    @property
    def model(self) -> Model:
        """The mechanism, with the parameters that are drawn."""
        return self.rules.model

    @property
    def state(self) -> State:
        """Arrays of all environments between two steps: q, v, goal, p and others, (num_envs, n); those in use."""
        return self._state

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        """Begin anew: all environments, or those of ``options={"reset_mask": truth values (num_envs)}``.

        With a seed, what happens from here on is the same for every number of threads and on every machine.
        """
        super().reset(seed=seed)
        chosen = None if options is None else options.get("reset_mask")
        if seed is not None or not self._state:
            fresh = {name: np.zeros((self.num_envs, size)) for name, size in self.rules.kept.items()}
            fresh["seed"] = seeds(self.np_random, self.num_envs)
            fresh |= {} if chosen is None else {name: old for name, old in self._state.items() if name != "seed"}
            self._state = {name: self._xp.asarray(array, dtype=self.dtype) for name, array in fresh.items()}
        whole = np.ones(self.num_envs, bool) if chosen is None else chosen
        self._state["over"] = self._xp.asarray(whole, dtype=self.dtype).reshape(self.num_envs, 1)
        found = self._begin(*self._state.values(), threads=self._threads)
        self._keep(found)
        return self._seen(found.obs), {}

    def step(self, actions: ArrayLike) -> tuple[Array, Array, Array, Array, dict[str, Any]]:
        """One step of all environments: observations, rewards, terminated, truncated, and ``info``.

        In the same-step mode ``info["final_obs"]`` (num_envs, …) has the last observations of the episodes that have
        just ended, those that ``info["_final_obs"]`` says.
        """
        if not self._state:
            raise InputError("an environment was stepped before it was reset", do="env.reset(seed=…) first")
        given = self._xp.asarray(actions, dtype=self.dtype)
        if given.shape[:1] != (self.num_envs,) or given.size != np.prod(self.action_space.shape or ()):
            raise InputError(
                "actions have the wrong shape",
                got=str(given.shape),
                allowed=f"{self.action_space.shape}: one for each environment",
            )
        given = given.reshape(self.num_envs, -1)
        found = self._step(*self._state.values(), given, threads=self._threads)
        self._keep(found)
        terminated, truncated = found.terminated != 0.0, found.truncated != 0.0
        info: dict[str, Any] = {}
        if self.mode == "same_step":
            info = {"final_obs": self._seen(found.final_obs), "_final_obs": terminated | truncated}
        return self._seen(found.obs), found.reward, terminated, truncated, info

    def render(self) -> tuple[Array, ...] | None:
        """Pictures (480, 640, 3) of all environments, with ``render_mode="rgb_array"``; the camera stays."""
        if self.render_mode is None:
            return None
        if not self._state:
            raise InputError("an environment was drawn before it was reset", do="env.reset(seed=…) first")
        from linkwise.viz.video import Pictured

        states = np.asarray(_on_host(self._state["q"]), float)
        own = [None] * self.num_envs if "p" not in self._state else list(_on_host(self._state["p"]))
        if self._pictured is None:
            self._pictured = Pictured(self.model, [self.model.start, *states[:1]], 640, 480, p=own[0])
        return tuple(self._pictured.at([q], [row]) for q, row in zip(states, own, strict=True))

    def _keep(self, found: object) -> None:
        self._state = {name: getattr(found, name) for name in self._state}

    def _seen(self, observations: Array) -> Array:
        return observations.reshape(self.num_envs, *self._shape)

    def __repr__(self) -> str:
        return f"<{self.num_envs} environments of {self.model.name}, {self.mode.replace('_', '-')} resets>"


def _on_host(array: Any) -> Array:
    return array if isinstance(array, np.ndarray) else array.get()


def _mode(asked: object) -> Autoreset:
    for word, mode in _MODES.items():
        if asked in (word, mode):
            return word
    raise InputError("no such autoreset mode", got=repr(asked), allowed=", ".join(map(repr, _MODES)))


def _method(model: Model, asked: str | None) -> Method:
    usual: Method = "contact" if model._contact_scene is not None else "semi-implicit"
    if asked is None or asked == usual:
        return usual
    if asked == "rk4" and usual != "contact":
        return "rk4"
    allowed = [usual] if usual == "contact" else [word for word in get_args(Method) if word != "contact"]
    raise InputError(f"{model.name} cannot move by this method here", got=repr(asked), allowed=", ".join(allowed))


def _library(device: str) -> Any:
    if device == "cpu":
        return np
    if device == "cuda":
        return require_extra("cupy", "cuda")
    raise InputError("no such device", got=repr(device), allowed='"cpu", "cuda"')


def _action_space(
    model: Model,
    actions: tuple[ArrayLike, ArrayLike] | int | None,
    choices: ArrayLike | None,
    all_joints: bool,
    dtype: np.dtype[Any],
) -> tuple[gymnasium.Space[Any], Array | None, int]:
    """Space of one action, the rows of choices, and the numbers of an action."""
    if choices is not None:
        table = np.atleast_2d(np.asarray(choices, float))
        _check_size(model, table.shape[1], all_joints)
        return gymnasium.spaces.Discrete(len(table)), table, table.shape[1]
    if actions is None:
        if not all_joints:
            raise InputError("act needs to know the bounds of actions", do="actions=(low, high), or choices=[[…], […]]")
        limit = np.asarray(model.limits.effort, float)
        if not np.isfinite(limit).all():
            raise InputError(
                f"{model.name} has joints without limits of effort, so actions have no bounds",
                do="actions=(low, high), or act= for the joints that have motors",
            )
        actions = (-limit, limit)
    elif isinstance(actions, int):
        actions = (-np.ones(actions), np.ones(actions))
    low, high = np.broadcast_arrays(*(np.atleast_1d(np.asarray(edge, dtype)) for edge in actions))
    if not (low <= high).all():
        raise InputError("bounds of actions are in the wrong order", got=f"{low}, {high}", allowed="(low, high)")
    _check_size(model, len(low), all_joints)
    return gymnasium.spaces.Box(low.copy(), high.copy(), dtype=np.dtype(dtype).type), None, len(low)


def _check_size(model: Model, size: int, all_joints: bool) -> None:
    if all_joints and size != model.nv:
        raise InputError(
            "without act, an action has a number for each joint force",
            got=f"{size} numbers",
            allowed=f"{model.nv}",
            do="act=lambda now: … to make joint forces of now.action",
        )


def _randomized(model: Model, randomize: Mapping[str, tuple[ArrayLike, ArrayLike]]) -> tuple[Model, Array | None]:
    """The model with its run-time parameters, and bounds of all their numbers (n, 2)."""
    if not randomize:
        return model, None
    made = model.with_parameters(list(randomize))
    nominal = np.asarray(made.parameters.nominal, float)
    drawn = np.stack([nominal, nominal], axis=-1)
    known = {parameter.name: parameter for parameter in made.parameters}
    for name, bounds in randomize.items():
        if name not in known:
            raise UnknownNameError("parameter", name, list(known))
        edges = [*bounds] if np.iterable(bounds) else []
        if len(edges) != 2 or not np.all(np.asarray(edges[0]) <= np.asarray(edges[1])):
            raise InputError(f"{name} has no bounds to be drawn from", got=repr(bounds), allowed="(low, high)")
        if known[name].is_signless and not np.all(np.asarray(edges[0]) >= 0.0):
            raise InputError(f"{name} cannot be negative", got=repr(bounds), allowed="bounds of at least 0")
        place = known[name].slice
        drawn[place, 0], drawn[place, 1] = edges
    return made, drawn


class Env(gymnasium.Env[Array, ArrayLike]):
    """One environment, of a vector of one that does not reset by itself.

    Args:
        vector: made with ``num_envs=1`` and ``autoreset_mode="disabled"``, on the processor.
    """

    def __init__(self, vector: VectorEnv) -> None:
        if vector.num_envs != 1 or vector.mode != "disabled":
            raise InputError(
                "one environment needs a vector of one that does not reset by itself",
                got=repr(vector),
                do='num_envs=1, autoreset_mode="disabled"',
            )
        self.vector, self.metadata, self.render_mode = vector, vector.metadata, vector.render_mode
        self.observation_space = vector.single_observation_space
        self.action_space = vector.single_action_space

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        """Begin an episode: its first observation."""
        super().reset(seed=seed)
        observations, info = self.vector.reset(seed=seed)
        if seed is not None:
            self.np_random = self.vector.np_random
            self._np_random_seed = seed
        return observations[0], info

    def step(self, action: ArrayLike) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        """One step: observation, reward, terminated, truncated, info."""
        found = self.vector.step(np.asarray(action)[None])
        observations, rewards, terminated, truncated, info = found
        return observations[0], float(rewards[0]), bool(terminated[0]), bool(truncated[0]), info

    def render(self) -> Array | None:
        """Picture (480, 640, 3), with ``render_mode="rgb_array"``."""
        found = self.vector.render()
        return None if found is None else found[0]
