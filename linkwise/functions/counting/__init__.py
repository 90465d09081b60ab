"""Operation counts of algorithms, beside what the papers print: :func:`count` for one of them on a chain."""

from linkwise.functions.counting.dynamics import count

__all__ = ["count"]
