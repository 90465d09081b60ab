"""Models in files: the native form, and those that other programs read."""

from __future__ import annotations

import os
from pathlib import Path

from linkwise.mechanism.mechanism import Mechanism


class Files(Mechanism):
    """Methods that write files. What they lie in is imported where it is used: most models are never written."""

    def save(self, path: str | os.PathLike[str]) -> list[str]:
        """Write the model to a file, and return what that cannot say: for a native file, nothing.

        A native file, ``name.lw.json``, has everything; :func:`linkwise.load` reads it again, bit by bit. Large arrays
        (those of flexible bodies) go into an archive beside it, ``name.lw.npz``. What is a program cannot be stored and
        is refused with its name: joints and closures that hold functions.

        In a URDF file joints of several freedoms become joints of one in series; loops go into a side file,
        ``name.loops.yaml``, for ``load(..., loops=...)``. In an MJCF file, for MuJoCo, closures and joints that follow
        others become equality constraints, which MuJoCo meets softly. In both, joints for which the format has no words
        (:meth:`linkwise.Joint.series`) are fixed at zero, and flexible bodies are refused.

        >>> import linkwise as lw
        >>> from linkwise.samples import stanford_arm
        >>> stanford_arm().save("arm.lw.json")
        []
        >>> lw.load("arm.lw.json") == stanford_arm()
        True

        Args:
            path: a name that ends in ``.lw.json``, ``.urdf``, or (MJCF) ``.xml`` or ``.mjcf``.
        """
        suffix = Path(path).suffix.lower()
        if suffix == ".urdf":
            from linkwise.files.writing.urdf import write_urdf

            return write_urdf(self, path)
        if suffix in (".xml", ".mjcf"):
            from linkwise.files.writing.mjcf import write_mjcf

            return write_mjcf(self, path)
        from linkwise.files.native import save

        save(self, path)
        return []
