"""Two tiers of code: a first answer at once, and the fastest code soon after.

Optimising a large module takes LLVM seconds. So a module that nobody has compiled yet is interpreted first
(:mod:`linkwise.targets.llvm.interpreted`), or compiled quickly where it is short or its machine rounds in other ways,
and serves the first calls; threads beside optimise it, and from then on that code answers the same calls. Both
round alike: results do not depend on which of the two computed them.

Whoever holds an address of the library holds that of a gate, a few instructions that jump to wherever its word points;
the word is all that changes. ``LINKWISE_TIER``, in the environment, asks for one tier: ``optimised`` or ``quick``.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

from linkwise.errors import InputError
from linkwise.memoized import others_make
from linkwise.targets import cache
from linkwise.targets.llvm import jit
from linkwise.targets.llvm.binding import Machine, Switches, optimising

VARIABLE = "LINKWISE_TIER"
_TIERS = ("both", "optimised", "quick")

# Lines of a module that LLVM optimises in about a tenth of a second: not worth two tiers.
_SHORT = 5000

# Threads that optimise at a time: each may hold a hundred megabytes meanwhile.
_MOST_THREADS = 4

# Seconds between two looks at what other threads do; looks at which they must make nothing; looks in all.
_MOMENT = 0.01
_QUIET = 3
_LONGEST_WAIT = 200


class Module(NamedTuple):
    """LLVM text, and whether its instructions are to stay in their order."""

    text: str
    in_order: bool = False

    @property
    def switches(self) -> Switches:
        """LLVM's switches, under which it is optimised."""
        return jit.switches(self.text, self.in_order)


Writer = Callable[[], Module]


Word = ctypes.Array[ctypes.c_int64]


class QuickModule(NamedTuple):
    """LLVM text that compiles at once, since it interprets what is long in it.

    Args:
        text: the module.
        imports: addresses, in this process, of what it refers to besides what the optimised one does.
        held: owners of these addresses.
        words: for functions inside, a word each: what finds an address there calls that instead. So optimised code
            takes over while a call is on its way.
    """

    text: str
    imports: Mapping[str, int]
    held: tuple[object, ...]
    words: Mapping[str, Word]


QuickWriter = Callable[[], QuickModule]


class EntryPoints(NamedTuple):
    """Functions of a module that are called from outside.

    Args:
        gated: those that compute, with the number of their arguments, which are pointers and whole numbers; what they
            return is one of these, or nothing.
        others: those that tell what both tiers have in common.
    """

    gated: Mapping[str, int]
    others: tuple[str, ...] = ()


class Library:
    """Addresses of the entries of a module, in one tier for good or in two after one another."""

    def __init__(
        self,
        entries: EntryPoints,
        code: jit.LoadedObject,
        machine: Machine | None = None,
        quick: QuickModule | None = None,
    ) -> None:
        self._entries, self._quick = entries, quick  # the code reads what this holds
        self._held = jit.unseen(code)
        self._job: _CompilationJob | None = None
        self._addresses = {name: code[name] for name in (*entries.gated, *entries.others)}
        if machine is not None:
            self._words = (ctypes.c_int64 * len(entries.gated))(*(code[name] for name in entries.gated))
            gates = _gates(entries, machine, ctypes.addressof(self._words))
            self._held = jit.unseen(code, gates)
            self._addresses |= {name: gates[name] for name in entries.gated}

    def __getitem__(self, name: str) -> int:
        return self._addresses[name]

    def take_over(self, code: jit.LoadedObject) -> None:
        """Let this code answer from here on; the other is kept, since a thread may still be in it."""
        self._held, self._job = jit.unseen(*self._held, code), None
        for k, name in enumerate(self._entries.gated):
            self._words[k] = code[name]
        for name, word in self._quick.words.items() if self._quick else ():
            word[0] = code[name]

    def expect(self, job: _CompilationJob) -> None:
        """Expect the optimised code from a job."""
        self._job = job

    def settle(self) -> None:
        """Wait for the optimised code."""
        job = self._job
        if job is not None:
            job.wait()


def _gates(entries: EntryPoints, machine: Machine, words: int) -> jit.LoadedObject:
    """For each entry a function that hands its arguments on to where its word points."""
    lines = ["@words = external global ptr"]
    for k, (name, count) in enumerate(entries.gated.items()):
        taken = ", ".join(f"i64 %a{i}" for i in range(count))
        lines += [
            f"define i64 @{name}({taken}) nounwind {{",
            f"  %place = getelementptr ptr, ptr @words, i64 {k}",
            "  %to = load atomic ptr, ptr %place monotonic, align 8",
            f"  %result = musttail call i64 %to({taken})",
            "  ret i64 %result",
            "}",
        ]
    return jit.load(jit.compile_quickly("\n".join(lines), machine), tuple(entries.gated), {"words": words})


def tier() -> str:
    """Tiers that code is compiled in: those that the environment asks for, or both."""
    asked = os.environ.get(VARIABLE, "") or "both"
    if asked not in _TIERS:
        raise InputError(f"the environment variable {VARIABLE} has no such tier", got=repr(asked), allowed=_listed())
    return "optimised" if asked == "both" and _waiting.depth else asked


def _listed() -> str:
    return ", ".join(repr(name) for name in _TIERS)


class _Waiting(threading.local):
    """Number of a thread's callers that wait for optimised code."""

    depth = 0


_waiting = _Waiting()


def cores() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def optimised_only(wanted: bool = True) -> Iterator[None]:
    """Optimise at once, if wanted, all that this thread compiles inside; not if the environment asks for quick code."""
    _waiting.depth += wanted
    try:
        yield
    finally:
        _waiting.depth -= wanted


_libraries: weakref.WeakValueDictionary[str, Library] = weakref.WeakValueDictionary()


def library(
    key: str,
    write: Writer,
    machine: Machine,
    entries: EntryPoints,
    imports: Mapping[str, int],
    quickly: QuickWriter | None = None,
) -> Library:
    """A module's library, from those of this process, from the cache, or compiled.

    Args:
        key: of the module in the cache.
        write: gives the module, if it must be compiled.
        machine: what it is compiled for.
        entries: the functions asked for.
        imports: addresses of what is called outside.
        quickly: gives another module for the first calls, where the module is long.
    """
    known = _libraries.get(key)
    if known is None:
        known = _libraries[key] = _made(key, write, machine, entries, imports, quickly)
    if tier() == "optimised":
        known.settle()
    return known


def _made(
    key: str,
    write: Writer,
    machine: Machine,
    entries: EntryPoints,
    imports: Mapping[str, int],
    quickly: QuickWriter | None,
) -> Library:
    names, asked = (*entries.gated, *entries.others), tier()
    obj = cache.load(key)
    if obj is None and asked == "quick" and quickly is None:
        obj = cache.get(f"{key}, quickly", lambda: jit.compile_quickly(write().text, machine))
    if obj is not None:
        return Library(entries, jit.load(obj, names, imports))
    if asked != "optimised" and quickly is not None:
        first = quickly()
    else:
        module = write()
        short = asked == "both" and module.text.count("\n") < _SHORT
        # A short one is not worth two tiers, unless it had to wait for another.
        if asked == "optimised" or (short and not optimising.must_wait(module.switches)):
            return Library(entries, jit.load(_optimised(key, module, machine), names, imports))
        first, write = QuickModule(module.text, {}, (), {}), lambda: module
    code = jit.load(jit.compile_quickly(first.text, machine), names, {**imports, **first.imports})
    if asked == "quick":
        return Library(entries, code, quick=first)
    made = Library(entries, code, machine, first)

    def compiled(module: Module) -> jit.LoadedObject:
        text = module.text
        for name in first.words:
            text = text.replace(f"define internal void @{name}(", f"define dso_local void @{name}(")
        obj = _optimised(key, module._replace(text=text), machine)
        return jit.load(obj, (*names, *first.words), imports)

    job = _CompilationJob(made, write, compiled)
    made.expect(job)
    _workshop.submit(job)
    return made


def _optimised(key: str, module: Module, machine: Machine) -> bytes:
    obj = bytes(jit.compile_text(module.text, machine, in_order=module.in_order))
    cache.store(key, obj)
    return obj


class _CompilationJob:
    """Code to be made, for a library that may be gone by then: first written, then compiled."""

    def __init__(self, made: Library, write: Writer, compiled: Callable[[Module], jit.LoadedObject]) -> None:
        self._library, self._write, self._compiled = weakref.ref(made), write, compiled
        self._module: Module | None = None
        self.begin()

    def begin(self) -> None:
        """Be awaited by nobody, and not done."""
        self.awaited, self.done = threading.Event(), threading.Event()

    def wait(self) -> None:
        """Wait until it is done."""
        self.awaited.set()
        self.done.wait()

    @property
    def must_wait(self) -> bool:
        """Whether it would have to wait for what other threads optimise."""
        return self._module is not None and optimising.must_wait(self._module.switches)

    def _give_way(self) -> None:
        """Let threads that make values for their first answers do so, unless one waits for this or it takes long.

        Writing a module is work for Python, of which one thread runs at a time.
        """
        quiet = 0
        for _ in range(_LONGEST_WAIT):
            quiet = 0 if others_make() else quiet + 1
            if quiet == _QUIET or self._library() is None or self.awaited.wait(_MOMENT):
                return

    def go_on(self) -> None:
        """Write the module, or if it is there, compile it, and let the library use it."""
        try:
            if self._module is None:
                self._give_way()
                self._module = self._write() if self._library() is not None else None
                if self._module is not None:
                    return
            elif self._library() is not None:
                code = self._compiled(self._module)
                library = self._library()
                if library is not None:
                    library.take_over(code)
        except Exception:  # the quick code goes on; what happened is shown as for any thread
            threading.excepthook(threading.ExceptHookArgs((*sys.exc_info(), threading.current_thread())))
        self.done.set()


class _Workshop:
    """Threads that optimise modules, each one after the other, and end when there is none left."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._guard = threading.Lock()
        self._left: list[_CompilationJob] = []  # that no thread is at
        self._taken: list[_CompilationJob] = []
        self.threads: set[threading.Thread] = set()

    def submit(self, job: _CompilationJob) -> None:
        """Put a job behind the others."""
        with self._guard:
            self._left.append(job)
            if len(self.threads) < min(_MOST_THREADS, cores()):
                thread = threading.Thread(target=self._work, name="linkwise-optimiser", daemon=False)
                self.threads.add(thread)
                try:
                    thread.start()
                except RuntimeError:  # no threads any more: the interpreter is about to end
                    self.threads.discard(thread)
                    self._drop()

    def _work(self) -> None:
        while (job := self._next()) is not None:
            job.go_on()
            with self._guard:
                self._taken.remove(job)
                if not job.done.is_set():
                    self._left.insert(0, job)

    def _next(self) -> _CompilationJob | None:
        """A job that somebody waits for, the first that can go on at once, or the first of all."""
        with self._guard:
            # A program that ends waits for what is being optimised, which the next process finds, and no longer.
            if not threading.main_thread().is_alive():
                self._drop()
            if not self._left:
                self.threads.discard(threading.current_thread())
                return None
            job = min(self._left, key=lambda job: (not job.awaited.is_set(), job.must_wait))
            self._left.remove(job)
            self._taken.append(job)
            return job

    def _drop(self) -> None:
        for job in self._left:
            job.done.set()
        self._left.clear()

    def after_fork(self) -> None:
        """Begin anew in a child, which has no such threads, with what was not finished."""
        left = [job for job in (*self._taken, *self._left) if not job.done.is_set()]
        self._begin()
        for job in left:
            job.begin()
            self.submit(job)


_workshop = _Workshop()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_workshop.after_fork)
