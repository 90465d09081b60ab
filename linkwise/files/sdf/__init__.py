"""SDF to a description. The format: http://sdformat.org/spec, versions 1.4 to 1.12.

==============  ========================================================================================
``places``      poses, and named frames: whose pose is relative to whose, which link carries which
``scopes``      models within models, and files that others include, to scopes of names
``links``       masses and shapes
``joints``      joint types, axes, limits, springs; gearboxes
``read``        a root element to a description
==============  ========================================================================================
"""

from linkwise.files.sdf.read import read_sdf
from linkwise.files.sdf.scopes import Includes

__all__ = ["Includes", "read_sdf"]
