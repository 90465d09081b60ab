"""Object files kept on disk from one process to the next.

A file that is loaded is code that runs, so the folder must be the user's own and writable by nobody
else; otherwise it is ignored. Each file is checked against its own checksum before use, and one that is
damaged, cut short or of another format counts as absent: the object is simply made again.

``LINKWISE_CACHE_DIR`` moves the folder, ``LINKWISE_CACHE=0`` does without.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from collections.abc import Callable
from pathlib import Path

LIMIT_BYTES = 512 * 1024 * 1024
_LOOKS = 64  # while as much is stored as there may be
_MAGIC = b"linkwise object 1\n"
_SUFFIX = ".lwo"


def folder() -> Path | None:
    """Folder of the objects, made if need be; None when caching is off or the folder cannot be trusted."""
    if os.environ.get("LINKWISE_CACHE", "1").lower() in ("0", "off", "no", "false"):
        return None
    chosen = os.environ.get("LINKWISE_CACHE_DIR")
    if chosen:
        path = Path(chosen)
    else:
        import platformdirs

        path = Path(platformdirs.user_cache_dir("linkwise", appauthor=False)) / "objects"
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        return path if _is_private(path) else None
    except OSError:
        return None


def _is_private(path: Path) -> bool:
    """A real folder of this user that nobody else may write to."""
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode):
        return False
    if hasattr(os, "getuid"):
        return found.st_uid == os.getuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return True


def load(key: str) -> bytes | None:
    """The object kept under a key, or None."""
    home = folder()
    if home is None:
        return None
    path = home / (_digest(key) + _SUFFIX)
    try:
        data = path.read_bytes()
    except OSError:
        return None
    payload = _unpack(data, key)
    with contextlib.suppress(OSError):
        if payload is None:
            path.unlink()
        else:
            os.utime(path)  # used now: the last to be evicted
    return payload


def store(key: str, payload: bytes) -> None:
    """Keep an object. Failing to (a full disk, a read-only home) is not an error."""
    import tempfile  # with four others, to pack files

    home = folder()
    if home is None:
        return
    name = _digest(key) + _SUFFIX
    with contextlib.suppress(OSError):
        handle, temporary = tempfile.mkstemp(prefix="new-", dir=home)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(_pack(payload, key))
            # Readers see the old file or the new one, never a half; of two writers the last wins with the same content.
            Path(temporary).replace(home / name)
        except OSError:
            Path(temporary).unlink()
            raise
        if _is_time_to_look(name, len(payload)):
            _evict(home)


def get(key: str, make: Callable[[], bytes]) -> bytes:
    """The object under a key, made and kept if it is not there."""
    payload = load(key)
    if payload is None:
        payload = make()
        store(key, payload)
    return payload


def _digest(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


def _pack(payload: bytes, key: str) -> bytes:
    # The key goes under the checksum too, so that a file renamed to another key does not pass.
    return _MAGIC + hashlib.sha256(key.encode() + b"\0" + payload).digest() + payload


def _unpack(data: bytes, key: str) -> bytes | None:
    start = len(_MAGIC) + 32
    payload = data[start:]
    if not data.startswith(_MAGIC) or not payload:
        return None
    return payload if hashlib.sha256(key.encode() + b"\0" + payload).digest() == data[len(_MAGIC) : start] else None


def _is_time_to_look(name: str, size: int) -> bool:
    """Whether the folder is gone through after this file: once for each part of the limit that is stored, on average.

    Going through thousands of files takes longer than many a compilation. Names are digests, as good as dice.
    """
    return int(name[:8], 16) * LIMIT_BYTES < size * _LOOKS * 2**32


def _evict(home: Path) -> None:
    """Drop the longest unused files above the limit, and leftovers of writers that died."""
    found: list[tuple[float, int, Path]] = []
    for path in home.iterdir():
        with contextlib.suppress(OSError):  # another process may have been faster
            state = path.stat()
            if path.suffix == _SUFFIX or path.name.startswith("new-"):
                found.append((state.st_mtime, state.st_size, path))
    total = sum(size for _, size, _ in found)
    for _, size, path in sorted(found):
        if total <= LIMIT_BYTES:
            break
        with contextlib.suppress(OSError):
            path.unlink()
            total -= size
