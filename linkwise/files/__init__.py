"""Model files: from the text of a file, through a checked plain description, to a model.

========================  ===========================================================================
``files``                 the bytes of a file, or why they cannot be had
``xml``                   bytes to elements that know their line; nothing in a file can make it dangerous
``values``                attributes to numbers and poses, with the file and line in every complaint
``placement``             angles to rotations and poses
``description``           what every format is read into: links and joints as plain data
``urdf``, ``sdf``,        one reader per format
``mjcf``
``tree``                  is this a tree; the joints from the root outwards
``followers``             which joints follow which, and where the locked ones stand
``bodies``                the bodies to be built: the root held or freed, joints locked
``inertias``              can these masses exist
``build``                 the bodies to calls on a builder
``equipment``             actuators, sensors, springs and named configurations, likewise
``resources``             where the files are that a file names: meshes, included models
``xacro``                 files that are programs, to the elements they expand to
``xacro_texts``           their texts with all expressions replaced, ``xacro_expressions`` the values of these,
                          ``xacro_functions`` the functions that they may call
``load``                  the public functions
========================  ===========================================================================
"""

from linkwise.files.load import load, loads
from linkwise.files.resources import mesh_file

__all__ = ["load", "loads", "mesh_file"]
