"""The Riccati recursion of a horizon, compiled: feedback gains and the value of states from the last step to the first.

With z = [δx; 1; δu], a step leads to δx⁺ = F z, F = [A | gap | B], and costs ½ zᵀH z. Given the value
½δx⁺ᵀV δx⁺ + sᵀδx⁺ of what follows, the best δu = K [δx; 1] is found by Cholesky's elimination of the rows of u, which
leave the value of what came before. Matrices are small and follow from each other, so one problem fills the lanes; rows
end with zeros, so that every register is full.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache

import numpy as np

from linkwise.array_types import Array
from linkwise.targets import cache as disk
from linkwise.targets.llvm import binding, jit
from linkwise.targets.llvm.ir import FunctionText, module_text
from linkwise.targets.llvm.kernel import cache_key
from linkwise.targets.llvm.matrix_code import Matrix, MatrixCode

_ENTRY = "riccati"


def padded(columns: int) -> int:
    """Length of a row with so many columns: whole registers, the widest being of eight numbers."""
    return -(-columns // 8) * 8


class Riccati:
    """The recursion for n numbers of state and m of control.

    Args:
        n: length of δx.
        m: length of δu.
        dt: length of a step, s, where positions follow from the new speeds, δq⁺ = δq + lead + dt δv⁺ with x = [q; v]:
            then F has the rows of v alone, and half the work is saved. None where F has all rows.
    """

    def __init__(self, n: int, m: int, dt: float | None = None) -> None:
        self.n, self.m, self.dt = n, m, dt
        self._library, self._call = _compiled(n, m, dt is not None)

    @property
    def rows(self) -> int:
        """Rows of F."""
        return self.n if self.dt is None else self.n // 2

    def bound(
        self, F: Array, lead: Array, H_x: Array, H_u: Array, V: Array, K: Array, costates: Array
    ) -> Callable[[float], float | None]:
        """The recursion on these very arrays, C-contiguous, as often as it is called with a damping.

        It returns the improvement that is expected of the full step, Σ quᵀQuu⁻¹qu, or None where the controls' cost is
        not convex.

        Args:
            F: [A | gap | B] (N, rows, padded(n + 1 + m)).
            lead: what positions gain besides (N, n / 2), where F has the rows of v; else (N, 0).
            H_x: rows of x of the cost's second derivatives and gradient, [xx | x] (N, n, padded(n + 1)).
            H_u: rows of u, [ux | u | uu] (N, m, padded(n + 1 + m)). The damping is added to the diagonal of uu.
            V: value at the end, [xx | x] (n, padded(n + 1)); where the recursion leaves that of the first state.
            K: filled with the gains [K | k] (N, m, n + 1).
            costates: filled with the gradients of the value behind each step (N, n).
        """
        n, m = self.n, self.m
        work = np.empty((n + m) * padded(n + 1 + m) + 2 * n * padded(n + 1))
        arrays = (F, lead, H_x, H_u, V, K, costates, work)
        places, steps, call, dt = [array.ctypes.data for array in arrays], len(F), self._call, self.dt or 0.0

        def run(damping: float, held: object = (arrays, self._library)) -> float | None:
            result: float = call(*places, steps, damping, dt)
            return None if result < 0.0 else result

        return run


@cache
def _compiled(n: int, m: int, by_speeds: bool) -> tuple[object, Callable[..., float]]:
    machine = binding.host()
    text = _Recursion(n, m, machine.lanes(np.float64), by_speeds).text()
    obj = disk.get(cache_key(text, "riccati", "float64", machine), lambda: bytes(jit.compile_text(text, machine)))
    library = jit.load(obj, (_ENTRY,), {})
    kind = ctypes.CFUNCTYPE(ctypes.c_double, *[ctypes.c_void_p] * 8, ctypes.c_int64, ctypes.c_double, ctypes.c_double)
    return library, kind(library[_ENTRY])


class _Recursion:
    """Writer of the recursion's code, matrices across the lanes."""

    def __init__(self, n: int, m: int, lanes: int, by_speeds: bool) -> None:
        self.n, self.m, self.by_speeds = n, m, by_speeds
        self.long, self.short = padded(n + 1 + m), padded(n + 1)
        self.is_large = n > 32  # half of a symmetric matrix is worth leaving out, and filling in again
        names = ("F", "lead", "Hx", "Hu", "V", "K", "costates", "work")
        arguments = ", ".join(f"ptr noalias %{name}" for name in names)
        self.f = FunctionText(f"define double @{_ENTRY}({arguments}, i64 %steps, double %damping, double %dt)")
        self.code = MatrixCode(self.f, lanes)

    def text(self) -> str:
        """The module."""
        n, m, f, code = self.n, self.m, self.f, self.code
        f.label("entry")
        V = Matrix("%V", n, self.short, self.short)
        T = Matrix("%work", n, self.long, self.long)
        X = Matrix(f.address("double", "%work", n * self.long), n, self.short, self.short)
        U = Matrix(f.address("double", "%work", n * (self.long + self.short)), m, self.long, self.long)
        W = Matrix(f.address("double", "%work", n * self.short + (n + m) * self.long), n, self.short, self.short)
        gained = f.emit("alloca double")
        f.store("double", "0.0", gained, 8)
        with code.loop("%steps", downward=True) as step:
            H_x, H_u = self._at("%Hx", step, n, self.short), self._at("%Hu", step, m, self.long)
            ahead = self._at("%costates", step, 1, n)
            if self.by_speeds:
                self._carried_by_speeds(step, V, T, X, U, W, H_x, H_u, ahead)
            else:
                self._carried(step, V, T, X, U, H_x, H_u, ahead)
            self._eliminated(U)
            Y = U.part(f, slice(0, m), slice(0, n))
            of_x = U.part(f, slice(0, m), slice(0, self.short))
            code.product(V, Y, of_x, start=X, transposed=True, minus=True, lower=self.is_large)
            if self.is_large:
                code.mirrored(V, n)
            with code.loop(m) as row:
                y = f.load("double", code.element(U, row, n), 8)
                self._add(gained, f.emit(f"fmul double {y}, {y}"))
            self._gains(U, self._at("%K", step, m, n + 1))
        f.do(f"ret double {f.load('double', gained, 8)}")
        f.label("indefinite")
        f.do("ret double -1.0")
        return module_text([f])

    def _at(self, name: str, step: str, rows: int, columns: int) -> Matrix:
        """A step's matrix."""
        start = self.f.emit(f"mul i64 {step}, {rows * columns}")
        return Matrix(self.f.address("double", name, start), rows, columns, columns)

    def _add(self, place: str, term: str) -> None:
        self.f.store("double", self.f.emit(f"fadd double {self.f.load('double', place, 8)}, {term}"), place, 8)

    def _carried(
        self, step: str, V: Matrix, T: Matrix, X: Matrix, U: Matrix, H_x: Matrix, H_u: Matrix, ahead: Matrix
    ) -> None:
        """The value ahead, carried back by F: T = VF and its last column s, X = H_x + AᵀT, U = H_u + BᵀT."""
        n, f, code = self.n, self.f, self.code
        F = self._at("%F", step, n, self.long)
        every = slice(0, n)
        code.product(T, V.part(f, every, every), F)
        with code.loop(n) as row:
            place = code.element(T, row, n)
            self._add(place, f.load("double", code.element(V, row, n), 8))
            f.store("double", f.load("double", place, 8), code.element(ahead, 0, row), 8)
        A, TA = F.part(f, every, every), T.part(f, every, slice(0, self.short))
        code.product(X, A, TA, start=H_x, transposed=True, lower=self.is_large)
        code.product(U, F.part(f, every, slice(n + 1, n + 1 + self.m)), T, start=H_u, transposed=True)

    def _carried_by_speeds(
        self, step: str, V: Matrix, T: Matrix, X: Matrix, U: Matrix, W: Matrix, H_x: Matrix, H_u: Matrix, ahead: Matrix
    ) -> None:
        """The same where F = E + [dt; 1] F_v and E = [1 0 | lead | 0], its rows those of q.

        T = V_q E + (V_v + dt V_q) F_v, and FᵀT = Eᵀ T_q + F_vᵀ (T_v + dt T_q).
        """
        n, f, code = self.n, self.f, self.code
        half = n // 2
        F, lead = self._at("%F", step, half, self.long), self._at("%lead", step, 1, half)
        of_q, of_v, every = slice(0, half), slice(half, n), slice(0, n)
        with code.loop(n) as row:
            code.combined(W, row, V.part(f, every, of_v), V.part(f, every, of_q), "%dt", half)
        code.product(T, W.part(f, every, of_q), F)
        led = W.part(f, slice(0, 1), every)  # V_q lead, by rows of the symmetric V; W has served
        code.product(led, lead, V.part(f, of_q, every))
        with code.loop(n) as row:
            code.combined(T, row, T, V, "1.0", half)
            place = code.element(T, row, n)
            self._add(place, f.load("double", code.element(V, row, n), 8))
            self._add(place, f.load("double", code.element(led, 0, row), 8))
            f.store("double", f.load("double", place, 8), code.element(ahead, 0, row), 8)
        T_q, T_v = T.part(f, of_q, slice(0, self.long)), T.part(f, of_v, slice(0, self.long))
        with code.loop(half) as row:
            code.combined(T_v, row, T_v, T_q, "%dt", self.long)
        short = slice(0, self.short)
        code.product(
            X, F.part(f, of_q, every), T_v.part(f, of_q, short), start=H_x, transposed=True, lower=self.is_large
        )
        with code.loop(half) as row:
            code.combined(X, row, X, T_q, "1.0", n + 1)
        code.product(U, F.part(f, of_q, slice(n + 1, n + 1 + self.m)), T_v, start=H_u, transposed=True)

    def _eliminated(self, U: Matrix) -> None:
        """Cholesky: the rows of u become [Y | y | Lᵀ]."""
        n, m, f, code = self.n, self.m, self.f, self.code
        own = U.part(f, slice(0, m), slice(n + 1, n + 1 + m))
        with code.loop(m) as j:
            pivot = f.load("double", code.element(own, j, j), 8)
            pivot = f.emit(f"fadd double {pivot}, %damping")
            good = f.emit(f"fcmp ogt double {pivot}, 0x3810000000000000")
            f.do(f"br i1 {good}, label %convex, label %indefinite")
            f.label("convex")
            f.store("double", pivot, code.element(own, j, j), 8)
            root = f.call("double", "llvm.sqrt.f64", [("double", pivot)])
            code.scaled(U, j, f.emit(f"fdiv double 1.0, {root}"))
            with code.loop(f.emit(f"sub i64 {m - 1}, {j}"), some=False) as below:
                i = f.emit(f"add i64 {f.emit(f'add i64 {below}, {j}')}, 1")
                code.subtracted(U, i, f.load("double", code.element(own, j, i), 8), j)

    def _gains(self, U: Matrix, K: Matrix) -> None:
        """[K | k] = -L⁻ᵀ [Y | y]."""
        n, m, f, code = self.n, self.m, self.f, self.code
        own = U.part(f, slice(0, m), slice(n + 1, n + 1 + m))
        gains = U.part(f, slice(0, m), slice(0, n + 1))
        with code.loop(m, downward=True) as j:
            code.scaled(gains, j, f.emit(f"fdiv double 1.0, {f.load('double', code.element(own, j, j), 8)}"))
            with code.loop(j, some=False) as i:
                code.subtracted(gains, i, f.load("double", code.element(own, i, j), 8), j)
        with code.loop(m) as row:
            code.copied(K, gains, row, "-1.0")
