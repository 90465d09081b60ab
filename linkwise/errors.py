"""The errors and the warning that linkwise raises, and the one shape of their messages.

A message has four parts, so that whoever meets it can go on without reading our source:
*what* is wrong, what we *got*, what is *allowed*, and what to *do* next::

    raise InputError(
        "q has the wrong shape", got="(3, 8)", allowed="(..., 7): nq = 7", do="check the joint order with model.joints"
    )

prints as::

    q has the wrong shape
      got:     (3, 8)
      allowed: (..., 7): nq = 7
      do:      check the joint order with model.joints

The parts stay readable as attributes (``error.got``), for programs that handle the error. They are shown with
``str``: pass ``repr(name)`` where the quotes help.

This is the lowest layer: it imports nothing of linkwise.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Sequence
from os import PathLike, fspath
from types import ModuleType
from typing import Any, TypedDict

__all__ = [
    "ClosureError",
    "FrozenElementError",
    "InputError",
    "InputWarning",
    "IntegrationWarning",
    "LinkwiseError",
    "MissingExtraError",
    "ModelError",
    "ModelFileError",
    "ModelWarning",
    "SaturationWarning",
    "SlowControlWarning",
    "UnknownNameError",
    "message",
    "require_extra",
]

_MOST_NAMES_SHOWN = 20


def message(what: str, *, got: object = None, allowed: object = None, do: object = None) -> str:
    """Lay out the four parts of a message; the parts that are None are left out.

    A part of several lines keeps them, aligned under its first.
    """
    lines = [what]
    for label, part in (("got", got), ("allowed", allowed), ("do", do)):
        if part is not None:
            lines.append(f"  {label + ':':<9}" + str(part).replace("\n", "\n" + " " * 11))
    return "\n".join(lines)


class MessageParts(TypedDict):
    """The parts of a message after its first line."""

    got: object
    allowed: object
    do: object


class LinkwiseError(Exception):
    """The base of every error that linkwise raises on purpose.

    Args:
        what: what is wrong, in one line.
        got: what was found instead.
        allowed: what would have been right.
        do: what the reader can do about it.
    """

    def __init__(self, what: str, *, got: object = None, allowed: object = None, do: object = None) -> None:
        super().__init__(message(what, got=got, allowed=allowed, do=do))
        self.what = what
        self.got = got
        self.allowed = allowed
        self.do = do

    @property
    def parts(self) -> MessageParts:
        """The parts got, allowed and do, for another error that says the same of a file or an object."""
        return {"got": self.got, "allowed": self.allowed, "do": self.do}

    def __str__(self) -> str:
        # KeyError shows the repr of its argument, which would turn our line breaks into "\n".
        return str(self.args[0])

    def __reduce__(self) -> tuple[Any, ...]:
        # Exception would rebuild from args alone, and lose the keyword parts on the way back from a worker process.
        return _rebuild, (type(self), self.args), self.__dict__


def _rebuild(kind: type[LinkwiseError], args: tuple[Any, ...]) -> LinkwiseError:
    error = kind.__new__(kind)
    error.args = args
    return error


class ModelError(LinkwiseError):
    """The description of a mechanism does not make sense: a negative mass, a body without a parent, ..."""


class ModelFileError(ModelError):
    """A model file cannot be read as a mechanism; the message begins with ``file:line:`` where they are known.

    Args:
        what: what is wrong, in one line.
        file: the file that was read.
        line: the line in it, counted from 1.
        got: what was found instead.
        allowed: what would have been right.
        do: what the reader can do about it.
    """

    def __init__(
        self,
        what: str,
        *,
        file: str | PathLike[str] | None = None,
        line: int | None = None,
        got: object = None,
        allowed: object = None,
        do: object = None,
    ) -> None:
        place = "" if file is None else f"{fspath(file)}: " if line is None else f"{fspath(file)}:{line}: "
        super().__init__(place + what, got=got, allowed=allowed, do=do)
        self.file = None if file is None else fspath(file)
        self.line = line


class InputError(LinkwiseError, ValueError):
    """An argument is wrong: its shape, its type, its range."""


class ClosureError(InputError):
    """A closure is not closed, cannot be closed, or contradicts others.

    Args:
        what: what is wrong, in one line.
        closure: the closure that is furthest from being met.
        residual: how far, the largest number of its equations.
        got: what was found instead.
        allowed: what would have been right.
        do: what the reader can do about it.
    """

    def __init__(
        self,
        what: str,
        *,
        closure: str,
        residual: float,
        got: object = None,
        allowed: object = None,
        do: object = None,
    ) -> None:
        super().__init__(what, got=got, allowed=allowed, do=do)
        self.closure = closure
        self.residual = residual


class UnknownNameError(LinkwiseError, KeyError, ValueError):
    """A name is not among those that exist; the nearest ones are suggested.

    Args:
        kind: what was looked for, as a noun: ``"joint"``.
        name: the name that was not found.
        known: the names that exist.
        do: what the reader can do about it; by default, use one of the nearest names.
    """

    def __init__(self, kind: str, name: object, known: Iterable[object], *, do: object = None) -> None:
        names = [str(each) for each in known]
        self.kind = kind
        self.name = name
        self.nearest = tuple(_nearest(str(name), names))
        if do is None and self.nearest:
            do = "did you mean " + " or ".join(map(repr, self.nearest)) + "?"
        super().__init__(f"there is no {kind} of this name", got=repr(name), allowed=_listed(names), do=do)


class MissingExtraError(LinkwiseError, ImportError):
    """A feature needs an optional package that is not installed; the one line has the command that installs it.

    Args:
        module: the module that could not be imported.
        extra: the extra of linkwise that brings it.
    """

    def __init__(self, module: str, extra: str) -> None:
        command = f'pip install "linkwise[{extra}]"'
        super().__init__(f"this needs the extra {extra!r} ({module} is not installed): {command}")
        self.do = command
        self.module = module
        self.extra = extra


class FrozenElementError(LinkwiseError, AttributeError):
    """An attempt to change an element of a simulation after it was made."""


class InputWarning(UserWarning):
    """An argument is taken as it is, or mended, and is probably not what was meant: degrees, a long quaternion."""


class IntegrationWarning(UserWarning):
    """A simulation could not reach its end, or what it gives is not to be trusted."""


class SaturationWarning(UserWarning):
    """Actuators were asked for more than they can give, and gave what they can."""


class SlowControlWarning(UserWarning):
    """A control function could not be traced and runs in Python."""


class ModelWarning(UserWarning):
    """A mechanism could be read, but perhaps not as its author meant it: an element was ignored, a mass is zero, ...

    Args:
        what: what was noticed, in one line.
        got: what was found.
        allowed: what is usual.
        do: what the reader can do about it.
        left_out: what of a file was left out, one text each; ``linkwise check`` lists them.
    """

    def __init__(
        self,
        what: str,
        *,
        got: object = None,
        allowed: object = None,
        do: object = None,
        left_out: Sequence[str] = (),
    ) -> None:
        super().__init__(message(what, got=got, allowed=allowed, do=do))
        self.left_out = tuple(left_out)


def require_extra(module: str, extra: str) -> ModuleType:
    """Import an optional module where it is used, or say which extra brings it.

    >>> plt = require_extra("matplotlib.pyplot", "viz")  # doctest: +SKIP

    Only the absence of the package itself is reported so: a package that is installed but fails inside its own
    imports shows its own error, since installing the extra again would not mend that.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if module == missing or module.startswith(missing + "."):
            raise MissingExtraError(module.partition(".")[0], extra) from error
        raise


def _nearest(name: str, known: list[str]) -> list[str]:
    """The known names that a slip of the pen could have meant: whatever the case, then by likeness."""
    import difflib  # takes longer to import than all of this file

    by_fold: dict[str, str] = {}
    for each in known:
        by_fold.setdefault(each.casefold(), each)
    return [by_fold[fold] for fold in difflib.get_close_matches(name.casefold(), by_fold, n=3, cutoff=0.6)]


def _listed(names: list[str]) -> str:
    if not names:
        return "nothing: there are none"
    shown = ", ".join(names[:_MOST_NAMES_SHOWN])
    left = len(names) - _MOST_NAMES_SHOWN
    return f"{shown}, ... ({left} more)" if left > 0 else shown


def _in_group(group: str, names: str) -> dict[str, str]:
    return {name: f"lw.{group}.{name}" for name in names.split()}


SOUGHT_NAMES = {
    **_in_group(
        "math",
        "abs acos asin atan atan2 clip cos cosh exp log maximum minimum sign sin sinh sqrt tan tanh where",
    ),
    **_in_group("linalg", "cholesky solve"),
    **_in_group(
        "closures",
        "Closure Coupling Distance JointFunction PointOnCurve PointOnPlane PointOnSurface PolynomialCoupling "
        "Prescribed PrescribedFrame RateFunction Relation RelativePose Rolling",
    ),
    **_in_group("control", "as_nlsys as_state_space crocoddyl_action emit_acados emit_casadi shoot to_fmu"),
    **_in_group("equipment", "Activation Actuator FrameTransmission JointTransmission PathTransmission Sensor Spring"),
    **_in_group(
        "errors",
        "ClosureError FrozenElementError IntegrationWarning MissingExtraError ModelFileError ModelWarning "
        "SlowControlWarning UnknownNameError",
    ),
    **_in_group("shapes", "box capsule cylinder mesh sphere"),
    **_in_group("space", "BalancedWheel Thruster"),
    "Contact": "lw.Ground, lw.Material and model.with_contacts(lw.Ground())",
}
"""Names of ``lw`` that people ask for and that are elsewhere."""

_CONTACT = 'model.with_contacts(lw.Ground(), material=lw.Material(friction=0.8)), and method="moreau"'
SOUGHT_ARGUMENTS = dict.fromkeys(("contact", "contacts", "ground", "floor", "friction", "collisions"), _CONTACT)
"""Arguments of ``lw.simulate`` that people give and that are elsewhere."""


def no_attribute(of: str, name: str, place: str | None) -> AttributeError:
    """The error for a name that something does not have, with the place where it is, if that is known."""
    return AttributeError(f"{of} has no attribute {name!r}" + (f"; instead: {place}" if place else ""), name=name)
