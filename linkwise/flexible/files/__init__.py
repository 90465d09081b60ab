"""Readers of finite-element matrices: Nastran's OP4 and DMIG, Abaqus's .mtx, NumPy's .npz.

Files are not trusted: sizes are bounded, nothing in them is executed, and errors name the file and the line.
"""
