"""Models and arrays from the words that users type, and errors where something is wrong with those."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from linkwise.array_types import Array, FloatArray
from linkwise.errors import InputError, UnknownNameError

if TYPE_CHECKING:
    from linkwise.functions.function import CompiledFunction
    from linkwise.model.model import Model


BUILT_IN = (
    "seven_joint_arm", "stanford_arm", "planar_arm", "flexible_arm", "quadruped", "humanoid", "flexible_satellite",
    "stewart_platform", "four_bar", "slider_crank", "bricard", "andrews_squeezer",
)  # fmt: skip
"""Names of models in :mod:`linkwise.samples`; here, so that a command need not import them to know them."""


def load_model(options: Namespace) -> Model:
    """The model that the options name, on the ground that they add."""
    import linkwise as lw
    from linkwise.mechanism.body_checks import checked_pose

    model, height = _loaded(options), getattr(options, "ground", None)
    if height is None:
        return model
    return model.with_contacts(lw.Ground(checked_pose(lw.transform(xyz=(0.0, 0.0, height)), "the --ground")))


def _loaded(options: Namespace) -> Model:
    """A built-in model, or a file read as the options say."""
    import linkwise as lw

    gravity = getattr(options, "gravity", None)
    field = None if gravity is None else numbers(gravity, 3, "--gravity").tolist()
    if options.model in BUILT_IN:
        from linkwise import samples

        if options.floating or options.lock or getattr(options, "loops", None):
            raise InputError(
                "built-in models cannot be changed",
                got="--floating, --lock or --loops",
                do="use these options with model files only",
            )
        model: Model = getattr(samples, options.model)()
        return model if field is None else model.with_gravity(field)
    if not Path(options.model).exists() and not Path(options.model).suffix:
        raise UnknownNameError("file or built-in model", options.model, BUILT_IN)
    return lw.load(options.model, **load_options(options))


def load_options(options: Namespace) -> dict[str, Any]:
    """Arguments of :func:`linkwise.load` that the options give."""
    gravity = getattr(options, "gravity", None)
    return {
        "floating": options.floating,
        "locked": _locked(options.lock),
        "gravity": None if gravity is None else numbers(gravity, 3, "--gravity").tolist(),
        "mimic": not getattr(options, "no_mimic", False),
        "allow_unphysical": getattr(options, "allow_unphysical", False),
        "search": getattr(options, "search", ()),
        "loops": getattr(options, "loops", None),
        "arguments": _arguments(options),
        "environment": getattr(options, "env", ()),
    }


def _arguments(options: Namespace) -> dict[str, str] | None:
    """Arguments of a xacro file; None where none were given, so that it is not run."""
    texts = getattr(options, "arg", [])
    found: dict[str, str] = {}
    for text in texts:
        name, separator, value = text.partition(":=")
        if text and not (name and separator):
            raise InputError(
                "--arg is a name and a value", got=repr(text), allowed="--arg name:=value; --arg '' for none"
            )
        if text:
            found[name] = value
    return found if texts else None


def _locked(texts: list[str]) -> dict[str, float | None]:
    locked: dict[str, float | None] = {}
    for text in texts:
        name, has_value, value = text.partition("=")
        locked[name] = _number(value, f"--lock {name}") if has_value else None
    return locked


def _number(text: str, what: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise InputError(f"{what} is not a number", got=repr(text), allowed="e.g. 0.5") from None
    if not np.isfinite(value):
        raise InputError(f"{what} is not a finite number", got=repr(text))
    return value


def numbers(text: str, size: int, what: str) -> Array:
    """Numbers, so many, from a text with commas between them."""
    values = np.array([_number(part, what) for part in text.split(",")])
    if values.size != size:
        raise InputError(f"{what} has the wrong length", got=f"{values.size} numbers", allowed=f"{size}, with commas")
    return values


def configuration(model: Model, text: str, what: str) -> FloatArray:
    """A configuration: the name of one, ``neutral``, ``random:SEED``, numbers, or ``joint=value`` for some joints."""
    if text in model.configurations:
        return np.array(model.configurations[text])
    if text == "neutral":
        return model.neutral()
    if text.partition(":")[0] == "random":
        seed = text.partition(":")[2] or "0"
        if not seed.isdigit():
            raise InputError(f"the seed of {what} is not a whole number", got=repr(seed), allowed="e.g. random:1")
        return model.random_configuration(np.random.default_rng(int(seed)))
    if "=" in text:
        return _by_joint(model, text, model.neutral(), "q", what)
    return numbers(text, model.nq, f"{what} (nq = {model.nq})")


def per_freedom(model: Model, text: str, what: str) -> FloatArray:
    """Velocities or forces: one number for all, one for each freedom, or ``joint=value`` for some joints."""
    if "=" in text:
        return _by_joint(model, text, np.zeros(model.nv), "v", what)
    if "," not in text:
        return np.full(model.nv, _number(text, what))
    return numbers(text, model.nv, f"{what} (nv = {model.nv})")


def _by_joint(model: Model, text: str, values: FloatArray, kind: Literal["q", "v"], what: str) -> FloatArray:
    for part in text.split(","):
        name, has_value, value = part.partition("=")
        joint = model.joints[name.strip()]
        if not has_value:
            raise InputError(
                f"{what} mixes joints and plain numbers", got=repr(part), allowed="joint=value,joint=value"
            )
        place = joint.q_slice if kind == "q" else joint.v_slice
        size = place.stop - place.start
        if size != 1 or joint.mimic is not None:
            why = f"it follows {joint.mimic.joint!r}" if joint.mimic else f"it has {size} coordinates"
            raise InputError(
                f"{what} cannot set joint {joint.name!r} by one value: {why}", do="give all numbers instead"
            )
        values[place] = _number(value, f"{what} {joint.name}")
    return values


def chosen_function(model: Model, name: str, body: str | None) -> CompiledFunction:
    """The compiled function behind a method of the model; functions of a body get the last one if none is named."""
    from linkwise.algorithms.catalogue import CATALOGUE
    from linkwise.contact.catalogue import CONTACT
    from linkwise.sim.moreau import touching

    aliases = {"rnea": "inverse_dynamics", "aba": "forward_dynamics", "crba": "mass_matrix"}
    name = aliases.get(name, name)
    if name in CONTACT:
        return touching(model).function(name)
    if name not in CATALOGUE:
        raise UnknownNameError("function", name, [*CATALOGUE, *CONTACT])
    if not takes_body(name):
        return model.function(name)
    last = model.bodies[-1].name if model.bodies else "world"
    place = last if body is None else model.frame(body).name
    return model.function(name, body=place)


def takes_body(name: str) -> bool:
    """Whether a function of the model is about one body."""
    import inspect

    import linkwise.model.model  # noqa: F401  # it puts the methods down
    from linkwise.model.making import METHODS

    return name in METHODS and "body" in inspect.signature(METHODS[name].method).parameters
