"""Machine and versions that made a result."""

from __future__ import annotations

import functools
import platform
from importlib import metadata
from typing import Any


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
    from linkwise.ensemble.fingerprint import code_fingerprint

    found = {"linkwise": __version__, "linkwise code": code_fingerprint(), "python": platform.python_version()}
    for package in ("numpy", "scipy", "llvmlite"):
        found[package] = metadata.version(package)
    return found
