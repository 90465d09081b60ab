"""A study as a file (TOML), which the command line runs, with the measures and events that it can name.

Nothing in it is executed, and it names nothing outside its own folder: its model and its store lie there or below.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path, PurePath
from typing import Any

import numpy as np

from linkwise.array_types import Array
from linkwise.dataclass import dataclass, fields
from linkwise.errors import InputError, LinkwiseError, UnknownNameError
from linkwise.mechanism.parameters import check_names
from linkwise.model.model import Model
from linkwise.sim.actuators import PD
from linkwise.sim.elements import Vector
from linkwise.sim.events import Event
from linkwise.sim.trajectory import Trajectory
from linkwise.spatial.scalar import Scalar
from linkwise.studies.inputs import STATES, Inputs
from linkwise.studies.outcomes import CHANNELS
from linkwise.studies.study import Study

_TIMES = {"last": None, "max": np.nanmax, "min": np.nanmin, "mean": np.nanmean}
_AXES = ("x", "y", "z", "distance")


@dataclass(frozen=True)
class MeasuredNumber:
    """One number of a motion: a channel, or the place of a body, over joints and over time.

    Args:
        model: the mechanism.
        channel: "q", "v", "tau", "vdot" or "energy".
        body: a body or frame instead, whose place in the world is meant (m).
        axis: of the place: "x", "y", "z", or "distance" from ``target``.
        target: a point (3), m.
        joint: which one; the largest of all if not given.
        over_time: "last", "max", "min" or "mean".
        absolute: whether the sign is dropped first.
    """

    model: Model
    channel: str | None = None
    body: str | None = None
    axis: str = "distance"
    target: tuple[float, float, float] = (0.0, 0.0, 0.0)
    joint: str | None = None
    over_time: str = "last"
    absolute: bool = False

    def __post_init__(self) -> None:
        if (self.channel is None) == (self.body is None):
            raise InputError("a measure is of a channel or of a body", got=f"{self.channel!r}, {self.body!r}")
        if self.channel is not None and self.channel not in ("q", "v", "tau", "vdot", "energy"):
            raise UnknownNameError("channel", self.channel, ("q", "v", "tau", "vdot", "energy"))
        if self.body is not None:
            self.model.frame(self.body)
        if self.axis not in _AXES:
            raise UnknownNameError("axis", self.axis, _AXES)
        if self.over_time not in _TIMES:
            raise UnknownNameError("way to look over time", self.over_time, _TIMES)
        if self.joint is not None:
            self.model.joints[self.joint]

    def __call__(self, trajectory: Trajectory) -> Array:
        """One number for each member (n)."""
        values = self._samples(trajectory)
        values = np.abs(values) if self.absolute else values
        reduce = _TIMES[self.over_time]
        return np.asarray(values[:, -1] if reduce is None else reduce(values, axis=1))

    def _samples(self, trajectory: Trajectory) -> Array:
        """(n, T)."""
        if self.body is not None:
            place = trajectory.pose(self.body)[..., :3, 3]
            if self.axis == "distance":
                return np.asarray(np.sqrt(((place - np.asarray(self.target, float)) ** 2).sum(axis=-1)))
            return np.asarray(place[..., _AXES.index(self.axis)])
        values = np.asarray(getattr(trajectory, str(self.channel)))
        if self.channel == "energy":
            return values
        if self.joint is not None:
            joint = self.model.joints[self.joint]
            values = values[..., joint.q_slice if self.channel == "q" else joint.v_slice]
        return np.asarray((np.abs(values) if self.absolute else values).max(axis=-1))


def measure_fields() -> tuple[str, ...]:
    """Names of the fields that a measure in a file may have."""
    return tuple(field.name for field in fields(MeasuredNumber) if field.name != "model")


@dataclass(frozen=True)
class Threshold:
    """Whether a measure is above or below a value."""

    measure: MeasuredNumber
    above: float | None = None
    below: float | None = None

    def __post_init__(self) -> None:
        if self.above is None and self.below is None:
            raise InputError("failure needs a value", allowed="above = 1.0 or below = 0.1")

    def __call__(self, trajectory: Trajectory) -> Array:
        """Truth values (n)."""
        values = self.measure(trajectory)
        failed = np.zeros(len(values), bool)
        if self.above is not None:
            failed |= values > self.above
        if self.below is not None:
            failed |= values < self.below
        return failed


@dataclass(frozen=True)
class CoordinateMeasure:
    """A joint's coordinate or rate, less a value."""

    place: int
    rate: bool
    value: float

    def __call__(self, t: Scalar, q: Vector, v: Vector, p: Vector) -> Scalar:
        """Zero where the event is."""
        return (v if self.rate else q)[self.place] - self.value


def crossing(model: Model, name: str, spec: object) -> Event:
    """An event from a file: ``{joint = "elbow", reaches = 1.2, of = "q", terminal = true, direction = 1}``."""
    known = ("joint", "reaches", "of", "terminal", "direction")
    if not isinstance(spec, Mapping) or not {"joint", "reaches"} <= set(spec) or set(spec) - set(known):
        raise InputError(f"the event {name!r} cannot be read", got=str(spec), allowed=f"{', '.join(known)}")
    joint = model.joints[str(spec["joint"])]
    rate = spec.get("of", "q") == "v"
    place = (joint.v_slice if rate else joint.q_slice).start
    function = CoordinateMeasure(place, rate, float(spec["reaches"]))
    return Event(function, int(spec.get("direction", 0)), bool(spec.get("terminal", False)), name=name)


@dataclass(frozen=True)
class InputGain:
    """A gain for all joints, read from an input: at a place in p."""

    place: int

    def __call__(self, t: Scalar, p: Vector) -> Scalar:
        """Value of the input."""
        return p[self.place]


def _hold(model: Model, given: Mapping[str, Any], places: Mapping[str, slice]) -> PD:
    """τ = kp (q_d ⊖ q) - kd v, with gravity compensated unless that is not wanted.

    Args:
        model: the mechanism.
        given: ``hold`` (nq numbers; ``model.start`` if not given), ``kp`` and ``kd`` (numbers, or the name of an
            input that has one number), ``gravity``.
        places: where in p each input stands that gains can be read from.
    """
    gains = {"kp": given.get("kp", 100.0), "kd": given.get("kd", 20.0)}
    for name, gain in gains.items():
        if isinstance(gain, str):
            if gain not in places:
                raise UnknownNameError(f"input (for {name})", gain, places)
            gains[name] = InputGain(places[gain].start)
    return PD(model, given.get("hold", model.start), gravity=bool(given.get("gravity", True)), **gains)


_KNOWN = (
    "model", "store", "members", "seed", "design", "batch", "floating", "locked", "inputs", "simulate", "control",
    "events", "keep", "measures", "failure",
)  # fmt: skip
_SETTINGS = (
    "duration", "dt", "method", "rtol", "atol", "t0", "limits", "max_step", "min_step", "max_steps", "save_every",
    "output_times", "stabilization", "released",
)  # fmt: skip


class StudyFileError(LinkwiseError):
    """A study file cannot be read as one."""


@dataclass(frozen=True)
class StudyFile:
    """A study, and where the file wants its results.

    Args:
        study: what to run.
        store: the folder for results.
        batch: members that run together, if the file says so.
    """

    study: Study
    store: Path
    batch: int | None


def read_study(
    path: str | Path,
    load: Callable[[str, Mapping[str, Any]], Model],
    *,
    model: str | None = None,
    store: str | Path | None = None,
    members: int | None = None,
    code: Mapping[str, Any] | None = None,
) -> StudyFile:
    """Read a study file.

    Args:
        path: of the file.
        load: from a model's name or path, and ``floating`` and ``locked``, to the model.
        model: instead of the file's own; may lie anywhere.
        store: instead of the file's own; may lie anywhere.
        members: instead of the file's own.
        code: what a Python file that the *user* named defines: ``control``, ``events``, ``keep``, ``failure``.
    """
    source = Path(path)
    try:
        content = tomllib.loads(source.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise StudyFileError(f"{source} is not a TOML file", got=str(error)) from None
    _check_keys(content, _KNOWN, "key")
    code = dict(code or {})
    how = {"floating": content.get("floating", False), "locked": content.get("locked", ())}
    name = model or _inside(source, content.get("model"), "model")
    inputs = {key: as_spec(key, value) for key, value in _table(content, "inputs").items()}
    if members is not None and members != content.get("members"):
        tables = [key for key, value in inputs.items() if isinstance(value, np.ndarray) and len(value) != members]
        if tables:
            raise InputError(
                "values are given for another number of members", got=", ".join(tables), do="drop --members"
            )
    loaded = _with_parameters(load(name, how), inputs)
    settings = _table(content, "simulate")
    _check_keys(settings, _SETTINGS, "setting")
    count = members or content.get("members") or 1
    places = Inputs(loaded, {key: value for key, value in inputs.items() if key not in STATES}, count, {}).places()
    settings |= _control(content, loaded, places, code)
    events = [crossing(loaded, each, spec) for each, spec in _table(content, "events").items()]
    events += list(np.atleast_1d(code.get("events", [])))
    if events:
        settings["events"] = events
    keep, failure = _outcomes(content, loaded, code)
    study = Study(
        loaded, inputs, members or content.get("members"), design=content.get("design", "random"),
        seed=content.get("seed", 0), keep=keep, failure=failure, **settings,
    )  # fmt: skip
    where = store or source.parent / _inside(source, content.get("store", source.stem), "store", here=False)
    return StudyFile(study, Path(where), content.get("batch"))


def as_spec(name: str, value: object) -> object:
    """An input: numbers, a distribution, or a list of these.

    ``{normal = [mean, deviation]}``, ``{uniform = [low, high]}``, ``{values = [...]}`` (a row for each member), or a
    distribution of SciPy by its name with its arguments, ``{gamma = {a = 2.0, scale = 0.1}}``.
    """
    if isinstance(value, list) and any(isinstance(each, dict) for each in value):
        return [as_spec(name, each) for each in value]
    if not isinstance(value, dict):
        return value
    if len(value) != 1:
        raise StudyFileError(f"the input {name!r} is not one distribution", got=str(value), allowed="{normal = [0, 1]}")
    ((kind, given),) = value.items()
    if kind == "values":
        return np.asarray(given, float)
    import scipy.stats as st

    if kind in ("normal", "uniform") and isinstance(given, list) and len(given) == 2:
        low, high = (np.asarray(x, float) for x in given)
        return st.norm(low, high) if kind == "normal" else st.uniform(low, high - low)
    known = {each: getattr(st, each) for each in dir(st) if isinstance(getattr(st, each), st.rv_continuous)}
    if kind not in known:
        raise UnknownNameError(f"distribution (input {name!r})", kind, ["normal", "uniform", "values", *known])
    if not isinstance(given, dict):
        raise StudyFileError(f"the input {name!r} needs named numbers", got=str(given), allowed="{gamma = {a = 2.0}}")
    try:
        return known[kind](**{key: np.asarray(x, float) for key, x in given.items()})
    except (TypeError, ValueError) as error:
        raise StudyFileError(f"the input {name!r} cannot be made", got=f"{kind}: {error}") from None


def _control(content: Mapping[str, Any], model: Model, places: Mapping[str, slice], code: Mapping[str, Any]) -> Any:
    given = _table(content, "control")
    if "control" in code:
        if given:
            raise StudyFileError("control is given twice", got="in the study and in the code", do="drop one of them")
        return {"control": code["control"]}
    if not given:
        return {}
    _check_keys(given, ("hold", "kp", "kd", "gravity"), "key of control")
    return {"control": _hold(model, given, places)}


def _outcomes(content: Mapping[str, Any], model: Model, code: Mapping[str, Any]) -> tuple[Any, Any]:
    measures: dict[str, Any] = {}
    for name, spec in _table(content, "measures").items():
        _check_keys(spec, measure_fields(), f"key of the measure {name!r}")
        measures[name] = MeasuredNumber(model, **spec)
    keep: list[Any] = list(content.get("keep", ["final"]))
    for name in keep:
        if name not in ("final", "events", *CHANNELS):
            raise UnknownNameError("thing to keep", name, ("final", "events", *CHANNELS))
    keep += [measures, dict(code.get("keep", {}))]
    failure = content.get("failure")
    if isinstance(failure, dict):
        _check_keys(failure, ("measure", "above", "below"), "key of failure")
        if failure.get("measure") not in measures:
            raise UnknownNameError("measure", failure.get("measure"), measures)
        failure = Threshold(measures[failure["measure"]], failure.get("above"), failure.get("below"))
    return keep, code.get("failure", failure)


def _with_parameters(model: Model, inputs: Mapping[str, Any]) -> Model:
    """Inputs that are named like constants of the model vary them."""
    known = {parameter.name for parameter in model.parameters}
    names = [name for name in inputs if name == "gravity" or ("." in name and name not in known)]
    return model.with_parameters([*model._parameter_names, *check_names(model, names)]) if names else model


def _inside(source: Path, given: object, what: str, here: bool = True) -> str:
    """A path below the study's folder, or a plain name."""
    if not isinstance(given, str) or not given:
        raise StudyFileError(f"{source} names no {what}", allowed=f'{what} = "..."')
    path = PurePath(given)
    if path.is_absolute() or ".." in path.parts:
        raise StudyFileError(
            f"the {what} of {source} lies outside its folder",
            got=repr(given),
            allowed="a path in the study's folder or below it",
            do=f"name it on the command line: --{what} {given}",
        )
    place = source.parent / path
    return str(place) if here and place.exists() else given


def _table(content: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = content.get(key, {})
    if not isinstance(value, dict):
        raise StudyFileError(f"{key} is not a table", got=str(value), allowed=f"[{key}]")
    return dict(value)


def _check_keys(content: object, known: tuple[str, ...], kind: str) -> None:
    if not isinstance(content, dict):
        raise StudyFileError(f"a {kind} was expected", got=str(content), allowed=", ".join(known))
    for key in content:
        if key not in known:
            raise UnknownNameError(f"{kind} in a study", key, known)
