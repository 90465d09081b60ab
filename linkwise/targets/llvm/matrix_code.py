"""Code for small dense matrices of one state, in LLVM's language: products and row operations, rows across the lanes.

Programs put one state in each lane. Where a single state has matrices to multiply one after another (a Riccati
recursion), the lanes are free for the columns of a row instead. Sizes are constants; loops run over blocks of rows and
over the inner index, and a block's sums stay in registers.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from linkwise.dataclass import dataclass
from linkwise.targets.llvm.ir import FunctionText, LaneShape

_ROWS = 8  # of a block, whose sums are in registers: eight rows of two of them, of 32 that the widest machines have


@dataclass(frozen=True)
class Matrix:
    """A matrix in memory, row after row: the name of its first address, its rows and columns, and the row's length.

    ``length`` is that of the rows in memory, which may have more columns than the matrix.
    """

    base: str
    rows: int
    columns: int
    length: int

    def part(self, f: FunctionText, rows: slice, columns: slice) -> Matrix:
        """Some rows and columns of it."""
        start = rows.start * self.length + columns.start
        base = f.address("double", self.base, start) if start else self.base
        return Matrix(base, rows.stop - rows.start, columns.stop - columns.start, self.length)


class MatrixCode:
    """Writer of operations on matrices into a function.

    Args:
        function: what is written into.
        lanes: doubles that a vector register holds.
    """

    def __init__(self, function: FunctionText, lanes: int) -> None:
        self.f, self.lanes = function, lanes
        self._blocks = 0

    @contextmanager
    def loop(self, count: int | str, *, downward: bool = False, some: bool = True) -> Iterator[str]:
        """A loop; gives the name of its index, which falls from count - 1 if asked to.

        ``some``: it runs at least once.
        """
        self._blocks += 1
        number, f = self._blocks, self.f
        up, last = f"%up{number}", f"again{number}"
        with f.counted(count, up, some=some, block=f"loop{number}", again=last, after=f"done{number}"):
            if downward:
                top = f.emit(f"sub i64 {count}, 1")
                yield f.emit(f"sub i64 {top}, {up}")
            else:
                yield up
            f.do(f"br label %{last}")

    def product(
        self,
        out: Matrix,
        left: Matrix,
        right: Matrix,
        *,
        start: Matrix | None = None,
        transposed: bool = False,
        minus: bool = False,
        lower: bool = False,
    ) -> None:
        """``out = start ± left · right``, or with the transposed left one; nothing may be in the place of ``out``.

        ``lower``: of a symmetric matrix, that and more columns behind it, what is above the diagonal may be left out.
        """
        inner = left.rows if transposed else left.columns
        whole, rest = divmod(out.rows, _ROWS)
        for first, shape in self._strips(out.columns):
            above = first // _ROWS if lower and first + shape.lanes <= out.rows else 0
            if whole > above:
                with self.loop(whole - above) as number:
                    row = self.f.emit(f"mul i64 {self.f.emit(f'add i64 {number}, {above}')}, {_ROWS}")
                    self._block(out, left, right, start, row, _ROWS, first, shape, inner, transposed, minus)
            if rest:
                row = self.f.emit(f"add i64 0, {whole * _ROWS}")
                self._block(out, left, right, start, row, rest, first, shape, inner, transposed, minus)

    def _block(
        self,
        out: Matrix,
        left: Matrix,
        right: Matrix,
        start: Matrix | None,
        row: str,
        rows: int,
        first: int,
        shape: LaneShape,
        inner: int,
        transposed: bool,
        minus: bool,
    ) -> None:
        """Some rows of one strip of a product."""
        f, kind = self.f, shape.real
        each = [row, *(f.emit(f"add i64 {row}, {k}") for k in range(1, rows))]
        sums = ["zeroinitializer" if start is None else f.load(kind, self._place(start, r, first), 8) for r in each]
        self._blocks += 1
        number = self._blocks
        f.do(f"br label %into{number}")
        f.label(f"into{number}")
        f.do(f"br label %inner{number}")
        f.label(f"inner{number}")
        k = f"%k{number}"
        f.do(f"{k} = phi i64 [ 0, %into{number} ], [ {k}.next, %inner{number} ]")
        for i, begin in enumerate(sums):
            f.do(f"%s{number}.{i} = phi {kind} [ {begin}, %into{number} ], [ %n{number}.{i}, %inner{number} ]")
        across = f.load(kind, self._place(right, k, first), 8)
        for i, r in enumerate(each):
            place = f.address("double", self._place(left, k, 0), r) if transposed else self._place(left, r, k)
            factor = self.everywhere(f.load("double", place, 8), shape)
            term = f.emit(f"fmul contract {kind} {factor}, {across}")
            f.do(f"%n{number}.{i} = f{'sub' if minus else 'add'} contract {kind} %s{number}.{i}, {term}")
        f.do(f"{k}.next = add i64 {k}, 1")
        f.do(f"{k}.more = icmp slt i64 {k}.next, {inner}")
        f.do(f"br i1 {k}.more, label %inner{number}, label %after{number}")
        f.label(f"after{number}")
        for i, r in enumerate(each):
            f.store(kind, f"%n{number}.{i}", self._place(out, r, first), 8)

    def mirrored(self, matrix: Matrix, rows: int) -> None:
        """Fill what is above the diagonal of a symmetric matrix with what is below."""
        with self.loop(rows) as row, self.loop(row, some=False) as column:
            value = self.f.load("double", self._place(matrix, row, column), 8)
            self.f.store("double", value, self._place(matrix, column, row), 8)

    def scaled(self, matrix: Matrix, row: str | int, factor: str) -> None:
        """Multiply a row by a number."""
        for first, shape in self._strips(matrix.columns):
            place = self._place(matrix, row, first)
            old = self.f.load(shape.real, place, 8)
            new = self.f.emit(f"fmul {shape.real} {old}, {self.everywhere(factor, shape)}")
            self.f.store(shape.real, new, place, 8)

    def subtracted(self, matrix: Matrix, row: str | int, factor: str, other: str | int) -> None:
        """Subtract from a row another one times a number."""
        for first, shape in self._strips(matrix.columns):
            kind = shape.real
            taken = self.f.load(kind, self._place(matrix, other, first), 8)
            term = self.f.emit(f"fmul contract {kind} {self.everywhere(factor, shape)}, {taken}")
            place = self._place(matrix, row, first)
            old = self.f.load(kind, place, 8)
            self.f.store(kind, self.f.emit(f"fsub contract {kind} {old}, {term}"), place, 8)

    def combined(self, out: Matrix, row: str | int, one: Matrix, other: Matrix, factor: str, columns: int) -> None:
        """A row of ``out``: that of one matrix and a multiple of another's, as many columns as said."""
        for first, shape in self._strips(columns):
            kind = shape.real
            taken = self.f.load(kind, self._place(other, row, first), 8)
            term = self.f.emit(f"fmul contract {kind} {self.everywhere(factor, shape)}, {taken}")
            own = self.f.load(kind, self._place(one, row, first), 8)
            self.f.store(kind, self.f.emit(f"fadd contract {kind} {own}, {term}"), self._place(out, row, first), 8)

    def copied(self, out: Matrix, matrix: Matrix, row: str | int, factor: str) -> None:
        """A row of ``out``: a multiple of another matrix's."""
        for first, shape in self._strips(out.columns):
            taken = self.f.load(shape.real, self._place(matrix, row, first), 8)
            term = self.f.emit(f"fmul {shape.real} {taken}, {self.everywhere(factor, shape)}")
            self.f.store(shape.real, term, self._place(out, row, first), 8)

    def element(self, matrix: Matrix, row: str | int, column: str | int) -> str:
        """Address of an entry."""
        return self._place(matrix, row, column)

    def everywhere(self, number: str, shape: LaneShape) -> str:
        """A number in all lanes."""
        if shape.lanes == 1:
            return number
        one = self.f.emit(f"insertelement {shape.real} poison, double {number}, i64 0")
        zeros = f"<{shape.lanes} x i32> zeroinitializer"
        return self.f.emit(f"shufflevector {shape.real} {one}, {shape.real} poison, {zeros}")

    def _place(self, matrix: Matrix, row: str | int, column: str | int) -> str:
        start = self.f.emit(f"mul i64 {row}, {matrix.length}")
        return self.f.address("double", matrix.base, self.f.emit(f"add i64 {start}, {column}"))

    def _strips(self, columns: int) -> Iterator[tuple[int, LaneShape]]:
        """First columns and shapes of strips as wide as two registers, then halves of that for what is left."""
        first, width = 0, 2 * self.lanes
        while first < columns:
            while first + width > columns:
                width //= 2
            yield first, LaneShape(64, width)
            first += width
