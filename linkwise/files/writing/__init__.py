"""Models to files of other formats, with a list of what these cannot say.

================  ===========================================================
``urdf``          URDF, with a side file for loops
``mjcf``          MJCF
``output``        numbers, poses and elements as text
================  ===========================================================
"""
