"""Fingerprints of values, the same in every process; and the machine and versions that made a result."""

from __future__ import annotations

import dataclasses
import enum
import functools
import hashlib
import inspect
import platform
import types
from collections.abc import Iterable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from linkwise.memoized import Memory, once

_SIZE = 16  # bytes


def digest(*parts: bytes) -> str:
    """A checksum of bytes, as text."""
    hashed = hashlib.blake2b(digest_size=_SIZE)
    for part in parts:
        hashed.update(part)
    return hashed.hexdigest()


def fingerprint(value: object) -> str:
    """A hash of a value's content: numbers, text, arrays, dataclasses, functions with what they close over, objects.

    Two values with one fingerprint do the same. Functions count by their compiled code, so that another version of
    Python may give them another one.
    """
    hashed = hashlib.blake2b(digest_size=_SIZE)
    for piece in _pieces(value, []):
        hashed.update(len(piece).to_bytes(8, "little") + piece)
    return hashed.hexdigest()


def model_fingerprint(model: Any) -> str:
    """The hash of a mechanism: everything that its motion depends on, wherever its file and its pictures are."""

    def made() -> str:
        bodies = tuple(dataclasses.replace(body, visuals=()) for body in model.bodies)
        return fingerprint(dataclasses.replace(model, bodies=bodies, base_visuals=()))

    return once(Memory.of(model).table("fingerprint"), "fingerprint", made)


@functools.cache
def code_fingerprint() -> str:
    """The hash of linkwise's own source, which says more than a version between two releases."""
    home = Path(__file__).parents[1]
    files = sorted(home.rglob("*.py"))
    return digest(*(part for file in files for part in (file.relative_to(home).as_posix().encode(), file.read_bytes())))


def _pieces(value: object, inside: list[int]) -> Iterable[bytes]:
    """The content in a fixed order; ``inside`` are the objects being described, which may contain themselves."""
    if id(value) in inside:
        yield f"again {len(inside) - inside.index(id(value))}".encode()
        return
    inside.append(id(value))
    try:
        yield type(value).__qualname__.encode()
        yield from _content(value, inside)
    finally:
        inside.pop()


def _content(value: object, inside: list[int]) -> Iterable[bytes]:
    if value is None or isinstance(value, (bool, int, str, bytes, complex)):
        yield value if isinstance(value, bytes) else repr(value).encode()
    elif isinstance(value, float):
        yield float(value).hex().encode()
    elif isinstance(value, (np.ndarray, np.generic)):
        array = np.asarray(value)
        yield f"{array.dtype.str} {array.shape}".encode()
        if array.dtype.hasobject:
            for item in array.reshape(-1):
                yield from _pieces(item, inside)
        else:
            yield np.ascontiguousarray(array).tobytes()
    elif isinstance(value, enum.Enum):
        yield value.name.encode()
    elif isinstance(value, slice):
        yield repr(value).encode()
    elif isinstance(value, Mapping):
        for key in sorted(value, key=repr):
            yield from _pieces(key, inside)
            yield from _pieces(value[key], inside)
    elif isinstance(value, (set, frozenset)):
        yield from sorted(fingerprint(item).encode() for item in value)
    elif isinstance(value, (list, tuple)):
        if value and all(type(item) is float for item in value):  # most of what a mechanism is made of
            yield b"floats" + np.array(value).tobytes()
            return
        for item in value:
            yield from _pieces(item, inside)
    else:
        yield from _of_object(value, inside)


def _of_object(value: Any, inside: list[int]) -> Iterable[bytes]:
    """Classes by name, functions by their code, dataclasses by their fields, all else by its attributes."""
    if isinstance(value, type):
        yield f"{value.__module__}.{value.__qualname__}".encode()
    elif isinstance(value, types.ModuleType):
        yield value.__name__.encode()
    elif isinstance(value, types.FunctionType):
        yield from _of_function(value, inside)
    elif isinstance(value, types.MethodType):
        yield from _pieces(value.__func__, inside)
        yield from _pieces(value.__self__, inside)
    elif isinstance(value, functools.partial):
        yield from _pieces((value.func, value.args, value.keywords), inside)
    elif isinstance(value, types.CodeType):
        yield value.co_code
        yield from _pieces((value.co_consts, value.co_names, value.co_varnames), inside)
    elif inspect.isbuiltin(value) or isinstance(value, np.ufunc):
        yield value.__name__.encode()
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield field.name.encode()
            yield from _pieces(getattr(value, field.name), inside)
    else:
        yield from _pieces(_attributes(value), inside)


def _of_function(function: types.FunctionType, inside: list[int]) -> Iterable[bytes]:
    yield from _pieces(function.__code__, inside)
    yield from _pieces((function.__defaults__, function.__kwdefaults__), inside)
    cells = [cell.cell_contents for cell in function.__closure__ or () if _is_filled(cell)]
    yield from _pieces(cells, inside)
    # Constants and functions of the same file that it names: what it does depends on them too.
    known = function.__globals__
    named = {name: known[name] for name in function.__code__.co_names if name in known}
    own = {name: each for name, each in named.items() if _is_plain(each, function.__module__)}
    yield from _pieces(own, inside)


def _is_filled(cell: types.CellType) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False


def _is_plain(value: object, module: str) -> bool:
    if isinstance(value, types.FunctionType):
        return value.__module__ == module
    return isinstance(value, (bool, int, float, complex, str, bytes, list, tuple, dict, np.ndarray, np.generic))


def _attributes(value: Any) -> Any:
    """Parts of an object: those that it would put into a pickle, if it says so, else its attributes."""
    if type(value).__module__.startswith("scipy."):
        return _of_scipy(value)
    state = getattr(value, "__getstate__", None)
    return state() if state is not None else vars(value)


def _of_scipy(value: Any) -> Any:
    """A distribution or a sequence: its name and its numbers, without the machinery that SciPy keeps with it."""
    if hasattr(value, "dist"):  # frozen
        return type(value.dist).__qualname__, value.dist.name, value.args, value.kwds
    kept = getattr(value, "_parameters", None)
    if kept is not None:  # the distributions of SciPy 1.15 and later
        return type(value).__qualname__, dict(kept)
    plain = {
        name: each
        for name, each in vars(value).items()
        if isinstance(each, (bool, int, float, str, tuple, np.ndarray, np.generic))
    }
    return type(value).__qualname__, plain


@functools.cache
def this_machine() -> str:
    """The processor that results depend on to the last bit, and the machine's name."""
    from linkwise.targets.llvm.binding import host

    found = host()
    return f"{found.cpu}, {found.vector_bytes * 8} bit vectors, {platform.system()}, {platform.node()}"


@functools.cache
def this_gpu() -> str:
    """The device's name."""
    from linkwise.errors import require_extra

    cupy = require_extra("cupy", "cuda")
    return str(cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)["name"].decode())


@functools.cache
def versions() -> dict[str, Any]:
    """Versions of linkwise, by number and by content, and of the packages that results depend on."""
    from linkwise import __version__
    from linkwise.studies.fingerprint import code_fingerprint

    found = {"linkwise": __version__, "linkwise code": code_fingerprint(), "python": platform.python_version()}
    for package in ("numpy", "scipy", "llvmlite"):
        found[package] = metadata.version(package)
    return found
