"""Divide and conquer on threads or a GPU beside the serial kernels: ``python -m bench.divide_and_conquer [n ...]``.

One chain of hinges, one state, at rest. The text of ``linkwise.classics.divide_and_conquer`` is compiled for one body
and for one joining of two pieces; all joinings of a round are one call on a batch, which the threads share. (Moving, it
would need the links' velocities first, which are one more round of sums; they are left out here.) With ``--gpu`` the
same three functions run on arrays of a CUDA device, where all joinings of a round run at once; beside them stand the
serial kernel of the processor, and the library's own way for one long chain on a device, which joins segments of links
pair by pair (``linkwise.algorithms.segments``).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import linkwise as lw
from bench.scale import mechanism
from bench.timing import Call, best_ns
from linkwise.classics.dense import as_rows
from linkwise.classics.divide_and_conquer import Handle, Piece, PieceJoint, eliminated, merged
from linkwise.mechanism.layout import lay_out
from linkwise.spatial.matrices import identity

Array = Any
INNER, MIDDLE, OUTER = (("joint", k) for k in range(3))
PIECE = 3 * 36 + 2 * 6


def unpacked(numbers: Array, first: Handle, second: Handle) -> Piece:
    """A piece of a chain from its 120 numbers."""
    blocks = [[list(row) for row in block] for block in numbers[:108].reshape(3, 6, 6)]
    turned = [list(row) for row in zip(*blocks[1], strict=True)]
    Phi = {(first, first): blocks[0], (first, second): blocks[1], (second, second): blocks[2], (second, first): turned}
    return Piece(Phi, {first: list(numbers[108:114]), second: list(numbers[114:])})


def packed(piece: Piece) -> Array:
    """The 120 numbers of a piece."""
    pairs = ((INNER, INNER), (INNER, OUTER), (OUTER, OUTER))
    parts = [x for pair in pairs for row in piece.Phi[pair] for x in row]
    return np.array([*parts, *piece.b[INNER], *piece.b[OUTER]], object)


def body(_: lw.Model, q: Any, R_0: Array, p: Array, Phi: Array) -> Array:
    """A link that carries the next joint: Φ of the link, and that joint's placement R₀, p and angle about its z."""
    c, s = lw.math.cos(q), lw.math.sin(q)
    R = R_0 @ np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]], object)
    cross = np.array([[0.0, -p[2], p[1]], [p[2], 0.0, -p[0]], [-p[1], p[0], 0.0]], object)
    down = -np.block([[R, cross @ R], [np.zeros((3, 3), object), R]])
    coupled = Phi @ down
    return np.concatenate([Phi.reshape(-1), coupled.reshape(-1), (down.T @ coupled).reshape(-1), np.zeros(12, object)])


def join(_: lw.Model, A: Array, B: Array, tau: Any) -> tuple[Array, Array]:
    """Two pieces as one, and what coming down will need."""
    whole = merged(unpacked(A, INNER, MIDDLE), unpacked(B, MIDDLE, OUTER))
    answer = PieceJoint([[float(i == 2)] for i in range(6)], [0.0] * 6, [tau], (0.0,)).eliminate(
        whole.Phi[MIDDLE, MIDDLE]
    )
    result = eliminated(whole, MIDDLE, answer)
    (at_rest,) = answer.accelerate([0.0] * 6)
    slopes = [answer.accelerate(unit)[0] - at_rest for unit in identity(6)]
    blocks = (answer.weigh(identity(6)), whole.Phi[MIDDLE, INNER], whole.Phi[MIDDLE, OUTER])
    kept = [x for block in blocks for row in block for x in row]
    kept += [*whole.b[MIDDLE], *answer.force([0.0] * 6), *slopes, at_rest]
    return packed(result), np.array(kept, object)


def come_down(_: lw.Model, kept: Array, x_inner: Array, x_outer: Array) -> tuple[Array, Any]:
    """The force in the middle and the acceleration of its joint, from the forces at the two ends."""
    W, inner, outer = kept[:108].reshape(3, 6, 6)
    b, driven, slopes, at_rest = kept[108:114], kept[114:120], kept[120:126], kept[126]
    e = b + inner @ x_inner + outer @ x_outer
    return driven - W @ e, at_rest + slopes @ e


class Chain:
    """The constants of a chain, and the three kernels; ``xp`` is NumPy, or CuPy for a device."""

    def __init__(self, model: lw.Model, xp: Any = np) -> None:
        self.n, self.xp = model.nv, xp
        tree = lay_out(model, regroup=False)
        zero = [0.0] * self.n
        frames = [link.phi(zero).matrix() for link in tree]
        self.R_0 = xp.asarray([*(R.m for R, _ in frames), np.eye(3).tolist()], float)  # nothing hangs on the tip
        self.p = xp.asarray([*(list(p) for _, p in frames), [0.0] * 3], float)
        Phi = np.linalg.inv(np.array([as_rows(link.inertia.articulated()) for link in tree], float))
        self.Phi = xp.asarray(np.concatenate([np.zeros((1, 6, 6)), Phi]))  # the base does not give way
        self.gravity = xp.asarray(np.array(frames[0][0].m, float).T @ list(tree.gravity))  # as the first joint sees it
        self.body = lw.compile(body, model, {"q": "scalar", "R_0": (3, 3), "p": 3, "Phi": (6, 6)})
        self.join = lw.compile(join, model, {"A": PIECE, "B": PIECE, "tau": "scalar"})
        self.come_down = lw.compile(come_down, model, {"kept": 127, "x_inner": 6, "x_outer": 6})

    def forward_dynamics(self, q: Array, tau: Array, threads: int = 1) -> Array:
        """v̇ at rest."""
        xp = self.xp
        pieces = self.body(xp.append(q, 0.0), self.R_0, self.p, self.Phi, threads=threads)
        pieces[0, 114:] = self.base_seen(q[0])
        rounds = []
        joints = xp.arange(self.n)  # between the pieces
        while len(pieces) > 1:
            pairs = len(pieces) // 2
            A, B, at = pieces[: 2 * pairs : 2], pieces[1 : 2 * pairs : 2], joints[: 2 * pairs - 1 : 2]
            made, kept = self.join(A, B, tau[at], threads=threads)
            rounds.append((at, kept, len(pieces) % 2))
            pieces = xp.concatenate([made, pieces[2 * pairs :]])
            joints = joints[1::2]
        vdot = xp.empty(self.n)
        inner = outer = xp.zeros((1, 6))
        for at, kept, odd in reversed(rounds):
            pairs = len(kept)
            middle, vdot[at] = self.come_down(kept, inner[:pairs], outer[:pairs], threads=threads)
            ends_in, ends_out = xp.empty((2, 2 * pairs + odd, 6))
            ends_in[: 2 * pairs : 2], ends_in[1 : 2 * pairs : 2] = inner[:pairs], middle
            ends_out[: 2 * pairs : 2], ends_out[1 : 2 * pairs : 2] = middle, outer[:pairs]
            ends_in[2 * pairs :], ends_out[2 * pairs :] = inner[pairs:], outer[pairs:]
            inner, outer = ends_in, ends_out
        return vdot

    def base_seen(self, q: Array) -> Array:
        """Minus the base's acceleration -g, in the frame of the first link."""
        x, y, z = self.gravity
        c, s = self.xp.cos(q), self.xp.sin(q)
        return self.xp.stack([*(0.0 * z,) * 3, c * x + s * y, c * y - s * x, z])


def on_device(sizes: list[int]) -> None:
    """A table of one state on a CUDA device: times from Python, and of the device alone by a graph of the work."""
    import cupy as cp

    def best(work: Callable[[], Any], rounds: int = 20) -> float:
        """Milliseconds, at best, until the result is there."""
        work()
        found = []
        for _ in range(rounds):
            cp.cuda.Device().synchronize()
            start = time.perf_counter()
            work()
            cp.cuda.Device().synchronize()
            found.append(time.perf_counter() - start)
        return 1000 * min(found)

    head = (
        "links",
        "serial, processor, ms",
        "divide and conquer, GPU",
        "as a graph",
        "in pairs of segments",
        "error",
    )
    print("| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    for n in sizes:
        model = mechanism(n, False)
        rng = np.random.default_rng(0)
        host = rng.uniform(-1, 1, n), np.zeros(n), rng.normal(size=n)
        expected = model.forward_dynamics(*host)
        (serial,) = best_ns([Call(partial(model.forward_dynamics, *host))], rounds=10, seconds_each=0.05)
        q, v, tau = map(cp.asarray, host)
        chain = Chain(model, cp)
        found = cp.asnumpy(chain.forward_dynamics(q, tau))
        error = np.abs(found - expected).max() / np.abs(expected).max()
        direct, own = best(partial(chain.forward_dynamics, q, tau)), best(partial(model.forward_dynamics, q, v, tau))
        graph = _as_graph(chain, q, tau, expected, best)
        print(f"| {n} | {serial / 1e6:.2f} | {direct:.2f} | {graph} | {own:.2f} | {error:.0e} |", flush=True)


def _as_graph(chain: Chain, q: Array, tau: Array, expected: Array, best: Callable[..., float]) -> str:
    """Time of the same work recorded once and launched as a whole; why not, where it cannot be recorded."""
    import cupy as cp

    stream = cp.cuda.Stream(non_blocking=True)
    try:
        with stream:
            chain.forward_dynamics(q, tau)  # memory is there, kernels are loaded
            stream.begin_capture()
            found = chain.forward_dynamics(q, tau)
            graph = stream.end_capture()
        taken = best(lambda: graph.launch(stream))
        found = cp.asnumpy(found)
        error = np.abs(found - expected).max() / np.abs(expected).max()
        return f"{taken:.2f} (error {error:.0e})"
    except Exception as error:
        return f"not recorded ({type(error).__name__}: {str(error)[:60]})"


def main() -> None:
    """A table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("n", nargs="*", type=int, help="links")
    parser.add_argument("--gpu", action="store_true", help="on a CUDA device")
    arguments = parser.parse_args()
    if arguments.gpu:
        on_device(arguments.n or [1000, 10_000, 100_000])
        return
    print("| links | serial kernel, µs | divide and conquer, 1 thread | 2 threads | difference, relative |")
    print("|---|---|---|---|---|")
    for n in arguments.n or [1000, 10_000]:
        model = mechanism(n, False)
        rng = np.random.default_rng(0)
        q, v, tau = rng.uniform(-1, 1, n), np.zeros(n), rng.normal(size=n)
        chain = Chain(model)
        expected = model.forward_dynamics(q, v, tau)
        found = chain.forward_dynamics(q, tau, 1)
        error = np.abs(found - expected).max() / np.abs(expected).max()
        calls = [Call(partial(model.forward_dynamics, q, v, tau))]
        calls += [Call(partial(chain.forward_dynamics, q, tau, threads)) for threads in (1, 2)]
        serial, one, two = (ns / 1000 for ns in best_ns(calls, rounds=20, seconds_each=0.05))
        print(f"| {n} | {serial:.0f} | {one:.0f} | {two:.0f} | {error:.0e} |")


if __name__ == "__main__":
    main()
