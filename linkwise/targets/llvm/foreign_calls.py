"""Foreign calls of XLA: the compiler behind JAX calls machine code by a handler, which is LLVM text written here.

One handler serves all functions. XLA hands it a frame: arguments and results as buffers, and one attribute, the number
of the function; a table leads from there to the entry of the function's kernel. So there is nothing to compile for a
function but the kernel that it has already, and nothing of Python runs in a call. The frame's layout is the "XLA FFI C
API", whose version the handler looks at: it knows that of major version 0.

On a GPU buffers are addresses there. The first call of a function goes to Python with XLA's own stream, which compiles
and launches; where that was one kernel, the driver's function for launches is the entry from then on.
"""

from __future__ import annotations

import ctypes
import hashlib
import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Literal

import numpy as np

from linkwise.dataclass import dataclass, replace
from linkwise.errors import LinkwiseError
from linkwise.targets import DirectLaunch
from linkwise.targets import cache as disk
from linkwise.targets.llvm import binding, jit
from linkwise.targets.llvm.ir import FunctionText, module_text
from linkwise.targets.llvm.source import attributes

ENTRY, ATTRIBUTE = "linkwise_foreign_call", "function"
MOST_ARRAYS = 128
MAJOR = 0
"""Major version of the interface whose layouts are written here."""

_ON_STACK = 16 * 1024  # bytes of scratch memory up to which the stack has room

# Offsets in bytes. A frame, and the structures in it of arguments, results and attributes:
_EXTENSION, _API, _CONTEXT = 8, 16, 24
_ARGUMENTS, _ARGUMENT_LIST, _RESULTS, _RESULT_LIST, _ATTRIBUTES, _ATTRIBUTE_LIST = 56, 72, 96, 112, 136, 160
_FRAME_BYTES = 168
# A buffer; a scalar attribute; an extension that asks about the handler, and its answer; the interface itself.
_DATA, _RANK, _DIMS = 24, 32, 40
_SCALAR_VALUE = 8
_EXTENSION_KIND, _METADATA = 8, 24
_ANSWER_MAJOR, _ANSWER_MINOR, _ANSWER_TRAITS = 24, 28, 32
_API_MAJOR, _API_MINOR, _CREATE_ERROR, _GET_STREAM = 32, 36, 48, 80

_INVALID, _NOT_FOUND, _FAILED_PRECONDITION, _EXHAUSTED, _INTERNAL = 3, 5, 9, 8, 13  # codes of errors

_MESSAGES = {
    "version": (_FAILED_PRECONDITION, f"linkwise knows version {MAJOR}.x of XLA's foreign calls, and this is another"),
    "unknown": (
        _NOT_FOUND,
        "linkwise does not know this function in this process: lower it here once, jax.jit(f).lower(...), before an "
        "exported program that calls it",
    ),
    "arrays": (_INVALID, "linkwise was given another number of arrays than the function has"),
    "memory": (_EXHAUSTED, "linkwise found no memory for the lanes of a batch"),
    "launch": (_INTERNAL, "linkwise could not launch on the GPU; the reason is printed above"),
    "driver": (_INTERNAL, "the CUDA driver did not launch a kernel of linkwise"),
}

Kind = Literal["batch", "program", "launch", "kernel"]
_KINDS: tuple[Kind, ...] = ("batch", "program", "launch", "kernel")


@dataclass(frozen=True)
class ForeignEntry:
    """Entry of a kernel as foreign calls use it.

    Args:
        kind: calling convention: that of a batch kernel, of a program's kernel, of a launch on a GPU written in Python,
            or of the driver's ``cuLaunchKernel``.
        address: of the code.
        inputs: number of arrays that are read.
        outputs: number of arrays that are filled.
        rank: axes of the first result, batch axes left out.
        scratch_bytes: working memory that a call needs; on a GPU, shared memory of a block.
        table: last argument of a program's kernel, number that a launch is known by, or handle of a driver's kernel.
        order: for each array that the code is handed, its place among inputs and outputs.
        held: owner of the code.
        block: threads of a block on a GPU, and states that it computes.
    """

    kind: Kind
    address: int
    inputs: int
    outputs: int
    rank: int
    scratch_bytes: int
    table: int
    order: tuple[int, ...]
    held: object
    block: tuple[int, int] = (0, 0)

    def words(self) -> Any:
        """Numbers that the handler reads."""
        own = [_KINDS.index(self.kind), self.inputs, self.outputs, self.rank, self.address, self.scratch_bytes]
        words = [*own, self.table, *self.block, len(self.order), *self.order]
        return (ctypes.c_int64 * len(words))(*words)


_KIND, _INPUTS, _OUTPUTS, _CORE, _ADDRESS, _SCRATCH, _TABLE, _THREADS, _STATES, _COUNT, _ORDER = range(11)


def available() -> bool:
    """Whether the handler can serve here: 64-bit processes, with a stack that needs no help to grow."""
    return sys.maxsize > 2**32 and sys.platform != "win32" and not binding.checked_builds()


def number_of(*parts: object) -> int:
    """Number that a function is known by, the same in every process: a digest of what decides its results."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part if isinstance(part, bytes) else repr(part).encode())
        digest.update(b"\0")
    return int.from_bytes(digest.digest()[:8], "little", signed=True)


class ForeignCalls:
    """The handler, loaded, and the table of functions that it knows."""

    def __init__(self) -> None:
        machine = binding.host()
        obj = disk.get(
            f"{module(machine)}\n{machine.identity}", lambda: bytes(jit.compile_text(module(machine), machine))
        )
        imports = dict(zip(("malloc", "free"), jit.library_addresses(("malloc", "free")), strict=True))
        self._home = ctypes.c_void_p()
        imports["linkwise_functions"] = ctypes.addressof(self._home)
        self._library = jit.load(obj, (ENTRY,), imports)
        self._entries: dict[int, tuple[ForeignEntry, Any]] = {}
        self._tables: list[Any] = []  # all are kept, and all words: a call may still read an old one
        self._publish()

    @property
    def address(self) -> int:
        """Address of the handler."""
        return self._library[ENTRY]

    def capsule(self) -> Any:
        """The handler as Python objects carry addresses."""
        return _new_capsule(self.address, None, None)

    def knows(self, number: int) -> bool:
        """Whether a function has been added."""
        return number in self._entries

    def add(self, number: int, entry: ForeignEntry) -> None:
        """Make a function known; the handler finds it from now on, for as long as the process lives."""
        if len(entry.order) > MOST_ARRAYS:
            raise LinkwiseError("a foreign call has too many arrays", got=len(entry.order), allowed=f"≤ {MOST_ARRAYS}")
        words = entry.words()
        self._entries[number] = (entry, words)
        self._tables.append(words)
        self._publish()

    def forget(self) -> None:
        """Forget all functions."""
        self._entries.clear()
        self._publish()

    def _publish(self) -> None:
        """A table at most half full, put in the place of the last one by one store."""
        size = 8
        while size < 2 * len(self._entries) + 2:
            size *= 2
        table = (ctypes.c_int64 * (1 + 2 * size))(size - 1)
        for number, (_, words) in self._entries.items():
            place = number & (size - 1)
            while table[2 + 2 * place]:
                place = (place + 1) & (size - 1)
            table[1 + 2 * place], table[2 + 2 * place] = number, ctypes.addressof(words)
        self._tables.append(table)
        self._home.value = ctypes.addressof(table)


_new_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
    ("PyCapsule_New", ctypes.pythonapi)
)


@cache
def foreign_calls() -> ForeignCalls:
    """The handler of this process."""
    return ForeignCalls()


Launch = Callable[[int, Sequence[Any], int], DirectLaunch | None]
"""Launch on a GPU: of a stream (its address), addresses of inputs and outputs, and a number of states.

It returns how the driver can be asked directly the next time, if it can."""

_LAUNCH = ctypes.CFUNCTYPE(
    ctypes.c_int32, ctypes.c_int64, ctypes.c_void_p, ctypes.POINTER(ctypes.c_uint64), ctypes.c_int64
)
_launches: dict[int, tuple[Launch, ForeignEntry]] = {}


def _launch(number: int, stream: int | None, places: Any, count: int) -> int:
    """Status of a launch: zero, if it went well. An error goes to where Python reports those that nobody can catch."""
    launch, entry = _launches[number]
    try:
        direct = launch(stream or 0, [np.uint64(places[k]) for k in range(len(entry.order))], count)
        if direct is not None:
            foreign_calls().add(number, direct_entry(entry, direct))
    except Exception:
        sys.excepthook(*sys.exc_info())
        return 1
    return 0


_launched_by_xla = _LAUNCH(_launch)


def launch_entry(number: int, launch: Launch, inputs: int, outputs: int, rank: int) -> ForeignEntry:
    """Entry by which XLA's stream reaches a launch written in Python."""
    address = int(ctypes.cast(_launched_by_xla, ctypes.c_void_p).value or 0)
    order = tuple(range(inputs + outputs))
    entry = ForeignEntry("launch", address, inputs, outputs, rank, 0, number, order, launch)
    _launches[number] = (launch, entry)
    return entry


def direct_entry(entry: ForeignEntry, direct: DirectLaunch) -> ForeignEntry:
    """Entry that goes to the driver in the place of one that goes to Python."""
    return replace(
        entry,
        kind="kernel",
        address=direct.address,
        scratch_bytes=direct.shared_bytes,
        table=direct.handle,
        block=(direct.threads, direct.states),
    )


def module(machine: binding.Machine) -> str:
    """The handler's text."""
    texts = [_constant(name, message) for name, (_, message) in _MESSAGES.items()]
    others = ["@linkwise_functions = external global ptr", *texts, attributes(machine)]
    return "; foreign calls\n" + module_text([_Handler().write()], others)


def _constant(name: str, message: str) -> str:
    data = message.encode() + b"\0"
    codes = "".join("\\" + f"{byte:02X}" for byte in data)
    return f'@message.{name} = private constant [{len(data)} x i8] c"{codes}"'


class _Handler:
    """Writes the handler."""

    def __init__(self) -> None:
        self.f = FunctionText(f"define ptr @{ENTRY}(ptr %frame) #0")

    def _field(self, thing: str, kind: str, offset: int) -> str:
        return self.f.load(kind, self.f.address("i8", thing, offset), 4 if kind == "i32" else 8)

    def _set(self, thing: str, kind: str, offset: int, value: str) -> None:
        self.f.store(kind, value, self.f.address("i8", thing, offset), 4 if kind == "i32" else 8)

    def _require(self, holds: str, otherwise: str) -> None:
        further = self.f.name()[1:]
        self.f.do(f"br i1 {holds}, label %{further}, label %{otherwise}")
        self.f.label(further)

    def _word(self, place: int) -> str:
        return self.f.load("i64", self.f.address("i64", "%function", place), 8)

    def write(self) -> FunctionText:
        """Answer what is asked about the handler, or find the function, its arrays and its states, and call it."""
        f = self.f
        f.label("entry")
        f.do(f"%places = alloca [{MOST_ARRAYS} x ptr], align 8")
        f.do(f"%passed = alloca [{MOST_ARRAYS + 1} x ptr], align 8")
        f.do(f"%room = alloca [{_ON_STACK} x i8], align 64")
        f.do("%told = alloca [4 x i64], align 8")
        f.do(f"%api = load ptr, ptr {f.address('i8', '%frame', _API)}, align 8")
        extension = self._field("%frame", "ptr", _EXTENSION)
        f.do(f"br i1 {f.emit(f'icmp eq ptr {extension}, null')}, label %call, label %extended")
        f.label("extended")
        asked = f.emit(f"icmp eq i32 {self._field(extension, 'i32', _EXTENSION_KIND)}, 1")
        f.do(f"br i1 {asked}, label %asked, label %call")
        f.label("asked")
        self._answer(self._field(extension, "ptr", _METADATA))
        f.label("call")
        self._find()
        self._take_arrays()
        self._count()
        kind = self._word(_KIND)
        f.do(f"switch i64 {kind}, label %launch [ i64 0, label %memory i64 1, label %memory ]")
        self._run(kind)
        self._on_stream()
        for name in _MESSAGES:
            self._error(name)
        return f

    def _answer(self, answer: str) -> None:
        """The version of the caller, if it is one that we know; the layouts of a major version only grow."""
        f = self.f
        major, minor = self._field("%api", "i32", _API_MAJOR), self._field("%api", "i32", _API_MINOR)
        self._require(f.emit(f"icmp eq i32 {major}, {MAJOR}"), "error.version")
        size = self._field("%frame", "i64", 0)
        self._require(f.emit(f"icmp uge i64 {size}, {_FRAME_BYTES}"), "error.version")
        self._set(answer, "i32", _ANSWER_MAJOR, major)
        self._set(answer, "i32", _ANSWER_MINOR, minor)
        self._set(answer, "i32", _ANSWER_TRAITS, "0")
        f.do("ret ptr null")

    def _find(self) -> None:
        """The function, by open addressing."""
        f = self.f
        self._require(f.emit(f"icmp sgt i64 {self._field('%frame', 'i64', _ATTRIBUTES)}, 0"), "error.unknown")
        first = f.load("ptr", self._field("%frame", "ptr", _ATTRIBUTE_LIST), 8)
        number = f.load("i64", self._field(first, "ptr", _SCALAR_VALUE), 8)
        f.do("%table = load atomic ptr, ptr @linkwise_functions acquire, align 8")
        mask = f.load("i64", "%table", 8)
        begin = f.emit(f"and i64 {number}, {mask}")
        f.do("br label %start")
        f.label("start")
        f.do("br label %probe")
        f.label("probe")
        f.do(f"%slot = phi i64 [ {begin}, %start ], [ %slot.next, %onward ]")
        pair = f.emit("shl i64 %slot, 1")
        behind = f.address("i64", "%table", f.emit(f"add i64 {pair}, 2"))
        f.do(f"%function = load ptr, ptr {behind}, align 8")
        self._require(f.emit("icmp ne ptr %function, null"), "error.unknown")
        known = f.load("i64", f.address("i64", "%table", f.emit(f"add i64 {pair}, 1")), 8)
        f.do(f"br i1 {f.emit(f'icmp eq i64 {known}, {number}')}, label %found, label %onward")
        f.label("onward")
        f.do(f"%slot.next = and i64 {f.emit('add i64 %slot, 1')}, {mask}")
        f.do("br label %probe")
        f.label("found")

    def _take_arrays(self) -> None:
        """Data of the buffers, in the order in which the code wants them."""
        f = self.f
        inputs, outputs = self._word(_INPUTS), self._word(_OUTPUTS)
        for offset, number in ((_ARGUMENTS, inputs), (_RESULTS, outputs)):
            self._require(f.emit(f"icmp eq i64 {self._field('%frame', 'i64', offset)}, {number}"), "error.arrays")
        given, filled = (self._field("%frame", "ptr", offset) for offset in (_ARGUMENT_LIST, _RESULT_LIST))
        with f.counted(self._word(_COUNT), "%k", block="one.array", after="taken"):
            place = f.load("i64", f.address("i64", "%function", f.emit(f"add i64 %k, {_ORDER}")), 8)
            is_input = f.emit(f"icmp slt i64 {place}, {inputs}")
            behind = f.emit(f"sub i64 {place}, {inputs}")
            at_input, at_output = f.address("ptr", given, place), f.address("ptr", filled, behind)
            buffer = f.load("ptr", f.emit(f"select i1 {is_input}, ptr {at_input}, ptr {at_output}"), 8)
            f.store("ptr", self._field(buffer, "ptr", _DATA), f.address("ptr", "%places", "%k"), 8)

    def _count(self) -> None:
        """The number of states: the product of the batch axes of the first result."""
        f = self.f
        first = f.load("ptr", self._field("%frame", "ptr", _RESULT_LIST), 8)
        dims = self._field(first, "ptr", _DIMS)
        axes = f.emit(f"sub i64 {self._field(first, 'i64', _RANK)}, {self._word(_CORE)}")
        f.do("%count.at = getelementptr i64, ptr %told, i64 0")
        f.store("i64", "1", "%count.at", 8)
        with f.counted(axes, "%axis", block="one.axis", after="counted"):
            size = f.load("i64", f.address("i64", dims, "%axis"), 8)
            product = f.emit(f"mul i64 {f.load('i64', '%count.at', 8)}, {size}")
            f.store("i64", product, "%count.at", 8)
        f.do("%count = load i64, ptr %count.at, align 8")

    def _run(self, kind: str) -> None:
        """The code, with working memory on the stack or, where that is too small, from the heap."""
        f = self.f
        f.label("memory")
        size = self._word(_SCRATCH)
        f.do(f"br i1 {f.emit(f'icmp sle i64 {size}, {_ON_STACK}')}, label %code, label %heap")
        f.label("heap")
        taken = f.call("ptr", "malloc", [("i64", f.emit(f"add i64 {size}, 64"))])
        address = f.emit(f"ptrtoint ptr {taken} to i64")
        gap = f.emit(f"and i64 {f.emit(f'sub i64 0, {address}')}, 63")
        aligned = f.address("i8", taken, gap)
        f.do(f"br i1 {f.emit(f'icmp eq ptr {taken}, null')}, label %error.memory, label %code")
        f.label("code")
        f.do(f"%scratch = phi ptr [ %room, %memory ], [ {aligned}, %heap ]")
        f.do(f"%owned = phi ptr [ null, %memory ], [ {taken}, %heap ]")
        entry = f.load("ptr", f.address("i64", "%function", _ADDRESS), 8)
        f.do(f"br i1 {f.emit(f'icmp eq i64 {kind}, 0')}, label %batch, label %program")
        f.label("batch")
        filled = f.address("ptr", "%places", self._word(_INPUTS))
        f.do(f"call void {entry}(ptr %places, ptr {filled}, i64 %count, ptr %scratch)")
        f.do("br label %ran")
        f.label("program")
        f.do(f"call void {entry}(ptr %places, i64 0, i64 %count, ptr %scratch, i64 {self._word(_TABLE)})")
        f.do("br label %ran")
        f.label("ran")
        f.do(f"br i1 {f.emit('icmp eq ptr %owned, null')}, label %done, label %give.back")
        f.label("give.back")
        f.declare("declare void @free(ptr)")
        f.do("call void @free(ptr %owned)")
        f.do("br label %done")
        f.label("done")
        f.do("ret ptr null")

    def _on_stream(self) -> None:
        """A launch on XLA's own stream."""
        f = self.f
        f.label("launch")
        for place, (kind, value) in enumerate(
            [("i64", "32"), ("ptr", "null"), ("ptr", self._field("%frame", "ptr", _CONTEXT)), ("ptr", "null")]
        ):
            self._set("%told", kind, 8 * place, value)
        failed = f.emit(f"call ptr {self._field('%api', 'ptr', _GET_STREAM)}(ptr %told)")
        f.do(f"br i1 {f.emit(f'icmp eq ptr {failed}, null')}, label %streamed, label %no.stream")
        f.label("no.stream")
        f.do(f"ret ptr {failed}")
        f.label("streamed")
        stream = self._field("%told", "ptr", 24)
        entry = f.load("ptr", f.address("i64", "%function", _ADDRESS), 8)
        number = self._word(_TABLE)
        is_kernel = f.emit(f"icmp eq i64 {self._word(_KIND)}, {_KINDS.index('kernel')}")
        f.do(f"br i1 {is_kernel}, label %direct, label %asked.python")
        self._directly(entry, number, stream)
        f.label("asked.python")
        status = f.emit(f"call i32 {entry}(i64 {number}, ptr {stream}, ptr %places, i64 %count)")
        f.do(f"br i1 {f.emit(f'icmp eq i32 {status}, 0')}, label %done, label %error.launch")

    def _directly(self, entry: str, handle: str, stream: str) -> None:
        """The driver's launch: blocks and threads along one axis, and the addresses of all arguments."""
        f = self.f
        f.label("direct")
        f.do(f"br i1 {f.emit('icmp eq i64 %count, 0')}, label %done, label %some")
        f.label("some")
        f.store("i64", "%count", "%told", 8)
        last = self._word(_COUNT)
        f.store("ptr", "%told", f.address("ptr", "%passed", last), 8)
        with f.counted(last, "%n", block="one.argument", after="passed.all"):
            f.store("ptr", f.address("ptr", "%places", "%n"), f.address("ptr", "%passed", "%n"), 8)
        states = self._word(_STATES)
        more = f.emit(f"add i64 %count, {f.emit(f'sub i64 {states}, 1')}")
        blocks, threads, shared = (
            f.emit(f"trunc i64 {value} to i32")
            for value in (f.emit(f"sdiv i64 {more}, {states}"), self._word(_THREADS), self._word(_SCRATCH))
        )
        grid = f"i32 {blocks}, i32 1, i32 1, i32 {threads}, i32 1, i32 1, i32 {shared}"
        status = f.emit(f"call i32 {entry}(i64 {handle}, {grid}, ptr {stream}, ptr %passed, ptr null)")
        f.do(f"br i1 {f.emit(f'icmp eq i32 {status}, 0')}, label %done, label %error.driver")

    def _error(self, name: str) -> None:
        f = self.f
        f.label(f"error.{name}")
        code, _ = _MESSAGES[name]
        for place, (kind, value) in enumerate([("i64", "28"), ("ptr", "null"), ("ptr", f"@message.{name}")]):
            self._set("%told", kind, 8 * place, value)
        self._set("%told", "i32", 24, str(code))
        create = self._field("%api", "ptr", _CREATE_ERROR)
        f.do(f"ret ptr {f.emit(f'call ptr {create}(ptr %told)')}")
