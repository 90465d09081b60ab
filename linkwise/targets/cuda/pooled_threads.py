"""The kernels of a program in which states wait for each other: those that are done make room for others.

Threads side by side go through a loop until the last of them is done; where most states need a pass or two and some
need a hundred, nearly all threads then wait. So a program whose first loop is of this kind runs as three kernels. The
**first** goes a few times through the loop, ends the states that are done, and leaves the others in a queue. In the
**pool** a thread takes a state from the queue, and the next one when that is done, until there is none. The **last**
ends the states of the queue. What a state needs in later kernels waits in memory, numbers of neighbours in the queue
side by side; what the caller gave is read again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from linkwise.targets.cuda import tile_layout as layouts
from linkwise.targets.cuda.source import Kernel
from linkwise.targets.cuda.statements import StatementScope, Strided, indented
from linkwise.targets.cuda.thread_memory import ThreadKernel
from linkwise.trace.program import Buffer, Program, Statement
from linkwise.trace.waiting import WaitingLoop

PASSES = 2
"""Times that all states go through the loop before those that are not done leave it for the queue."""

HEAD = 2
"""Whole numbers before those of the states in a queue: how many wait, and how many were taken."""

_MORE = ("REAL *waiting", "long long *queue")
_TURN = ("const long long lw_begin", "const long long lw_end")


class PooledKernel(ThreadKernel):
    """The kernels of a program; their last parameters: ``waiting``, ``queue``, ``count``, the first and the last state.

    Args:
        program: with a loop that waits for a flag.
        loop: this loop.
        bits: 64 or 32.
        shared_bytes: shared memory that a block may have.
    """

    def __init__(
        self, program: Program, loop: WaitingLoop, bits: int, shared_bytes: int = layouts.SHARED_BYTES
    ) -> None:
        super().__init__(program, bits, shared_bytes)
        self.loop, self.scope = loop, StatementScope(program)
        needed = {*loop.taken, *loop.brought, *loop.waits}
        given = {buffer.name for buffer in program.buffers if buffer.load} - program.written
        self.starts: dict[str, int] = {}
        """Places of buffers among the numbers of a state that waits."""
        self.memory = 0
        for buffer in program.buffers:
            if buffer.name in needed - given:
                self.starts[buffer.name] = self.memory
                self.memory += buffer.size

    def parts(self) -> list[Kernel]:
        """The three kernels."""
        loop = self.loop
        return [
            self._part((*loop.before, *loop.body, *loop.after), self._first()),
            self._part(loop.body, self._pool()),
            self._part(loop.after, self._last()),
        ]

    def _part(self, statements: Sequence[Statement], inside: Iterator[str]) -> Kernel:
        return self._kernel(statements, inside, _MORE, _TURN)

    def _first(self) -> Iterator[str]:
        threads = self.warps * self.lanes
        yield f"const long long own = lw_begin + (long long)blockIdx.x * {threads} + threadIdx.x;"
        yield "bool inside = own < lw_end;"
        yield "const long long state = inside ? own : lw_end - 1;"
        yield from self.begin(self.program)
        yield from self._brought_in(self.program.buffers)
        yield from self.statements(self.loop.before, self.scope)
        yield "#pragma unroll 1"
        yield f"for (int pass = 0; pass < {PASSES} && {self._any(f'inside && {self._flag} != (REAL)0')}; ++pass) {{"
        yield from indented(self.statements(self.loop.body, self.scope))
        yield "}"
        yield f"if (inside && {self._flag} != (REAL)0) {{"
        yield "    const long long slot = lw_counted(queue);"
        yield f"    queue[{HEAD} + slot] = state;"
        yield from indented(self._moved(self.starts, there=True))
        yield "    inside = false;"
        yield "}"
        yield from self._ended()

    def _pool(self) -> Iterator[str]:
        yield "const long long most = queue[0];"
        yield "long long slot = most;"
        yield "bool inside = false, more = true;"
        yield from self.begin(self.program)
        yield "#pragma unroll 1"
        yield "for (;;) {"
        yield "    if (!inside && more) {"
        yield "        slot = lw_counted(queue + 1);"
        yield "        inside = more = slot < most;"
        yield "        if (inside) {"
        yield f"            const long long state = queue[{HEAD} + slot];"
        yield "            (void)state;"
        for line in (*self._moved(self.loop.taken, there=False), *self._brought_in(self._read_again(self.loop.taken))):
            yield f"            {line}"
        yield "        }"
        yield "    }"
        yield f"    if (!{self._any('inside')}) break;"
        yield from indented(self.statements(self.loop.body, self.scope))
        yield f"    if (inside && {self._flag} == (REAL)0) {{"
        for line in self._moved(self.loop.brought, there=True):
            yield f"        {line}"
        yield "        inside = false;"
        yield "    }"
        yield "}"

    def _last(self) -> Iterator[str]:
        threads = self.warps * self.lanes
        yield "const long long most = queue[0];"
        yield f"if ((long long)blockIdx.x * {threads} >= most) return;"
        yield f"const long long own = (long long)blockIdx.x * {threads} + threadIdx.x;"
        yield "const bool inside = own < most;"
        yield "const long long slot = inside ? own : most - 1;"
        yield f"const long long state = queue[{HEAD} + slot];"
        yield from self.begin(self.program)
        yield from self._moved(self.starts, there=False)
        yield from self._brought_in([b for b in self.program.buffers if b.name not in self.starts])
        yield from self._ended()

    def _ended(self) -> Iterator[str]:
        yield from self.statements(self.loop.after, self.scope)
        yield from self._brought_out()

    def _any(self, condition: str) -> str:
        """Whether a condition holds for any thread of the warp, or of those that stay together."""
        return f"__syncthreads_or({condition})" if self.together else f"__any_sync(LW_MASK, {condition})"

    @property
    def _flag(self) -> str:
        return self.at(self.loop.flag, self.scope).element(0)

    def _read_again(self, names: Sequence[str]) -> list[Buffer]:
        """Those of some buffers that are read again where the caller has them."""
        return [b for b in self.program.buffers if b.name in names and b.name not in self.starts]

    def _moved(self, names: Sequence[str] | dict[str, int], *, there: bool) -> Iterator[str]:
        """Numbers of some buffers, to where they wait or back."""
        for name in names:
            if name in self.starts:
                waiting = Strided(f"waiting + {self.starts[name]} * (lw_end - lw_begin) + slot", "(lw_end - lw_begin)")
                own = self.at(name, self.scope)
                size = self.size(name, self.scope)
                yield from self.copy(own, waiting, size) if there else self.copy(waiting, own, size)
