"""Models in files: the native form, and those that other programs read."""

from __future__ import annotations

import os

from linkwise.mechanism.mechanism import Mechanism


class Files(Mechanism):
    """Methods that write files. What they lie in is imported where it is used: most models are never written."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything that the model has to a native file, which :func:`linkwise.load` reads again, bit by bit.

        Large arrays (those of flexible bodies) go into an archive beside it, ``name.lw.npz``. What is a program cannot
        be stored and is refused with its name: joints and closures that hold functions.

        >>> import linkwise as lw
        >>> from linkwise.samples import stanford_arm
        >>> stanford_arm().save("arm.lw.json")
        >>> lw.load("arm.lw.json") == stanford_arm()
        True

        Args:
            path: a name that ends in ``.lw.json``.
        """
        from linkwise.files.native import save

        save(self, path)

    def to_urdf(self, path: str | os.PathLike[str]) -> list[str]:
        """Write a URDF file, and return what it cannot say.

        Joints of several freedoms become joints of one in series; loops go into a side file, ``name.loops.yaml``, for
        ``load(..., loops=...)``. Joints for which it has no words (:meth:`linkwise.Joint.series`) are fixed at zero.
        Flexible bodies are refused.
        """
        from linkwise.files.writing.urdf import write_urdf

        return write_urdf(self, path)

    def to_mjcf(self, path: str | os.PathLike[str]) -> list[str]:
        """Write an MJCF file for MuJoCo, and return what it cannot say.

        Closures and joints that follow others become equality constraints, which MuJoCo meets softly. Joints for which
        it has no words (:meth:`linkwise.Joint.series`) are fixed at zero. Flexible bodies are refused.
        """
        from linkwise.files.writing.mjcf import write_mjcf

        return write_mjcf(self, path)
