"""A planar arm of three flexible links that falls, against Exudyn's cables in absolute nodal coordinates."""

import warnings

import numpy as np
import pytest

from bench.flexible import exudyn_fall, our_fall, planar_arm


def test_fall_of_a_flexible_arm():
    """The payload's place after a fall of 3 m: modal links and nodal ones end within 1e-5 of that length."""
    pytest.importorskip("exudyn")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # names that Exudyn will change
        theirs, _ = exudyn_fall(4, 4000)
    ours, _ = our_fall(planar_arm(3, 1), method="dop853", rtol=1e-7)
    np.testing.assert_allclose(ours, theirs, atol=3e-5)
