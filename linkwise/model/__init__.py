"""The model as users hold it: the class :class:`~linkwise.model.model.Model`, and its functions in groups.

A group has names, arguments and documentation; which text answers is in :mod:`linkwise.algorithms.catalogue`.
"""
