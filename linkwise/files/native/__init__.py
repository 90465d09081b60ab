"""The native file of a model, ``.lw.json``: everything that a model has, read and written exactly.

================  ==================================================================================
``text``          JSON to plain values and back; where in the text a value stands
``kinds``         numbers, names, poses, lists, records: how each is written, and checked when it is read
``schema``        what a file holds, as records of these kinds
``arrays``        large arrays, in an archive beside the file
``model``         a mechanism to such a record and back
``files``         the two files on disk
================  ==================================================================================

A kind says both how a value is written and how it is read, so that the two cannot part.
"""

from linkwise.files.native.disk_files import SUFFIX, read_native, save

__all__ = ["SUFFIX", "read_native", "save"]
