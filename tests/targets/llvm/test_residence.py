"""Belady's rule: no more registers than there are, few moves, and nothing stored that was in memory already."""

import random

import pytest

from linkwise.targets.llvm.residence import residence


def moves(steps):
    """Go through the steps as a machine would; how many values were stored, and how many loads they took."""
    found = residence(steps)
    held, memory, loads = set(), {v for reads, _, _ in steps for v in reads} - {made for _, made, _ in steps}, 0
    for place, (reads, made, registers) in enumerate(steps):
        loads += len(set(reads) - held)
        assert set(reads) <= held | memory
        held |= set(reads)
        if made is not None:
            held.add(made)
            memory |= {made} & set(found.stored)
        held -= set(found.leaving.get(place, ()))
        assert len(held & {v for later, _, _ in steps[place + 1 :] for v in later}) <= registers
    for value, last in found.stored.items():
        assert value in steps[last][0]
        assert not any(value in reads for reads, _, _ in steps[last + 1 :])
    return len(found.stored), loads


def test_nothing_moves_where_all_fits():
    steps = [((-1, -2), 0, 3), ((0, -1), 1, 3), ((1, 0, -2), 2, 3)]
    assert moves(steps) == (0, 2)


def test_the_value_that_is_read_last_goes_first_and_inputs_are_not_stored():
    steps = [((-1,), 0, 3), ((-2,), 1, 3), ((-2, 1), 2, 3), ((2, 0), 3, 3), ((3, -1), 4, 3)]
    assert moves(steps) == (0, 3)
    assert residence(steps).leaving[1] == [-1]


@pytest.mark.parametrize("registers", [1, 3, 8])
def test_programs_at_random(registers):
    rng = random.Random(registers)
    steps = [(tuple({rng.randrange(-5, k) for _ in range(3)}), k, registers) for k in range(1, 200)]
    stored, loads = moves([(tuple(v for v in reads if v), made, room) for reads, made, room in steps])
    assert stored < 200
    assert loads < 600
