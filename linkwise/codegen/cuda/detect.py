"""Arrays on a GPU, told from others without importing anything: every call asks."""

from __future__ import annotations

from typing import Any

_CUDA, _MANAGED = 2, 13  # DLPack's numbers for memory of CUDA devices


def on_device(array: Any) -> bool:
    """Whether an argument is an array on a CUDA device. Imports nothing."""
    kind = type(array)
    library = kind.__module__.partition(".")[0]
    if library in ("numpy", "builtins"):
        return False
    if library == "cupy":
        return True
    if library == "torch":
        return bool(getattr(array, "is_cuda", False))
    try:
        where = getattr(array, "__dlpack_device__", None)
        if where is not None:
            return int(where()[0]) in (_CUDA, _MANAGED)
    except Exception:  # traced arrays without a place, objects that refuse to say
        return False
    return hasattr(kind, "__cuda_array_interface__")
