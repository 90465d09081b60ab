"""Which equations count and which freedoms they leave, by rank tests on the rows of J_c."""

from __future__ import annotations

import numpy as np

from linkwise.array_types import Array
from linkwise.model.null_space import RANK


def _unit_rows(J_c: Array) -> Array:
    """Rows of length one, so that no equation counts less for its units; those without effect stay zero."""
    size = np.linalg.norm(J_c, axis=1, keepdims=True)
    return J_c / np.where(size > 1e-12, size, np.inf)


def independent_rows(J_c: Array) -> set[int]:
    """Rows that do not follow from those before them; as many as the rank."""
    from scipy.linalg import qr

    rows = _unit_rows(J_c)
    rank = int((np.linalg.svd(rows, compute_uv=False) > RANK * max(1, len(rows))).sum()) if rows.size else 0
    found: list[Array] = []
    kept: set[int] = set()
    for k, row in enumerate(rows):
        rest = row.copy()
        for _ in range(2):  # once more, for what rounding left
            for known in found:
                rest -= known * (known @ rest)
        if np.linalg.norm(rest) > 1e-7 and len(kept) < rank:
            found.append(rest / np.linalg.norm(rest))
            kept.add(k)
    if len(kept) < rank:  # rows that are nearly dependent on those before: the most independent ones instead
        kept = set(qr(rows.T, mode="r", pivoting=True)[1][:rank].tolist())
    return kept


def basis_of(J_c: Array) -> tuple[Array, list[int]]:
    """N with J_cN = 0 and identity rows at the freedoms that are chosen as independent, and which these are."""
    from scipy.linalg import qr

    n = J_c.shape[1]
    rows = _unit_rows(J_c)
    if not rows.size:
        return np.eye(n), list(range(n))
    _, s, V = np.linalg.svd(rows)
    null = V[int((s > RANK * max(1, len(rows))).sum()) :].T
    if not null.shape[1]:
        return null, []
    # Of freedoms that would do equally well, the one nearer to the base.
    preference = np.linspace(1.0, 0.7, n)
    chosen = sorted(qr(null.T * preference, mode="r", pivoting=True)[1][: null.shape[1]].tolist())
    basis = null @ np.linalg.inv(null[chosen])
    basis[chosen] = np.eye(len(chosen))
    return basis, chosen
