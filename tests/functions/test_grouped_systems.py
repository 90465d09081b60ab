"""Dense systems in groups of rows: programs beside NumPy's solutions, and beside the texts that say what they do."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise import samples
from linkwise.spatial.grouped_systems import GroupedRows, grouped_products, grouped_solution, grouped_sweeps
from linkwise.spatial.scalar import Items, where
from linkwise.trace.grouped_programs import Tiles, products, solution
from linkwise.trace.verifier import verify

MODEL = samples.stanford_arm()

ROWS = GroupedRows(2, (5, 3), 3)
"""Five groups and three, of two rows each; tiles of three, two and three groups."""

WIDTHS, COUNT = (4, 5), ROWS.groups
"""Numbers of a row of each source: the first ones leave out a last one, which is zero."""

N = COUNT * ROWS.size
CUT = ROWS.sources[0] * ROWS.size
"""Rows of the first source."""
ROW_NUMBERS = CUT * WIDTHS[0] + (N - CUT) * WIDTHS[1]


def random_systems(states: int) -> dict[str, np.ndarray]:
    """Rows, the groups that states use (the first ones of both sources), and L of those that are active."""
    rng = np.random.default_rng(0)
    first, second = (rng.integers(0, most + 1, states)[:, None] for most in ROWS.sources)
    used = np.concatenate([np.arange(5) < first, np.arange(3) < second], axis=1).astype(float)
    active = used * (rng.random(used.shape) < 0.6)
    L = -rng.random((states, COUNT, 2, 2)) * active[..., None, None]
    s = rng.normal(size=(states, COUNT, 2)) * used[..., None]
    rows = rng.normal(size=(states, ROW_NUMBERS))
    return {"used": used, "active": active, "L": L.reshape(states, -1), "s": s.reshape(states, -1), "rows": rows}


def dense(given: dict[str, np.ndarray], k: int) -> tuple[np.ndarray, np.ndarray]:
    """W and L of one state as matrices, without rows that are not used."""
    rows = np.zeros((N, WIDTHS[1]))
    for part, own in zip((rows[:CUT, : WIDTHS[0]], rows[CUT:]), both(given["rows"][k]), strict=True):
        part[:] = np.reshape(own, part.shape)
    rows *= np.repeat(given["used"][k], 2)[:, None]
    L = np.zeros((N, N))
    for group, block in enumerate(given["L"][k].reshape(COUNT, 2, 2)):
        L[2 * group : 2 * group + 2, 2 * group : 2 * group + 2] = block
    return rows @ rows.T, L


def both(rows: list) -> list[list]:
    """Rows of each source."""
    cut = CUT * WIDTHS[0]
    return [rows[:cut], rows[cut:]]


def solved(used: list, active: list, L: list, s: list, rows: list) -> list:
    """x and W x."""
    own = both(rows)
    W = grouped_products(ROWS, used, own, own, WIDTHS)
    x, moved = grouped_solution(ROWS, used, active, L, s, W)
    return [*x, *(where(used[k // 2] > 0.0, y, 0.0) for k, y in enumerate(moved))]


SHAPES = {"used": (COUNT,), "active": (COUNT,), "L": (4 * COUNT,), "s": (N,), "rows": (ROW_NUMBERS,)}


def test_programs_are_well_formed() -> None:
    for program in (products(Tiles(*ROWS), WIDTHS, (40, 30), True), solution(Tiles(*ROWS))):
        verify(program)


@pytest.mark.parametrize("states", [1, 67])
def test_solutions_are_those_of_numpy(states: int) -> None:
    """Of states that use different groups, beside each other in lanes, and of one alone."""
    given = random_systems(states)
    function = lw.compile(lambda _, *parts: solved(*map(list, parts)), MODEL, inputs=SHAPES)
    found = function(*(given[name].reshape(states, -1) for name in SHAPES))
    for k in range(states):
        W, L = dense(given, k)
        x = np.linalg.solve(np.eye(N) - L @ W, given["s"][k])
        assert np.allclose(found[k][:N], x, atol=1e-11)
        assert np.allclose(found[k][N:], W @ x, atol=1e-10)


def test_texts_on_plain_numbers_say_the_same() -> None:
    given = random_systems(8)
    for k in range(8):
        found = solved(*(given[name][k].tolist() for name in SHAPES))
        W, L = dense(given, k)
        x = np.linalg.solve(np.eye(N) - L @ W, given["s"][k])
        assert np.allclose(found, [*x, *(W @ x)], atol=1e-11)


def test_sweeps_find_what_is_not_negative() -> None:
    """Projected Gauss-Seidel on x ≥ 0, W x + b ≥ 0, x·(W x + b) = 0, of groups whose rows are taken one by one."""
    given, rng = random_systems(19), np.random.default_rng(1)
    b = rng.normal(size=(19, N))

    def swept(used: list, rows: list, b: list) -> list:
        sources = both(rows)
        W = grouped_products(ROWS, used, sources, sources, WIDTHS)
        flags = Items(used, range(COUNT), 1)
        diagonal = Items(W, [ROWS.block(k, k) for k in range(COUNT)], 4)

        def step(v: list, x: list, flag: list, own: list) -> tuple[list, list]:
            now, found = list(v), []
            for j in range(2):
                y = x[j] - now[j] / where(flag[0] > 0.0, own[3 * j], 1.0)
                found.append(where((flag[0] > 0.0) & (y > 0.0), y, 0.0))
                now = [a + own[2 * i + j] * (found[j] - x[j]) for i, a in enumerate(now)]
            return found, [a - c for a, c in zip(found, x, strict=True)]

        columns = [
            [column._replace(starts=column.starts[part]) for column in (flags, diagonal)]
            for part in (slice(0, 5), slice(5, 8))
        ]
        return grouped_sweeps(ROWS, used, (b, [0.0] * N), W, columns, [step, step], 400)[1]

    function = lw.compile(
        lambda _, *parts: swept(*map(list, parts)),
        MODEL,
        inputs={"used": (COUNT,), "rows": (ROW_NUMBERS,), "b": (N,)},
    )
    few = given["used"] * (np.cumsum(given["used"], axis=1) <= 2.0)  # W of full rank, so that sweeps converge
    given["used"] = few
    found = function(few, given["rows"].reshape(19, -1), b)
    for k in range(19):
        W, _ = dense(given, k)
        used = np.repeat(few[k], 2) > 0.0
        w = (W @ found[k] + b[k])[used]
        assert found[k].min() >= 0.0 and np.all(found[k][~used] == 0.0)
        assert np.all(w > -1e-6) and np.abs(w * found[k][used]).max(initial=0.0) < 1e-6
