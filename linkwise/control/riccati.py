"""The Riccati recursion of a horizon, compiled: feedback gains and the value of states from the last step to the first.

With z = [δx; 1; δu], a step leads to δx⁺ = F z, F = [A | gap | B], and costs ½ zᵀH z. Given the value
½δx⁺ᵀV δx⁺ + sᵀδx⁺ of what follows, the best δu = K [δx; 1] is found by Cholesky's elimination of the rows of u, which
leave the value of what came before. Matrices are small and follow from each other, so one problem fills the lanes.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np

from linkwise.array_types import Array
from linkwise.targets import cache as disk
from linkwise.targets.llvm import binding, jit
from linkwise.targets.llvm.ir import FunctionText, module_text
from linkwise.targets.llvm.kernel import cache_key
from linkwise.targets.llvm.matrices import Matrix, MatrixCode

_ENTRY = "riccati"


class Riccati:
    """The recursion for n numbers of state and m of control.

    Args:
        n: length of δx.
        m: length of δu.
    """

    def __init__(self, n: int, m: int) -> None:
        self.n, self.m = n, m
        self._library, self._call = _compiled(n, m)

    def __call__(
        self, F: Array, H_x: Array, H_u: Array, V: Array, damping: float, K: Array, costates: Array
    ) -> float | None:
        """Improvement that is expected of the full step, Σ quᵀQuu⁻¹qu; None where the controls' cost is not convex.

        Args:
            F: [A | gap | B] (N, n, n + 1 + m).
            H_x: rows of x of the cost's second derivatives and gradient, [xx | x] (N, n, n + 1).
            H_u: rows of u, [ux | u | uu] (N, m, n + 1 + m).
            V: value at the end, [xx | x] (n, n + 1); where the recursion leaves that of the first state.
            damping: added to the diagonal of uu.
            K: filled with the gains [K | k] (N, m, n + 1).
            costates: filled with the gradients of the value behind each step (N, n).
        """
        n, m = self.n, self.m
        work = np.empty(n * (n + 1 + m) + n * (n + 1) + m * (n + 1 + m))
        arrays = (F, H_x, H_u, V, K, costates, work)
        result = self._call(*(array.ctypes.data for array in arrays), len(F), damping)
        return None if result < 0.0 else float(result)


@cache
def _compiled(n: int, m: int) -> tuple[Any, Any]:
    machine = binding.host()
    obj = disk.get(
        cache_key(f"riccati 2 {n} {m}", "riccati", "float64", machine),
        lambda: bytes(jit.compile_text(_text(n, m, machine.lanes(np.float64)), machine)),
    )
    library = jit.load(obj, (_ENTRY,), {})
    kind = ctypes.CFUNCTYPE(ctypes.c_double, *[ctypes.c_void_p] * 7, ctypes.c_int64, ctypes.c_double)
    return library, kind(library[_ENTRY])


def _text(n: int, m: int, lanes: int) -> str:
    """The module, its matrices across the lanes."""
    width = n + 1 + m
    arguments = ", ".join(f"ptr noalias %{name}" for name in ("F", "Hx", "Hu", "V", "K", "costates", "work"))
    f = FunctionText(f"define double @{_ENTRY}({arguments}, i64 %steps, double %damping)")
    f.label("entry")
    code = MatrixCode(f, lanes)
    V = Matrix("%V", n, n + 1, n + 1)
    T = Matrix("%work", n, width, width)
    X = Matrix(f.address("double", "%work", n * width), n, n + 1, n + 1)
    U = Matrix(f.address("double", "%work", n * width + n * (n + 1)), m, width, width)
    gained = f.emit("alloca double")
    f.store("double", "0.0", gained, 8)

    def at(name: str, step: str, rows: int, columns: int) -> Matrix:
        start = f.emit(f"mul i64 {step}, {rows * columns}")
        return Matrix(f.address("double", name, start), rows, columns, columns)

    def added(place: str, term: str) -> None:
        f.store("double", f.emit(f"fadd double {f.load('double', place, 8)}, {term}"), place, 8)

    with code.loop("%steps", downward=True) as step:
        F, H_x, H_u = at("%F", step, n, width), at("%Hx", step, n, n + 1), at("%Hu", step, m, width)
        every, of_x = slice(0, n), slice(0, n + 1)
        A, B = F.part(f, every, slice(0, n)), F.part(f, every, slice(n + 1, width))
        code.product(T, V.part(f, every, slice(0, n)), F)
        ahead = at("%costates", step, 1, n)
        with code.loop(n) as row:
            place = code.element(T, row, n)
            added(place, f.load("double", code.element(V, row, n), 8))
            f.store("double", f.load("double", place, 8), code.element(ahead, 0, row), 8)
        code.product(X, A, T.part(f, every, of_x), start=H_x, transposed=True)
        code.product(U, B, T, start=H_u, transposed=True)
        own = U.part(f, slice(0, m), slice(n + 1, width))
        with code.loop(m) as j:  # Cholesky: the rows of u become [Y | y | Lᵀ]
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
        Y = U.part(f, slice(0, m), slice(0, n))
        code.product(V, Y, U.part(f, slice(0, m), of_x), start=X, transposed=True, minus=True)
        gains = U.part(f, slice(0, m), of_x)
        with code.loop(m) as row:
            y = f.load("double", code.element(U, row, n), 8)
            added(gained, f.emit(f"fmul double {y}, {y}"))
        with code.loop(m, downward=True) as j:
            code.scaled(gains, j, f.emit(f"fdiv double 1.0, {f.load('double', code.element(own, j, j), 8)}"))
            with code.loop(j, some=False) as i:
                code.subtracted(gains, i, f.load("double", code.element(own, i, j), 8), j)
        K = at("%K", step, m, n + 1)
        with code.loop(m) as row, code.loop(n + 1) as column:
            entry = f.load("double", code.element(gains, row, column), 8)
            f.store("double", f.emit(f"fneg double {entry}"), code.element(K, row, column), 8)
    f.do(f"ret double {f.load('double', gained, 8)}")
    f.label("indefinite")
    f.do("ret double -1.0")
    return module_text([f])
