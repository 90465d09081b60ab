"""A batch over several threads, none of which needs the interpreter.

The threads are started once, from Python, and never come back to it: they wait in compiled code for a job, take shares
of it, and wait again. A call that finds them at work for somebody else does everything by itself. For some microseconds
after a job they look for the next one before they go to sleep: waking a thread takes the system longer than a batch of
thousands of small states. Where there are no POSIX threads, :mod:`linkwise.targets.threads` serves.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from typing import Any

from linkwise.memoized import once
from linkwise.targets import cache
from linkwise.targets.llvm import binding, jit

_SPINS = 4000  # looks at the board, some ten nanoseconds each, before a thread goes to sleep
_SERVE, _RUN, _PREPARE = "linkwise_serve", "linkwise_run", "linkwise_prepare"

_POSIX = (
    "pthread_mutex_init",
    "pthread_mutex_lock",
    "pthread_mutex_unlock",
    "pthread_cond_init",
    "pthread_cond_wait",
    "pthread_cond_broadcast",
    "malloc",
    "free",
)

# The board: the job (null: none), the number of the last job, how many may still join it, how many are at it, how many
# threads there are, how many of them are awake; then a mutex and two conditions (there is work; all have left), with
# room for what any system makes of them.
_BOARD_BYTES = 512
_MUTEX, _WORK, _LEFT = 128, 256, 384


MEMBERS = 4
"""Word of the board that holds the number of threads."""

SHARES = 4  # for each thread


class Job(ctypes.Structure):
    """Work to share: ``kernel`` on rows of arrays."""

    _fields_ = (
        ("kernel", ctypes.c_void_p),
        ("inputs", ctypes.c_int64),
        ("outputs", ctypes.c_int64),
        ("places", ctypes.c_void_p),  # of the inputs, then of the outputs
        ("strides", ctypes.c_void_p),  # bytes of a state, likewise
        ("count", ctypes.c_int64),
        ("share", ctypes.c_int64),  # states of a share, found on the way
        ("scratch_bytes", ctypes.c_int64),
        ("next", ctypes.c_int64),  # the first state that nobody has taken
        ("failed", ctypes.c_int64),  # whether the caller's thread found no scratch memory
        ("smallest", ctypes.c_int64),  # states of a share, at least
        ("step", ctypes.c_int64),  # of which number it is a multiple
        ("worth_waking", ctypes.c_int64),  # states for which threads that sleep are woken
    )


_PLACES = {name: (k, "ptr" if kind is ctypes.c_void_p else "i64") for k, (name, kind) in enumerate(Job._fields_)}


def _at(*names: str) -> str:
    """Addresses of the fields of a job: ``%name.at``."""
    return "\n".join(f"  %{name}.at = getelementptr i64, ptr %job, i64 {_PLACES[name][0]}" for name in names)


def _read(*names: str) -> str:
    """The values of fields of a job: ``%name``."""
    loads = (f"  %{name} = load {_PLACES[name][1]}, ptr %{name}.at, align 8" for name in names)
    return "\n".join((_at(*names), *loads))


_MODULE = f"""; threads at work on batches
declare i32 @pthread_mutex_init(ptr, ptr)
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_init(ptr, ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_broadcast(ptr)
declare ptr @malloc(i64)
declare void @free(ptr)
declare ptr @llvm.ptrmask.p0.i64(ptr, i64)

define void @{_PREPARE}(ptr %board) {{
  %mutex = getelementptr i8, ptr %board, i64 {_MUTEX}
  %work = getelementptr i8, ptr %board, i64 {_WORK}
  %left = getelementptr i8, ptr %board, i64 {_LEFT}
  %a = call i32 @pthread_mutex_init(ptr %mutex, ptr null)
  %b = call i32 @pthread_cond_init(ptr %work, ptr null)
  %c = call i32 @pthread_cond_init(ptr %left, ptr null)
  ret void
}}

; Take shares until none is left; whether there was scratch memory to do so.
define internal i1 @take(ptr %job) {{
entry:
{_read("kernel", "inputs", "outputs", "places", "strides", "count", "share", "scratch_bytes")}
{_at("next")}
  %arrays = add i64 %inputs, %outputs
  %rows = alloca ptr, i64 %arrays, align 8
  %outs = getelementptr ptr, ptr %rows, i64 %inputs
  %room = add i64 %scratch_bytes, 64
  %memory = call ptr @malloc(i64 %room)
  %none = icmp eq ptr %memory, null
  br i1 %none, label %without, label %with
without:
  ret i1 false
with:
  %last = getelementptr i8, ptr %memory, i64 63
  %aligned = call ptr @llvm.ptrmask.p0.i64(ptr %last, i64 -64)
  br label %look
look:
  %start = atomicrmw add ptr %next.at, i64 %share seq_cst
  %any = icmp slt i64 %start, %count
  br i1 %any, label %one, label %done
one:
  %rest = sub i64 %count, %start
  %whole = icmp slt i64 %share, %rest
  %size = select i1 %whole, i64 %share, i64 %rest
  br label %array
array:
  %k = phi i64 [ 0, %one ], [ %k.next, %array ]
  %place.at = getelementptr ptr, ptr %places, i64 %k
  %place = load ptr, ptr %place.at, align 8
  %stride.at = getelementptr i64, ptr %strides, i64 %k
  %stride = load i64, ptr %stride.at, align 8
  %offset = mul i64 %start, %stride
  %row = getelementptr i8, ptr %place, i64 %offset
  %row.at = getelementptr ptr, ptr %rows, i64 %k
  store ptr %row, ptr %row.at, align 8
  %k.next = add i64 %k, 1
  %more = icmp slt i64 %k.next, %arrays
  br i1 %more, label %array, label %run
run:
  call void %kernel(ptr %rows, ptr %outs, i64 %size, ptr %aligned)
  br label %look
done:
  call void @free(ptr %memory)
  ret i1 true
}}

define void @{_SERVE}(ptr %board) {{
entry:
  %number.at = getelementptr i64, ptr %board, i64 1
  %seats.at = getelementptr i64, ptr %board, i64 2
  %busy.at = getelementptr i64, ptr %board, i64 3
  %awake.at = getelementptr i64, ptr %board, i64 5
  %mutex = getelementptr i8, ptr %board, i64 {_MUTEX}
  %work = getelementptr i8, ptr %board, i64 {_WORK}
  %left = getelementptr i8, ptr %board, i64 {_LEFT}
  %l0 = call i32 @pthread_mutex_lock(ptr %mutex)
  br label %look
look:  ; the mutex is ours
  %job = load ptr, ptr %board, align 8
  %seats = load i64, ptr %seats.at, align 8
  %free = icmp sgt i64 %seats, 0
  %posted = icmp ne ptr %job, null
  %join = and i1 %free, %posted
  br i1 %join, label %sit, label %sleep
sleep:
  %w = call i32 @pthread_cond_wait(ptr %work, ptr %mutex)
  br label %look
sit:
  %fewer = sub i64 %seats, 1
  store i64 %fewer, ptr %seats.at, align 8
  %busy = load i64, ptr %busy.at, align 8
  %more = add i64 %busy, 1
  store i64 %more, ptr %busy.at, align 8
  %number = load i64, ptr %number.at, align 8
  %u = call i32 @pthread_mutex_unlock(ptr %mutex)
  %did = call i1 @take(ptr %job)
  %l1 = call i32 @pthread_mutex_lock(ptr %mutex)
  %now = load i64, ptr %busy.at, align 8
  %less = sub i64 %now, 1
  store atomic i64 %less, ptr %busy.at release, align 8
  %all = icmp eq i64 %less, 0
  br i1 %all, label %tell, label %told
tell:
  %b = call i32 @pthread_cond_broadcast(ptr %left)
  br label %told
told:
  %u1 = call i32 @pthread_mutex_unlock(ptr %mutex)
  %up = atomicrmw add ptr %awake.at, i64 1 seq_cst
  br label %spin
spin:
  %n = phi i64 [ 0, %told ], [ %n.next, %spun ]
  %latest = load atomic i64, ptr %number.at acquire, align 8
  %new = icmp ne i64 %latest, %number
  br i1 %new, label %again, label %spun
spun:
  PAUSE
  %n.next = add i64 %n, 1
  %tired = icmp sgt i64 %n.next, {_SPINS}
  br i1 %tired, label %again, label %spin
again:
  %down = atomicrmw sub ptr %awake.at, i64 1 seq_cst
  %l2 = call i32 @pthread_mutex_lock(ptr %mutex)
  br label %look
}}

; Post a job, take shares of it, and stay until everybody has left it; alone if the board is taken, or if all sleep and
; there is too little to do.
define void @{_RUN}(ptr %board, ptr %job, i64 %others) {{
entry:
  %number.at = getelementptr i64, ptr %board, i64 1
  %seats.at = getelementptr i64, ptr %board, i64 2
  %busy.at = getelementptr i64, ptr %board, i64 3
  %awake.at = getelementptr i64, ptr %board, i64 5
{_at("share", "failed")}
  %mutex = getelementptr i8, ptr %board, i64 {_MUTEX}
  %work = getelementptr i8, ptr %board, i64 {_WORK}
  %left = getelementptr i8, ptr %board, i64 {_LEFT}
  ; Shares: some for each thread, none below the smallest, in whole steps.
{_read("count", "smallest", "step", "worth_waking")}
  %threads = add i64 %others, 1
  %pieces = mul i64 %threads, {SHARES}
  %above = add i64 %count, %pieces
  %above.last = sub i64 %above, 1
  %even = sdiv i64 %above.last, %pieces
  %few = icmp slt i64 %even, %smallest
  %wanted = select i1 %few, i64 %smallest, i64 %even
  %wanted.above = add i64 %wanted, %step
  %wanted.last = sub i64 %wanted.above, 1
  %steps = sdiv i64 %wanted.last, %step
  %share = mul i64 %steps, %step
  store i64 %share, ptr %share.at, align 8
  %large = icmp sge i64 %count, %worth_waking
  %awake = load atomic i64, ptr %awake.at acquire, align 8
  %some.awake = icmp sgt i64 %awake, 0
  %called = or i1 %large, %some.awake
  br i1 %called, label %ask, label %by.myself
ask:
  %l0 = call i32 @pthread_mutex_lock(ptr %mutex)
  %other = load ptr, ptr %board, align 8
  %taken = icmp ne ptr %other, null
  br i1 %taken, label %leave, label %post
leave:
  %u0 = call i32 @pthread_mutex_unlock(ptr %mutex)
  br label %by.myself
by.myself:
  %did0 = call i1 @take(ptr %job)
  %not0 = xor i1 %did0, true
  %failed0 = zext i1 %not0 to i64
  store i64 %failed0, ptr %failed.at, align 8
  ret void
post:
  store ptr %job, ptr %board, align 8
  store i64 %others, ptr %seats.at, align 8
  %number = load i64, ptr %number.at, align 8
  %following = add i64 %number, 1
  store atomic i64 %following, ptr %number.at release, align 8
  %b = call i32 @pthread_cond_broadcast(ptr %work)
  %u1 = call i32 @pthread_mutex_unlock(ptr %mutex)
  %did = call i1 @take(ptr %job)
  %not = xor i1 %did, true
  %failed = zext i1 %not to i64
  store i64 %failed, ptr %failed.at, align 8
  %l1 = call i32 @pthread_mutex_lock(ptr %mutex)
  store i64 0, ptr %seats.at, align 8
  %u2 = call i32 @pthread_mutex_unlock(ptr %mutex)
  br label %spin
spin:  ; those still at it are at their last share
  %n = phi i64 [ 0, %post ], [ %n.next, %spun ]
  %there = load atomic i64, ptr %busy.at acquire, align 8
  %gone = icmp eq i64 %there, 0
  br i1 %gone, label %wait, label %spun
spun:
  PAUSE
  %n.next = add i64 %n, 1
  %tired = icmp sgt i64 %n.next, {_SPINS}
  br i1 %tired, label %wait, label %spin
wait:
  %l2 = call i32 @pthread_mutex_lock(ptr %mutex)
  br label %look
look:
  %still = load i64, ptr %busy.at, align 8
  %some = icmp sgt i64 %still, 0
  br i1 %some, label %sleep, label %over
sleep:
  %w = call i32 @pthread_cond_wait(ptr %left, ptr %mutex)
  br label %look
over:
  store ptr null, ptr %board, align 8
  %u3 = call i32 @pthread_mutex_unlock(ptr %mutex)
  ret void
}}
"""


def _text(machine: binding.Machine) -> str:
    """The module, with the instruction that a processor has for those who wait."""
    x86, arm = ("llvm.x86.sse2.pause", "", ""), ("llvm.aarch64.hint", "i32", "i32 1")
    hints = {"x86_64": x86, "aarch64": arm, "arm64": arm}
    known = next((hint for name, hint in hints.items() if machine.triple.startswith(name)), None)
    if known is None:
        return _MODULE.replace("PAUSE", "")
    name, kind, value = known
    return _MODULE.replace("PAUSE", f"call void @{name}({value})") + f"declare void @{name}({kind})\n"


class Crew:
    """The threads of this process."""

    def __init__(self) -> None:
        machine = binding.host()
        import llvmlite

        key = f"crew, llvmlite {llvmlite.__version__}\n{machine.identity}\n{_text(machine)}"
        obj = cache.get(key, lambda: bytes(jit.compile_text(_text(machine), machine)))
        found = dict(zip(_POSIX, jit.library_addresses(_POSIX), strict=True))
        self._library = jit.load(obj, (_SERVE, _RUN, _PREPARE), found)
        self._board = ctypes.create_string_buffer(_BOARD_BYTES + 64)
        start = ctypes.addressof(self._board)
        self._at = start + -start % 64
        self._prepare = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self._library[_PREPARE])
        self._serve = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self._library[_SERVE])
        self._call = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(self._library[_RUN])
        self._members = ctypes.c_int64.from_address(self._at + 8 * MEMBERS)
        self.begin()

    def begin(self) -> None:
        """Clear the board: no job, no threads.

        So too in a forked process, which has none of its parent's threads. The board and the code stay where they are,
        since builtin functions know their addresses; they find no members there, and ask for new ones.
        """
        ctypes.memset(self._at, 0, _BOARD_BYTES)
        self._prepare(self._at)
        self._guard = threading.Lock()

    @property
    def places(self) -> tuple[int, int]:
        """Addresses, for code that calls the crew by itself: of the function that runs a job, and of the board."""
        return self._library[_RUN], self._at

    def ensure(self, members: int) -> None:
        """Start threads until there are so many."""
        with self._guard:
            while self._members.value < members:
                name = f"linkwise-{self._members.value + 1}"
                threading.Thread(target=self._serve, args=(self._at,), name=name, daemon=True).start()
                self._members.value += 1

    def run(self, job: Job, others: int) -> None:
        """``kernel(in, out, count, scratch)`` on shares of the states; returns when all are done."""
        self.ensure(others)
        self._call(self._at, ctypes.addressof(job), others)
        if job.failed:
            raise MemoryError(f"no {job.scratch_bytes} bytes of memory for the lanes of a batch")


_crews: dict[str, Any] = {}


def crew() -> Crew | None:
    """The crew of this process; None where there are no POSIX threads."""
    if sys.platform == "win32":
        return None
    found: Crew = once(_crews, "here", Crew)
    return found


def _begin_in_child() -> None:
    for one in _crews.values():
        one.begin()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_in_child)
