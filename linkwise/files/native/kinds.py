"""Numbers, names, poses, lists, records: how each is written, and checked when it is read.

A kind has two methods, ``write`` and ``read``. Files come from anywhere: ``read`` believes nothing, and every complaint
names the file, the line and the place in the file (``$.bodies[3].joint.axis``).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import reduce
from types import NoneType, UnionType
from typing import Any, Generic, Literal, NoReturn, TypeAlias, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from linkwise.dataclass import MISSING, Converted, dataclass, field, fields
from linkwise.errors import LinkwiseError, ModelFileError, UnknownNameError
from linkwise.files.native.contents import ArrayStore, Path, line_of, shown_path

REQUIRED = object()
"""In place of a default: the field must be there."""
T = TypeVar("T")
Json: TypeAlias = "bool | int | float | str | Sequence[Json] | dict[str, Json] | None"
"""A value as JSON has it."""
Field: TypeAlias = "tuple[ValueKind[Any], object]"
"""The kind of a field, and its default or REQUIRED."""
_ROTATION_TOLERANCE = 1e-6
_FEW = 48  # numbers of an array that still stand in the file itself


@dataclass
class Document:
    """One file being read or written.

    Args:
        file: its name in the messages.
        text: what is being read, to find lines in.
        arrays: the large arrays.
        refused: what cannot be written, with the reason.
    """

    file: str
    text: str = ""
    arrays: ArrayStore = field(default_factory=ArrayStore)
    refused: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class FilePlace:
    """A value of a file, and where it stands."""

    value: Any
    document: Document
    path: Path = ()

    def fail(self, what: str, *, got: object = None, allowed: object = None, do: object = None) -> NoReturn:
        """Raise a `ModelFileError` here."""
        raise ModelFileError(
            f"{what}, at {shown_path(self.path)}",
            file=self.document.file,
            line=line_of(self.document.text, self.path),
            got=repr(self.value)[:80] if got is None else got,
            allowed=allowed,
            do=do,
        )

    @contextmanager
    def refusals(self, *keys: str | int) -> Iterator[None]:
        """Context in which errors that know no place are raised as errors here, or at an element inside."""
        try:
            yield
        except ModelFileError:
            raise
        except LinkwiseError as error:
            reduce(FilePlace.inside, keys, self).fail(error.what, **error.parts)

    def inside(self, key: str | int) -> FilePlace:
        """An element of this object or list."""
        return FilePlace(self.value[key], self.document, (*self.path, key))

    def items(self, what: str) -> list[FilePlace]:
        """The elements of a list."""
        if not isinstance(self.value, list):
            self.fail(f"{what} is not a list", allowed="[…]")
        return [self.inside(k) for k in range(len(self.value))]


class ValueKind(ABC, Generic[T]):
    """A kind of value, with the way in which it is written and read."""

    @abstractmethod
    def write(self, value: T, to: Document) -> Json:
        """Plain JSON for a value."""

    @abstractmethod
    def read(self, at: FilePlace) -> T:
        """The value, checked."""


@dataclass(frozen=True)
class TextKind(ValueKind[str]):
    """A string; `among` certain ones; it is a name, unless it may be `empty`."""

    among: tuple[str, ...] = ()
    empty: bool = False

    def write(self, value: str, to: Document) -> Json:
        return str(value)

    def read(self, at: FilePlace) -> str:
        if not isinstance(at.value, str) or not (at.value or self.empty) or len(at.value) > 4000 or "\0" in at.value:
            at.fail("this is not a name", allowed="a text between quotes, not empty")
        if any("\ud800" <= c <= "\udfff" for c in at.value):
            at.fail("this text has half a character", got=ascii(at.value)[:80])
        if self.among and at.value not in self.among:
            at.fail("this value is not known", **UnknownNameError("value", at.value, self.among).parts)
        return at.value


class Flag(ValueKind[bool]):
    """True or false."""

    def write(self, value: bool, to: Document) -> Json:
        return bool(value)

    def read(self, at: FilePlace) -> bool:
        if not isinstance(at.value, bool):
            at.fail("this is neither true nor false", allowed="true, false")
        return at.value


@dataclass(frozen=True)
class Whole(ValueKind[int]):
    """A whole number, not below `low`, below `end`."""

    low: int = 0
    end: int = 2**31

    def write(self, value: int, to: Document) -> Json:
        return int(value)

    def read(self, at: FilePlace) -> int:
        if isinstance(at.value, bool) or not isinstance(at.value, int) or not self.low <= at.value < self.end:
            at.fail("this is not a whole number that is possible here", allowed=f"{self.low}, {self.low + 1}, …")
        return at.value


@dataclass(frozen=True)
class Number(ValueKind[float]):
    """A finite number, not below `low`."""

    low: float = -math.inf

    def write(self, value: float, to: Document) -> Json:
        return float(value)

    def read(self, at: FilePlace) -> float:
        value = at.value
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            at.fail("this is not a number", allowed="e.g. 0.5")
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number) or number < self.low:
            least = "" if self.low == -math.inf else f", {self.low:g} or more"
            at.fail("this number is not possible here", allowed=f"a finite number{least}")
        return number


@dataclass(frozen=True)
class Numbers(ValueKind[tuple[float, ...]]):
    """A tuple of numbers; so many, where `length` is given."""

    length: int | None = None
    low: float = -math.inf

    def write(self, value: tuple[float, ...], to: Document) -> Json:
        return [float(x) for x in value]

    def read(self, at: FilePlace) -> tuple[float, ...]:
        items = at.items("this")
        if self.length is not None and len(items) != self.length:
            at.fail("this has the wrong length", got=f"{len(items)} values", allowed=f"{self.length} numbers")
        each = Number(self.low)
        return tuple(each.read(item) for item in items)


class Pose(ValueKind[tuple[tuple[float, ...], ...]]):
    """A rigid transform: three rows of four numbers, [R | p]; kept to the last bit."""

    def write(self, value: tuple[tuple[float, ...], ...], to: Document) -> Json:
        return [[float(x) for x in row] for row in value[:3]]

    def read(self, at: FilePlace) -> tuple[tuple[float, ...], ...]:
        rows = at.items("a placement")
        if len(rows) != 3:
            at.fail(
                "a placement has three rows", got=f"{len(rows)}", allowed="[[1, 0, 0, x], [0, 1, 0, y], [0, 0, 1, z]]"
            )
        found = tuple(Numbers(4).read(row) for row in rows)
        R = np.array(found)[:, :3]
        with np.errstate(all="ignore"):
            error = np.abs(R @ R.T - np.eye(3)).max()
        if not error <= _ROTATION_TOLERANCE or np.linalg.det(R) < 0.0:
            at.fail(
                "a placement is not a rotation and a shift",
                got=f"|R Rᵀ - 1| = {error:.1e}",
                allowed="R orthonormal and right-handed",
            )
        return (*found, (0.0, 0.0, 0.0, 1.0))


@dataclass(frozen=True)
class ListOf(ValueKind[tuple[T, ...]]):
    """A tuple of values of one kind."""

    kind: ValueKind[T]

    def write(self, value: tuple[T, ...], to: Document) -> Json:
        return [self.kind.write(each, to) for each in value]

    def read(self, at: FilePlace) -> tuple[T, ...]:
        return tuple(self.kind.read(item) for item in at.items("this"))


class RowKind(ValueKind[tuple[object, ...]]):
    """A list of values, each of its own kind."""

    def __init__(self, *kinds: ValueKind[Any]) -> None:
        self.kinds = kinds

    def write(self, value: tuple[object, ...], to: Document) -> Json:
        return [kind.write(each, to) for kind, each in zip(self.kinds, value, strict=True)]

    def read(self, at: FilePlace) -> tuple[object, ...]:
        items = at.items("this")
        if len(items) != len(self.kinds):
            at.fail("this has the wrong length", allowed=f"{len(self.kinds)} values")
        return tuple(kind.read(item) for kind, item in zip(self.kinds, items, strict=True))


@dataclass(frozen=True)
class TableKind(ValueKind[Mapping[str, T]]):
    """Names to values of one kind."""

    kind: ValueKind[T]

    def write(self, value: Mapping[str, T], to: Document) -> Json:
        return {str(key): self.kind.write(each, to) for key, each in value.items()}

    def read(self, at: FilePlace) -> Mapping[str, T]:
        if not isinstance(at.value, dict):
            at.fail("this is not an object", allowed='{"name": …}')
        return {key: self.kind.read(at.inside(key)) for key in at.value}


@dataclass(frozen=True)
class OrNone(ValueKind[T | None]):
    """A value, or null."""

    kind: ValueKind[T]

    def write(self, value: T | None, to: Document) -> Json:
        return None if value is None else self.kind.write(value, to)

    def read(self, at: FilePlace) -> T | None:
        return None if at.value is None else self.kind.read(at)


@dataclass(frozen=True)
class Tensor(ValueKind[np.ndarray]):
    """An array of floats with so many axes: nested lists if it is small, else ``{"array": key}`` in the archive."""

    axes: int

    def write(self, value: np.ndarray, to: Document) -> Json:
        array = np.ascontiguousarray(value, float)
        return array.tolist() if array.size <= _FEW and array.size else {"array": to.arrays.put(array)}

    def read(self, at: FilePlace) -> np.ndarray:
        if isinstance(at.value, dict):
            RecordKind({"array": (TextKind(), REQUIRED)}).read(at)
            key = at.inside("array")
            array = at.document.arrays.get(key.value)
            if array is None:
                unknown = UnknownNameError("array in the archive", key.value, at.document.arrays.keys())
                key.fail("the archive has no such array", allowed=unknown.allowed, do=unknown.do)
        else:
            self._check(at, 0)
            try:
                array = np.array(at.value, float)
            except (ValueError, OverflowError):
                at.fail("the rows of this array are not of one length")
        if array.ndim != self.axes or array.dtype != np.float64 or not np.isfinite(array).all():
            at.fail(
                "this array is not possible here",
                got=f"{array.dtype}, shape {array.shape}",
                allowed=f"finite numbers, {self.axes} axes",
            )
        return array

    def _check(self, at: FilePlace, axis: int) -> None:
        if axis == self.axes:
            Number().read(at)
            return
        for item in at.items("an array"):
            self._check(item, axis + 1)


class RecordKind(ValueKind[Any]):
    """An object with certain fields; those at their default are left out.

    Args:
        fields: name -> (kind, default or REQUIRED).
        make: what is made of the values, by keyword; a dict if not given.
    """

    def __init__(self, fields: Mapping[str, Field], make: Callable[..., object] | None = None) -> None:
        self.fields = dict(fields)
        self.make = make

    @classmethod
    def of(
        cls, kind: type, make: Callable[..., object] | None = None, /, **others: ValueKind[Any] | Field | None
    ) -> RecordKind:
        """Record of a dataclass: its fields by their annotations, with their defaults.

        Args:
            kind: the class; annotations of records that are made later find this one.
            make: what is made of the values; an object of the class if not given.
            others: fields of another kind than their annotation's, or with another default too; None for one that is
                not stored.
        """
        hints, found = get_type_hints(kind), {}
        for each in fields(kind):
            other = others.get(each.name, REQUIRED)
            if other is None:
                continue
            default = REQUIRED if each.default is MISSING else each.default
            own = kind_of(hints[each.name]) if other is REQUIRED else other
            found[each.name] = own if isinstance(own, tuple) else (own, default)
        _RECORDS[kind] = record = cls(found, make or kind)
        return record

    def write(self, value: Any, to: Document) -> dict[str, Json]:
        found = {}
        for name, (kind, default) in self.fields.items():
            each = value[name] if isinstance(value, dict) else getattr(value, name)
            if default is REQUIRED or (each is not default and repr(each) != repr(default)):
                found[name] = kind.write(each, to)
        return found

    def read(self, at: FilePlace) -> Any:
        if not isinstance(at.value, dict):
            at.fail("this is not an object", allowed="{…} with " + ", ".join(self.fields))
        return self.made(at, self.values(at, ()))

    def values(self, at: FilePlace, others: tuple[str, ...]) -> dict[str, object]:
        """The fields; `others` may be there too."""
        for key in at.value:
            if key not in self.fields and key not in others:
                at.inside(key).fail(
                    "this field is not known", **UnknownNameError("field", key, (*self.fields, *others)).parts
                )
        found = {}
        for name, (kind, default) in self.fields.items():
            if name in at.value:
                found[name] = kind.read(at.inside(name))
            elif default is REQUIRED:
                at.fail(f"the field {name!r} is missing", got=", ".join(map(repr, list(at.value)[:12])) or "{}")
            else:
                found[name] = default
        return found

    def made(self, at: FilePlace, values: dict[str, object]) -> Any:
        """Object made of the fields; its refusals are reported here."""
        if self.make is None:
            return values
        try:  # by hand, not by `At.refusals`: a file has hundreds of records, and would take 3 % longer
            return self.make(**values)
        except ModelFileError:
            raise
        except LinkwiseError as error:
            at.fail(error.what, **error.parts)


_RECORDS: dict[type, ValueKind[Any]] = {}
_PLAIN: dict[object, ValueKind[Any]] = {str: TextKind(), float: Number(), int: Whole(), bool: Flag()}


def kind_of(hint: Any) -> ValueKind[Any]:
    """Kind of the values that an annotation allows."""
    inner = get_args(hint)
    if get_origin(hint) is Converted:
        return kind_of(inner[0])
    if get_origin(hint) is Literal:
        return TextKind(inner)
    if get_origin(hint) is tuple:
        if len(set(inner)) == 1 and inner[0] is float:
            return Numbers(len(inner))
        if inner[-1] is not Ellipsis:
            return RowKind(*map(kind_of, inner))
        return Numbers() if inner[0] is float else ListOf(kind_of(inner[0]))
    if get_origin(hint) in (UnionType, Union):
        classes = [each for each in inner if each is not NoneType]
        one = kind_of(classes[0]) if len(classes) == 1 else Either({each: kind_of(each) for each in classes})
        return OrNone(one) if NoneType in inner else one
    return _PLAIN[hint] if hint in _PLAIN else _RECORDS[hint]


class Either(ValueKind[object]):
    """A value of one of several classes: an object by its first field, the last class if it has none of these."""

    def __init__(self, kinds: Mapping[type, ValueKind[Any]]) -> None:
        self.kinds = kinds

    def write(self, value: object, to: Document) -> Json:
        return self.kinds[type(value)].write(value, to)

    def read(self, at: FilePlace) -> object:
        if str in self.kinds and not isinstance(at.value, dict):
            return self.kinds[str].read(at)
        records = [kind for kind in self.kinds.values() if isinstance(kind, RecordKind)]
        given = at.value if isinstance(at.value, dict) else ()
        return next((each for each in records if next(iter(each.fields)) in given), records[-1]).read(at)


class OneOf(ValueKind[object]):
    """An object of one of several classes, told apart by its field ``type``."""

    def __init__(self, variants: Mapping[str, RecordKind]) -> None:
        self.records = dict(variants)
        self.tags = {record.make: tag for tag, record in variants.items()}

    def write(self, value: object, to: Document) -> Json:
        tag = self.tags[type(value)]
        return {"type": tag, **self.records[tag].write(value, to)}

    def read(self, at: FilePlace) -> object:
        record = _of_type(at, self.records)
        return record.made(at, record.values(at, ("type",)))


def _of_type(at: FilePlace, records: Mapping[str, RecordKind]) -> RecordKind:
    """The record that the field ``type`` of an object names."""
    if not isinstance(at.value, dict) or "type" not in at.value:
        at.fail("the field 'type' is missing", allowed=", ".join(records))
    return records[TextKind(tuple(records)).read(at.inside("type"))]


class Tagged(ValueKind[dict[str, Any]]):
    """An object with fields that all have, and others as its field ``type`` says: a dict with the one, and the other.

    Args:
        common: the fields that all have.
        key: under which the other stands in the dict.
        variants: type -> (class, record).
        unstored: says why an object of another class cannot be written.
    """

    def __init__(
        self,
        common: RecordKind,
        key: str,
        variants: Mapping[str, tuple[type, RecordKind]],
        unstored: Callable[[dict[str, Any]], str | None],
    ) -> None:
        self.common, self.key, self.unstored = common, key, unstored
        self._tags = {kind: tag for tag, (kind, _) in variants.items()}
        self._records = {tag: record for tag, (_, record) in variants.items()}

    def tagged(self, own: object) -> tuple[str, object]:
        """The type of an object that can be written, and what has the fields."""
        return self._tags[type(own)], own

    def records(self) -> Mapping[str, RecordKind]:
        """The fields that each type has."""
        return self._records

    def write(self, value: dict[str, Any], to: Document) -> Json:
        reason = self.unstored(value)
        if reason is not None:
            to.refused.append(reason)
            return None
        tag, own = self.tagged(value[self.key])
        return {"type": tag, **self.common.write(value, to), **self.records()[tag].write(own, to)}

    def read(self, at: FilePlace) -> dict[str, Any]:
        variant = _of_type(at, self.records())
        own = variant.values(at, ("type", *self.common.fields))
        values = self.common.values(at, ("type", *variant.fields))
        return {**values, self.key: variant.made(at, own)}
