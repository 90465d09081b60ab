"""Which links feel what closures ask for: those that carry one of its ends, and all between these and the base.

Written-out sweeps leave the others out; sweeps as loops take every column through every link.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from linkwise.mechanism.closures.instances import ClosureInstance

if TYPE_CHECKING:
    from linkwise.mechanism.mechanism import Mechanism

_LINK, _COLUMN = 400, 70
"""Operations of forward dynamics, of a link without closures and for each equation more; a pair of these adds one."""


def equations_felt(mechanism: Mechanism) -> NDArray[np.int64]:
    """For each body, how many equations of closures it feels."""
    felt = np.zeros(len(mechanism.bodies), np.int64)
    for closure in mechanism.closures:
        if isinstance(closure, ClosureInstance):
            ends = [closure.body_a, closure.body_b]
        else:
            ends = list(range(len(mechanism.bodies)) if closure.joints is None else closure.joints)
        reached: set[int] = set()
        for body in ends:
            while body >= 0 and body not in reached:
                reached.add(body)
                body = mechanism.parents[body]  # on the way to the base
        felt[list(reached)] += len(closure.equations)
    return felt


def share_of_work(mechanism: Mechanism) -> float:
    """Of what loops compute, the part that is not zero for certain; 1 without closures."""
    felt = equations_felt(mechanism)
    most = sum(len(closure.equations) for closure in mechanism.closures)

    def work(columns: NDArray[np.int64]) -> int:
        return int((_LINK + _COLUMN * columns + columns**2).sum())

    return work(felt) / max(1, work(np.full_like(felt, most)))
