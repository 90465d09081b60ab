"""Results that stay in this process, and what they share with those on disk."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.ensemble.blocks import Block, Template
from linkwise.ensemble.outcomes import STATUS

Array = NDArray[Any]

FORMAT = "linkwise ensemble 1"


class Blocks:
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


class Memory(Blocks):
    """Results in memory: a store that is gone with the process."""

    def __init__(
        self, manifest: Mapping[str, Any], inputs: Mapping[str, int], template: Template, folder: None = None
    ) -> None:
        self.folder = folder
        self.members, self.size = int(manifest["members"]), int(manifest["batch"])
        roles = dict.fromkeys(inputs, "input") | dict.fromkeys(template.rows, "outcome") | {"status": "status"}
        self.manifest = {"format": FORMAT, **manifest, "arrays": roles | dict.fromkeys(template.moments, "moment")}
        self._arrays: dict[str, Array] = {name: np.empty((self.members, width)) for name, width in inputs.items()}
        self._arrays |= {name: template.empty(name, self.members) for name in template.rows}
        self._arrays["status"] = np.zeros(self.members, np.int8)
        for name, (shape, dtype) in template.moments.items():
            self._arrays[name] = np.empty((self.blocks, *shape), dtype)
        self._records: dict[int, dict[str, Any]] = {}

    def finished(self) -> list[int]:
        """Blocks that are done, in order."""
        return sorted(self._records)

    def record(self, number: int) -> dict[str, Any]:
        """See :meth:`linkwise.ensemble.store.Store.record`."""
        return self._records[number]

    def write(self, block: Block, inputs: Mapping[str, Array]) -> None:
        """Put a block there."""
        for name, values in {**inputs, **block.rows, "status": block.status}.items():
            self._arrays[name][block.start : block.stop] = values
        for name, value in block.moments.items():
            self._arrays[name][block.number] = value
        self._records[block.number] = {
            "number": block.number,
            "seconds": block.seconds,
            "machine": block.machine,
            "counts": np.bincount(block.status, minlength=len(STATUS)).tolist(),
            "reasons": {str(member): why for member, why in block.reasons.items()},
        }

    def read_block(self, name: str, number: int) -> Array:
        """See :meth:`linkwise.ensemble.store.Store.read_block`."""
        start, stop = self.bounds(number)
        array = self._arrays[name]
        return np.asarray(array[number] if self.manifest["arrays"][name] == "moment" else array[start:stop])

    def damaged(self) -> dict[int, str]:
        """None ever."""
        return {}
