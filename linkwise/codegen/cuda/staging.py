"""The lines of a kernel that bring rows into its tile and results out of it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from linkwise.codegen.cuda.layout import Place


def pointers(place: Place, qualifiers: str, is_input: bool) -> Iterator[str]:
    """Where this thread finds an array's numbers: in the tile, or in the array itself."""
    if place.staged:
        yield f"REAL *const {place.tile} = tile + LW_LANES * {place.offset};"
        yield f"{qualifiers}REAL *const {place.row} = {place.tile} + lane * {place.pitch};"
        return
    constant = "const " if is_input else ""
    own = {"one": "", "columns": " + here", "rows": f" + here * {place.size}"}[place.kind]
    yield f"{constant}REAL *const {place.row} = {place.name}{own};"


def element(place: Place, number: int) -> str:
    """One of this thread's numbers."""
    apart = place.kind == "columns" and not place.staged
    return f"{place.row}[{f'{number} * count' if apart else number}]"


def whole(places: Sequence[Place]) -> str:
    """Whether the tile is full and wide accesses are allowed, as an expression."""
    rows = [p.name for p in places if p.staged and p.kind == "rows"]
    return f"rows == LW_LANES && lw_aligned({', '.join(rows)})" if rows else "false"


def bring_in(places: Sequence[Place], condition: str, watched: Collection[str] = ()) -> Iterator[str]:
    """Fill the tile, by wide accesses if the condition holds. The size of the largest watched number is noted."""
    rows = [p for p in places if p.staged and p.kind == "rows"]

    def noting(place: Place, call: str) -> str:
        return f"largest = lw_larger(largest, {call});" if place.name in watched else f"{call};"

    if rows:
        yield f"if ({condition}) {{"
        for p in rows:
            yield f"    {_rows(p, p.name in watched)} {p.name}_in;"
        for p in rows:
            yield f"    {p.name}_in.fetch({p.tile}, {p.name} + first * {p.size});"
        yield "    lw_arrive();"
        for p in rows:
            yield f"    {noting(p, f'{p.name}_in.put({p.tile})')}"
        yield "} else {"
        for p in rows:
            some = f"{_rows(p, p.name in watched)}::some({p.tile}, {p.name} + first * {p.size}, rows)"
            yield f"    {noting(p, some)}"
        yield "}"
    for p in places:
        if p.staged and p.kind == "columns":
            call = f"lw_columns_in<{p.size}, {p.pitch}>({p.tile}, {p.name} + here, count)"
            yield noting(p, call)
    yield "__syncwarp(LW_MASK);"


def bring_out(places: Sequence[Place], condition: str) -> Iterator[str]:
    """Store what the tile holds; every thread has written its part."""
    yield "__syncwarp(LW_MASK);"
    rows = [p for p in places if p.staged and p.kind == "rows"]
    if rows:
        yield f"if ({condition}) {{"
        for p in rows:
            yield f"    {_rows(p)}::back({p.name} + first * {p.size}, {p.tile});"
        yield "} else {"
        for p in rows:
            yield f"    {_rows(p)}::some_back({p.name} + first * {p.size}, {p.tile}, rows);"
        yield "}"
    for p in places:
        if p.staged and p.kind == "columns":
            yield f"if (inside) lw_columns_back<{p.size}, {p.pitch}>({p.name} + here, {p.tile}, count);"


def _rows(place: Place, watch: bool = False) -> str:
    return f"lw_rows<{place.size}, {place.pitch}, {str(watch).lower()}>"
