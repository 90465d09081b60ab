"""Random trials by the million: ``python -m campaign`` tries to make linkwise crash, hang or lie.

Every kind of trial is one file in ``campaign/trials``; every trial is reproducible from its kind, a seed and a number.
"""
