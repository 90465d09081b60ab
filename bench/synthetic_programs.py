"""Programs of realistic size and locality, made without the rest of the package.

A tiny tracer folds zeros and ones and shares common terms, and runs the two classical sweeps
(inverse dynamics; articulated-body forward dynamics) over a chain with Denavit–Hartenberg links.
The code generator can so be measured on its own.
"""

from __future__ import annotations

import random
from typing import Any

from linkwise.trace.block import ArraySpec, Block


class Tape:
    """Collects nodes, shares equal ones."""

    def __init__(self) -> None:
        self.nodes: list[tuple[Any, ...]] = []
        self.known: dict[tuple[Any, ...], int] = {}

    def node(self, *node: Any) -> Num:
        if node not in self.known:
            self.known[node] = len(self.nodes)
            self.nodes.append(node)
        return Num(self, self.known[node])

    def const(self, value: float) -> Num:
        return self.node("const", float(value))

    def sin(self, x: Num) -> Num:
        return self.node("sin", x.i)

    def cos(self, x: Num) -> Num:
        return self.node("cos", x.i)


class Num:
    def __init__(self, tape: Tape, i: int) -> None:
        self.tape, self.i = tape, i

    def value(self) -> float | None:
        node = self.tape.nodes[self.i]
        return node[1] if node[0] == "const" else None

    def lift(self, other: Any) -> Num:
        return other if isinstance(other, Num) else self.tape.const(other)

    def binary(self, op: str, other: Any) -> Num:
        a, b = self, self.lift(other)
        x, y = a.value(), b.value()
        if x is not None and y is not None:
            return self.tape.const({"add": x + y, "sub": x - y, "mul": x * y, "div": x / y if y else 0.0}[op])
        if op == "mul":
            if x == 0 or y == 0:
                return self.tape.const(0)
            if x == 1:
                return b
            if y == 1:
                return a
            if x == -1:
                return -b
            if y == -1:
                return -a
        if op == "add":
            if x == 0:
                return b
            if y == 0:
                return a
            if self.tape.nodes[b.i][0] == "neg":
                return a.binary("sub", Num(self.tape, self.tape.nodes[b.i][1]))
            if self.tape.nodes[a.i][0] == "neg":
                return b.binary("sub", Num(self.tape, self.tape.nodes[a.i][1]))
        if op == "sub":
            if y == 0:
                return a
            if x == 0:
                return -b
            if self.tape.nodes[b.i][0] == "neg":
                return a.binary("add", Num(self.tape, self.tape.nodes[b.i][1]))
        if op in ("add", "mul") and a.i > b.i:
            a, b = b, a
        return self.tape.node(op, a.i, b.i)

    def __add__(self, o: Any) -> Num:
        return self.binary("add", o)

    def __radd__(self, o: Any) -> Num:
        return self.binary("add", o)

    def __sub__(self, o: Any) -> Num:
        return self.binary("sub", o)

    def __rsub__(self, o: Any) -> Num:
        return self.lift(o).binary("sub", self)

    def __mul__(self, o: Any) -> Num:
        return self.binary("mul", o)

    def __rmul__(self, o: Any) -> Num:
        return self.binary("mul", o)

    def __truediv__(self, o: Any) -> Num:
        return self.binary("div", o)

    def __neg__(self) -> Num:
        v = self.value()
        if v is not None:
            return self.tape.const(-v)
        node = self.tape.nodes[self.i]
        return Num(self.tape, node[1]) if node[0] == "neg" else self.tape.node("neg", self.i)


def cross(a: Any, b: Any) -> list[Any]:
    return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]


def mv(m: Any, v: Any) -> list[Any]:
    return [sum((m[i][k] * v[k] for k in range(1, len(v))), m[i][0] * v[0]) for i in range(len(m))]


def mm(a: Any, b: Any) -> list[list[Any]]:
    cols = [[r[j] for r in b] for j in range(len(b[0]))]
    return [[mv([row], col)[0] for col in cols] for row in a]


def tr(m: Any) -> list[list[Any]]:
    return [list(r) for r in zip(*m, strict=True)]


def plus(a: Any, b: Any) -> list[Any]:
    return [x + y for x, y in zip(a, b, strict=True)]


def _chain(n: int, tape: Tape) -> list[dict[str, Any]]:
    rng = random.Random(7)
    links = []
    for k in range(n):
        q = tape.node("input", 0, k)
        s, c = tape.sin(q), tape.cos(q)
        one = tape.const(1)
        zero = tape.const(0)
        up = [(0.0, 1.0), (0.0, -1.0), (1.0, 0.0)][k % 3]
        ca, sa = tape.const(up[0]), tape.const(up[1])
        rx = [[one, zero, zero], [zero, ca, -sa], [zero, sa, ca]]
        rz = [[c, -s, zero], [s, c, zero], [zero, zero, one]]
        p = [tape.const(rng.choice([0, 0.0825, 0.3])), tape.const(0), tape.const(rng.choice([0, 0.316]))]
        p = mv(rx, p)
        links.append(
            {
                "R": mm(rx, rz),
                "p": p,
                "m": tape.const(rng.uniform(1, 4)),
                "h": [tape.const(rng.uniform(-0.3, 0.3)) for _ in range(3)],
                "J": (lambda a: [[tape.const(a[i][j]) for j in range(3)] for i in range(3)])(
                    (lambda b: [[b[min(i, j)][max(i, j)] + 0.3 * (i == j) for j in range(3)] for i in range(3)])(
                        [[rng.uniform(0, 0.1) for _ in range(3)] for _ in range(3)]
                    )
                ),
                "parent": k - 1 if n < 20 else (k - 1 if k % 7 else max(-1, k - 8)),
            }
        )
    return links


def _finish(name: str, tape: Tape, n: int, names: tuple[str, ...], results: list[list[Num]]) -> Block:
    keep = sorted(_reach(tape.nodes, [r.i for row in results for r in row]))
    number = {old: new for new, old in enumerate(keep)}
    nodes = [
        tape.nodes[i]
        if tape.nodes[i][0] in ("const", "input")
        else (tape.nodes[i][0], *(number[a] for a in tape.nodes[i][1:]))
        for i in keep
    ]
    return Block(
        name,
        tuple(nodes),
        tuple(ArraySpec(x, (n,)) for x in names),
        tuple(ArraySpec(f"y{j}", (len(row),)) for j, row in enumerate(results)),
        tuple(tuple(number[r.i] for r in row) for row in results),
    )


def _reach(nodes: list[tuple[Any, ...]], roots: list[int]) -> set[int]:
    seen: set[int] = set()
    todo = list(roots)
    while todo:
        i = todo.pop()
        if i not in seen:
            seen.add(i)
            if nodes[i][0] not in ("const", "input"):
                todo.extend(nodes[i][1:])
    return seen


def inverse_dynamics(n: int) -> Block:
    tape = Tape()
    links = _chain(n, tape)
    zero = tape.const(0)
    w0: Any = [zero] * 3
    a0: Any = [zero, zero, tape.const(9.81)]
    state: list[tuple[Any, Any, Any]] = []
    force: list[tuple[Any, Any]] = []
    for k, link in enumerate(links):
        w, dw, a = state[link["parent"]] if link["parent"] >= 0 else (w0, w0, a0)
        Rt = tr(link["R"])
        v, acc = tape.node("input", 1, k), tape.node("input", 2, k)
        base = plus(a, plus(cross(dw, link["p"]), cross(w, cross(w, link["p"]))))
        wk = mv(Rt, w)
        dwk = mv(Rt, dw)
        dwk = [dwk[0] + wk[1] * v, dwk[1] - wk[0] * v, dwk[2] + acc]
        wk = [wk[0], wk[1], wk[2] + v]
        ak = mv(Rt, base)
        state.append((wk, dwk, ak))
        f = plus([link["m"] * x for x in ak], plus(cross(dwk, link["h"]), cross(wk, cross(wk, link["h"]))))
        t = plus(mv(link["J"], dwk), plus(cross(wk, mv(link["J"], wk)), cross(link["h"], ak)))
        force.append((f, t))
    tau: list[Any] = [zero] * n
    for k in reversed(range(n)):
        link = links[k]
        f, t = force[k]
        tau[k] = t[2]
        if link["parent"] >= 0:
            fp = mv(link["R"], f)
            tp = plus(mv(link["R"], t), cross(link["p"], fp))
            force[link["parent"]] = (plus(force[link["parent"]][0], fp), plus(force[link["parent"]][1], tp))
    return _finish(f"id{n}", tape, n, ("q", "v", "vdot"), [tau])


def forward_dynamics(n: int) -> Block:
    """Articulated-body algorithm; symmetric blocks stored once."""
    tape = Tape()
    links = _chain(n, tape)
    zero = tape.const(0)
    z3 = [zero] * 3
    vel: list[Any] = []
    inertia: list[Any] = []
    bias: list[Any] = []
    coriolis: list[Any] = []
    for k, link in enumerate(links):
        w, lin = vel[link["parent"]] if link["parent"] >= 0 else (z3, z3)
        Rt = tr(link["R"])
        v = tape.node("input", 1, k)
        wk, lk = mv(Rt, w), mv(Rt, plus(lin, cross(w, link["p"])))
        coriolis.append(([wk[1] * v, -(wk[0] * v), zero], [lk[1] * v, -(lk[0] * v), zero]))
        wk = [wk[0], wk[1], wk[2] + v]
        vel.append((wk, lk))
        h, m, J = link["h"], link["m"], link["J"]
        hx = [[zero, -h[2], h[1]], [h[2], zero, -h[0]], [-h[1], h[0], zero]]
        inertia.append(
            [[list(r) for r in J], [list(r) for r in hx], [[m if i == j else zero for j in range(3)] for i in range(3)]]
        )
        ang = plus(mv(J, wk), cross(h, lk))
        lm = plus([m * x for x in lk], cross(wk, h))
        bias.append((plus(cross(wk, ang), cross(lk, lm)), cross(wk, lm)))
    gains: list[Any] = [None] * n
    for k in reversed(range(n)):
        link = links[k]
        A, B, C = inertia[k]
        U = [A[0][2], A[1][2], A[2][2], B[2][0], B[2][1], B[2][2]]
        d = tape.const(1) / U[2]
        u = tape.node("input", 2, k) - bias[k][0][2]
        K = [x * d for x in U]
        gains[k] = (K, d, u)
        if link["parent"] >= 0:

            def down(M: Any, i0: int, j0: int, sym: bool, K: Any = K, U: Any = U) -> Any:
                out = [
                    [M[i][j] - K[i0 + i] * U[j0 + j] if not sym or j >= i else None for j in range(3)] for i in range(3)
                ]
                if sym:
                    for i in range(3):
                        for j in range(i):
                            out[i][j] = out[j][i]
                return out

            A2, B2, C2 = down(A, 0, 0, True), down(B, 0, 3, False), down(C, 3, 3, True)
            ca, cl = coriolis[k]
            f = plus(bias[k][1], plus(mv(tr(B2), ca), plus(mv(C2, cl), [K[3 + i] * u for i in range(3)])))
            t = plus(bias[k][0], plus(mv(A2, ca), plus(mv(B2, cl), [K[i] * u for i in range(3)])))
            R, p = link["R"], link["p"]

            def turn(M: Any, sym: bool, R: Any = R) -> Any:
                out = mm(mm(R, M), tr(R))
                return [[out[min(i, j)][max(i, j)] if sym else out[i][j] for j in range(3)] for i in range(3)]

            A3, B3, C3 = turn(A2, True), turn(B2, False), turn(C2, True)
            px = [[zero, -p[2], p[1]], [p[2], zero, -p[0]], [-p[1], p[0], zero]]
            pC = mm(px, C3)
            B4 = [plus(B3[i], pC[i]) for i in range(3)]
            Bp, pB = mm(B3, px), mm(px, tr(B4))
            A4 = [[A3[i][j] - Bp[i][j] + pB[i][j] for j in range(3)] for i in range(3)]
            A4 = [[A4[min(i, j)][max(i, j)] for j in range(3)] for i in range(3)]
            fp = mv(R, f)
            tp = plus(mv(R, t), cross(p, fp))
            P = link["parent"]
            inertia[P] = [[plus(inertia[P][b][i], (A4, B4, C3)[b][i]) for i in range(3)] for b in range(3)]
            bias[P] = (plus(bias[P][0], tp), plus(bias[P][1], fp))
    acc: list[Any] = []
    out = []
    for k, link in enumerate(links):
        w, lin = acc[link["parent"]] if link["parent"] >= 0 else (z3, [zero, zero, tape.const(9.81)])
        Rt = tr(link["R"])
        wk = plus(mv(Rt, w), coriolis[k][0])
        lk = plus(mv(Rt, plus(lin, cross(w, link["p"]))), coriolis[k][1])
        K, d, u = gains[k]
        qdd = u * d - mv([K], [*wk, *lk])[0]
        out.append(qdd)
        acc.append(([wk[0], wk[1], wk[2] + qdd], lk))
    return _finish(f"fd{n}", tape, n, ("q", "v", "tau"), [out])


if __name__ == "__main__":
    from collections import Counter

    for program in (inverse_dynamics(7), forward_dynamics(7), inverse_dynamics(29), forward_dynamics(29)):
        print(program.name, len(program.nodes), dict(Counter(node[0] for node in program.nodes)))
