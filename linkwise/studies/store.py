"""Store of results: a folder that survives whatever happens to those who write into it.

::

    study/
        manifest.json           what made this; written before any block
        data.zarr/              inputs and outcomes, a chunk for each block; opens with xarray as it is
        records/00000042.json   one for each finished block; written last

A block counts once its record is there. The record holds a checksum of every chunk, so that what was damaged, cut short
or exchanged afterwards is found when it is read, and is never taken for a result. Files are written beside their place
and renamed, so none is ever half there.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from linkwise.array_types import Array
from linkwise.errors import InputError, LinkwiseError, require_extra
from linkwise.studies.fingerprint import digest
from linkwise.studies.member_blocks import MemberBlock, Template
from linkwise.studies.outcomes import STATUS

FORMAT = "linkwise ensemble 1"
_Arrays = dict[str, tuple[tuple[int, ...], np.dtype[Any], str]]


class BlockStore:
    """Base of all stores: members in blocks of equal size, and arrays with roles."""

    manifest: dict[str, Any]
    members: int
    size: int

    @property
    def blocks(self) -> int:
        """Number of blocks of the study."""
        return -(-self.members // self.size)

    def bounds(self, number: int) -> tuple[int, int]:
        """The members of a block: the first, and the one after the last."""
        return number * self.size, min(self.members, (number + 1) * self.size)

    def names(self, role: str) -> list[str]:
        """Arrays with a role: "input", "outcome", "moment"."""
        return [name for name, its in self.manifest["arrays"].items() if its == role]


class MemoryStore(BlockStore):
    """Results in memory: a store that is gone with the process."""

    folder: None = None

    def __init__(self, manifest: Mapping[str, Any], inputs: Mapping[str, int], template: Template) -> None:
        self.members, self.size = int(manifest["members"]), int(manifest["batch"])
        self.manifest, arrays = _laid_out(manifest, inputs, template)
        self._arrays = {
            name: np.full((self.blocks if role == "moment" else self.members, *shape), _nothing(dtype), dtype)
            for name, (shape, dtype, role) in arrays.items()
        }
        self._records: dict[int, dict[str, Any]] = {}

    def finished(self) -> list[int]:
        """Blocks that are done, in order."""
        return sorted(self._records)

    def record(self, number: int) -> dict[str, Any]:
        """See :meth:`linkwise.studies.store.Store.record`."""
        return self._records[number]

    def write(self, block: MemberBlock, inputs: Mapping[str, Array]) -> None:
        """Put a block there."""
        for name, values in {**inputs, **block.rows, "status": block.status}.items():
            self._arrays[name][block.start : block.stop] = values
        for name, value in block.moments.items():
            self._arrays[name][block.number] = value
        self._records[block.number] = _record(block)

    def read_block(self, name: str, number: int) -> Array:
        """See :meth:`linkwise.studies.store.Store.read_block`."""
        start, stop = self.bounds(number)
        array = self._arrays[name]
        return np.asarray(array[number] if self.manifest["arrays"][name] == "moment" else array[start:stop])

    def damaged(self) -> dict[int, str]:
        """None ever."""
        return {}


_MANIFEST, _DATA, _RECORDS = "manifest.json", "data.zarr", "records"
_UNFINISHED = ".new-"


class StoreError(LinkwiseError):
    """A store cannot be written, or what is in it cannot be trusted.

    Args:
        what: what is wrong, in one line.
        blocks: the blocks that are concerned.
        got: what was found instead.
        allowed: what would have been right.
        do: what the reader can do about it.
    """

    def __init__(
        self, what: str, *, blocks: tuple[int, ...] = (), got: object = None, allowed: object = None, do: object = None
    ) -> None:
        super().__init__(what, got=got, allowed=allowed, do=do)
        self.blocks = blocks


class Store(BlockStore):
    """A folder with the results of a study.

    Args:
        folder: its path; opened as it is. See :meth:`create`.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self.manifest = _read_manifest(self.folder)
        self.members, self.size = int(self.manifest["members"]), int(self.manifest["batch"])
        self._group = self._opened("r+" if os.access(self.folder, os.W_OK) else "r")
        self._arrays: dict[str, Any] = {}
        self._records: dict[int, dict[str, Any]] = {}

    @classmethod
    def create(
        cls,
        folder: str | os.PathLike[str],
        manifest: Mapping[str, Any],
        inputs: Mapping[str, int],
        template: Template,
    ) -> Store:
        """A new store, in a folder that does not exist, is empty, or holds one whose making was broken off."""
        zarr = require_extra("zarr", "ensemble")
        home = Path(folder)
        with _told("the store could not be made", home):
            home.mkdir(parents=True, exist_ok=True)
            _clear_half_made(home)
            if any(home.iterdir()):
                raise InputError(
                    "this folder is not empty, and nothing is overwritten",
                    got=str(home),
                    do="choose another, or resume (resume=True) if it holds this very study",
                )
            (home / _RECORDS).mkdir()
            members, size = int(manifest["members"]), int(manifest["batch"])
            group = zarr.create_group(
                home / _DATA, zarr_format=3, attributes={"title": FORMAT, "study": manifest["study"]}
            )
            content, arrays = _laid_out(manifest, inputs, template)
            for name, (shape, dtype, role) in arrays.items():
                if role == "moment":
                    _array(group, name, (-(-members // size), *shape), (1, *shape), dtype, "block", role)
                else:
                    _array(group, name, (members, *shape), (size, *shape), dtype, "member", role)
            _write(home / _MANIFEST, json.dumps(_sealed(content), indent=1).encode())
        return cls(home)

    def _opened(self, mode: str) -> Any:
        zarr = require_extra("zarr", "ensemble")
        try:
            # Format 2 can ask for codecs that unpickle; ours has none of these.
            return zarr.open_group(self.folder / _DATA, mode=mode, zarr_format=3)
        except Exception as error:  # a damaged file shows itself in many ways
            raise StoreError("the store's data cannot be opened", got=f"{self.folder / _DATA}: {error}") from error

    # What there is.
    def finished(self) -> list[int]:
        """Blocks that have a record, in order."""
        found = []
        for path in (self.folder / _RECORDS).iterdir():
            if path.suffix == ".json" and path.stem.isdigit():
                found.append(int(path.stem))
        return sorted(found)

    def record(self, number: int) -> dict[str, Any]:
        """Record of a block that is finished: checksums, machine, seconds, members without a result."""
        if number not in self._records:
            self._records[number] = self._read_record(number)
        return self._records[number]

    def _read_record(self, number: int) -> dict[str, Any]:
        path = self._record_path(number)
        try:
            lines = path.read_bytes().split(b"\n")
            record: dict[str, Any] = json.loads(lines[0])
            if len(lines) != 2 or digest(lines[0]).encode() != lines[1] or record["number"] != number:
                raise ValueError("its checksum is wrong")
        except FileNotFoundError:
            raise StoreError(f"block {number} has not been run", blocks=(number,), do="resume the study") from None
        except (ValueError, KeyError, TypeError) as error:
            raise StoreError(
                f"the record of block {number} is damaged",
                blocks=(number,),
                got=f"{path}: {error}",
                do="resume the study: the block is run again",
            ) from None
        return record

    def _record_path(self, number: int) -> Path:
        return self.folder / _RECORDS / f"{number:08d}.json"

    # Writing.
    def write(self, block: MemberBlock, inputs: Mapping[str, Array]) -> None:
        """Put a block there, its record last."""
        parts = {**inputs, **block.rows, "status": block.status}

        def do() -> str:
            return f"free space and resume: {len(self.finished())} of {self.blocks} blocks are safe"

        with _told(f"block {block.number} could not be written", self.folder, do):
            for name, values in parts.items():
                self._zarr(name)[block.start : block.stop] = values
            for name, value in block.moments.items():
                self._zarr(name)[block.number] = value
            checksums = {name: checksum(values) for name, values in {**parts, **block.moments}.items()}
            line = json.dumps(_record(block) | {"checksums": checksums}, sort_keys=True).encode()
            _write(self._record_path(block.number), line + b"\n" + digest(line).encode())

    def _zarr(self, name: str) -> Any:
        if name not in self._arrays:
            try:
                self._arrays[name] = self._group[name]
            except Exception as error:
                raise StoreError(
                    f"the array {name!r} is missing from the store", got=f"{type(error).__name__}"
                ) from None
        return self._arrays[name]

    # Reading.
    def read_block(self, name: str, number: int) -> Array:
        """One array's part of a finished block, checked: rows of its members, or its moments."""
        record = self.record(number)
        start, stop = self.bounds(number)
        place = number if self.manifest["arrays"].get(name) == "moment" else slice(start, stop)
        try:
            values = np.asarray(self._zarr(name)[place])
        except StoreError:
            raise
        except Exception as error:  # zarr's own checks, decompression, a file that is gone
            raise self._damaged(name, number, f"{type(error).__name__}: {error}") from error
        if checksum(values) != record["checksums"].get(name):
            raise self._damaged(name, number, "its checksum is wrong")
        return values

    def _damaged(self, name: str, number: int, got: str) -> StoreError:
        start, stop = self.bounds(number)
        return StoreError(
            f"{name!r} of block {number} (members {start} … {stop - 1}) is damaged, and is not read",
            blocks=(number,),
            got=got,
            do="resume the study: damaged blocks are run again",
        )

    def damaged(self) -> dict[int, str]:
        """Blocks that have a record and cannot be trusted, with the reason; reads everything."""
        found = {}
        for number in self.finished():
            try:
                for name in self.record(number)["checksums"]:
                    self.read_block(name, number)
            except StoreError as error:
                found[number] = str(error)
        return found

    def tidy(self) -> None:
        """Take away what a writer that was killed left half done."""
        for path in (self.folder / _RECORDS).glob(f"{_UNFINISHED}*"):
            path.unlink(missing_ok=True)

    def discard(self, number: int) -> None:
        """Take a block's record away, so that it is run again."""
        self._records.pop(number, None)
        self._record_path(number).unlink(missing_ok=True)


AnyStore = Store | MemoryStore


def _laid_out(
    manifest: Mapping[str, Any], inputs: Mapping[str, int], template: Template
) -> tuple[dict[str, Any], _Arrays]:
    """The whole manifest, and of every array the shape of a member's row or of a block's moments, type and role."""
    arrays: _Arrays = {name: ((width,), np.dtype(float), "input") for name, width in inputs.items()}
    arrays |= {name: (shape, np.dtype(dtype), "outcome") for name, (shape, dtype) in template.rows.items()}
    arrays["status"] = ((), np.dtype(np.int8), "status")
    arrays |= {name: (shape, np.dtype(dtype), "moment") for name, (shape, dtype) in template.moments.items()}
    return {"format": FORMAT, **manifest, "arrays": {name: role for name, (_, _, role) in arrays.items()}}, arrays


def _record(block: MemberBlock) -> dict[str, Any]:
    return {
        "number": block.number,
        "start": block.start,
        "stop": block.stop,
        "seconds": round(block.seconds, 6),
        "machine": block.machine,
        "counts": np.bincount(block.status, minlength=len(STATUS)).tolist(),
        "reasons": {str(member): why for member, why in block.reasons.items()},
    }


def _nothing(dtype: np.dtype[Any]) -> float | bool:
    """Value of a number that is not there."""
    return np.nan if dtype.kind == "f" else False if dtype.kind == "b" else 0


def checksum(values: Array) -> str:
    """Checksum of an array's type, shape and numbers, bit for bit."""
    array = np.ascontiguousarray(values)
    return digest(f"{array.dtype.str} {array.shape}".encode(), array.tobytes())


def _array(
    group: Any, name: str, shape: tuple[int, ...], chunks: tuple[int, ...], dtype: np.dtype[Any], axis: str, role: str
) -> None:
    axes = (axis, *(f"{name}_{k}" for k in range(len(shape) - 1)))
    chunks = tuple(max(1, n) for n in chunks)
    # Numbers of a simulation hardly shrink, and compressing them takes longer than writing them.
    group.create_array(
        name, shape=shape, chunks=chunks, dtype=dtype, fill_value=_nothing(dtype), dimension_names=axes,
        compressors=None, attributes={"role": role},
    )  # fmt: skip


def _write(path: Path, content: bytes) -> None:
    """All or nothing, and on the disk when this returns."""
    handle, temporary = tempfile.mkstemp(prefix=_UNFINISHED, dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(temporary).unlink()
        raise


@contextlib.contextmanager
def _told(what: str, where: Path, do: Callable[[], str] | None = None) -> Iterator[None]:
    """An error of the system in our words."""
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        why = "the disk is full" if full else error.strerror or str(error)
        raise StoreError(f"{what}: {why}", got=f"{where}", do=do and do()) from error


def _clear_half_made(home: Path) -> None:
    """Take away what a store is made of before it has a manifest: no block can be in it."""
    found = {path.name for path in home.iterdir()}
    if _RECORDS in found and found <= {_RECORDS, _DATA} and not any((home / _RECORDS).iterdir()):
        (home / _RECORDS).rmdir()
        shutil.rmtree(home / _DATA, ignore_errors=True)


def _sealed(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Manifest with a checksum of all the rest."""
    content = {key: value for key, value in manifest.items() if key != "checksum"}
    return {**content, "checksum": digest(json.dumps(content, sort_keys=True).encode())}


def _read_manifest(home: Path) -> dict[str, Any]:
    path = home / _MANIFEST
    try:
        manifest: dict[str, Any] = json.loads(path.read_bytes())
        if _sealed(manifest) != manifest:
            raise ValueError("its checksum is wrong")
        known = manifest["format"] == FORMAT and int(manifest["members"]) > 0 and int(manifest["batch"]) > 0
        if not known or not isinstance(manifest["arrays"], dict):
            raise ValueError(f"its format is {manifest['format']!r}, not {FORMAT!r}")
    except FileNotFoundError:
        raise InputError("this is not the store of an ensemble", got=f"{home} has no {_MANIFEST}") from None
    except (ValueError, KeyError, TypeError) as error:
        raise StoreError("the store's manifest cannot be read", got=f"{path}: {error}") from None
    return manifest
