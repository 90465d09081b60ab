"""Distances and contact points between shapes, one pair of shapes a file, over any scalar.

A shape is a :class:`~linkwise.mechanism.description.Geometry` with its placement in one common frame. Each pair is a
function of both that gives a fixed number of :class:`~linkwise.contact.geometry.points.ContactPoint`;
:mod:`linkwise.contact.geometry.pairs` is the table of them, :mod:`linkwise.contact.geometry.selection` says which
shapes of a mechanism meet.
"""
