"""SDF to a description. The format: http://sdformat.org/spec, versions 1.4 to 1.12.

==============  ========================================================================================
``poses``       the text of a pose to a matrix
``places``      named frames: whose pose is relative to whose, which link carries which
``includes``    the files that a file includes; never one outside the folders that were given
``scopes``      models within models to scopes of names
``links``       masses and shapes
``joints``      joint types, axes, limits, springs
``gears``       gearboxes to couplings of joints
``read``        a root element to a description
==============  ========================================================================================
"""

from linkwise.files.sdf.read import read_sdf
from linkwise.files.sdf.scopes import Library

__all__ = ["Library", "read_sdf"]
