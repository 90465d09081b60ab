"""Guard pages do guard, at every shift, on both sides."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from campaign.guarded import Guarded, available
from campaign.shrink import outcome

pytestmark = pytest.mark.skipif(not available(), reason="needs memory protection")


@pytest.mark.parametrize(("side", "step"), [("start", -1), ("end", 1)])
@pytest.mark.parametrize("write", [False, True])
def test_one_byte_beyond_is_the_end(side: str, step: int, write: bool) -> None:
    guarded = Guarded((5, 3), float, side)
    address = guarded.array.ctypes.data + (guarded.array.nbytes if step > 0 else -1)
    byte = ctypes.c_char.from_address(address)

    def touch(_: object) -> None:
        if write:
            byte.value = b"x"
        else:
            print(byte.value)

    assert outcome(touch, None) == "SIGSEGV"


@pytest.mark.parametrize("side", ["start", "end"])
@pytest.mark.parametrize("shift", [0, 1, 7, 8, 63])
def test_what_lies_beside_is_looked_at(side: str, shift: int) -> None:
    guarded = Guarded((4,), np.float32, side, shift)
    guarded.array[...] = 1.0
    assert guarded.intact()
    assert guarded.array.ctypes.data % 4 == (shift if side == "start" else -shift) % 4
    inner = guarded.array.ctypes.data + (guarded.array.nbytes if side == "start" else -1)
    ctypes.c_char.from_address(inner).value = b"x"
    assert not guarded.intact()


def test_a_closed_array_is_nobodys() -> None:
    guarded = Guarded((2,), float)
    guarded.array[...] = 3.0
    guarded.close()
    assert outcome(lambda _: guarded.array.sum(), None) == "SIGSEGV"
    guarded.open()
    assert guarded.array.sum() == 6.0
