"""Builtin functions of the interpreter as LLVM text, by which :mod:`linkwise.targets.llvm.fastcall` calls programs.

Wherever an argument is not as such a function knows it, it calls ``slow``, the ordinary Python way.
"""

from __future__ import annotations

import ctypes
from typing import Literal

from linkwise.targets.llvm import layouts, transcendental
from linkwise.targets.llvm.binding import Machine
from linkwise.targets.llvm.block_code import BlockCode
from linkwise.targets.llvm.crew import MEMBERS, Job
from linkwise.targets.llvm.device import FEW
from linkwise.targets.llvm.function_plan import make_plan
from linkwise.targets.llvm.fusing import fused
from linkwise.targets.llvm.interpreted import InterpretedBlock
from linkwise.targets.llvm.ir import FunctionText, LaneShape, module_text
from linkwise.targets.llvm.source import attributes, entries_used, quick_module
from linkwise.targets.llvm.tiers import QuickModule
from linkwise.trace.block import ArraySpec, Block
from linkwise.trace.program import Program

ENTRY = "linkwise_single"

# Items of the tuple that the function is bound to.
SLOW, CALLEE, KIND, SLOT = 0, 1, 2, 3

Result = Literal["array", "tuple", "named tuple", "call"]
"""Type of the result: the array, a plain tuple, a named tuple of that, or what a callable makes of it."""


WORDS = {
    "kernel": "ptr",
    "scratch_bytes": "i64",
    "fresh": "i64",  # the greatest number of states whose results get fresh memory; more go the ordinary way
    "brief": "i64",  # from so many states on the interpreter's lock is given up
    "smallest": "i64",  # states of a share, if several threads are allowed
    "step": "i64",
    "worth_waking": "i64",
    "longest": "i64",  # the greatest number of states of a job; more go the ordinary way
    "spare": "ptr",  # memory of a call that is over, its size first; zero while another call has it
    "run": "ptr",  # the crew's function
    "beside": "ptr",  # the crew's board; of a program with loops its table
}
"""Words of a slot, read by the emitted code: these for float64, then the same for float32, then both for few states."""


def entry_module(program: Block | Program, machine: Machine, result: Result, *, one_state: bool) -> str:
    """The module's text: the function that Python calls and, if it is to serve single states, the body on scalars.

    Of a program with loops, the kernel in the slot serves single states too.
    """
    others = _others(program, machine)
    if isinstance(program, Program) or not one_state:
        return "; batches\n" + module_text([_BuiltinWriter(program, result).write(None)], others)
    block = fused(program, machine)
    plan = make_plan(block)
    vector = LaneShape(64, machine.vector_bytes // 8)
    body = BlockCode(block, plan, LaneShape(64, 1), vector, masked=machine.masked)
    grouped = [f for entry in entries_used(plan) for f in transcendental.functions(entry, machine, 64)]
    made = [*grouped, *body.functions, _BuiltinWriter(program, result).write(body.frame_bytes)]
    return f"; {program.name}, one state\n" + module_text(made, others)


def quick_entry_module(program: Block, machine: Machine, result: Result) -> QuickModule:
    """The module for the first calls of a long program, for single states."""
    body = InterpretedBlock(program, machine, shape := LaneShape(64, 1))
    made = [*body.functions, _BuiltinWriter(program, result).write(body.frame_bytes)]
    return quick_module(module_text(made, _others(program, machine)), machine, shape, body.imports, body.held)


def _others(program: Block | Program, machine: Machine) -> list[str]:
    outside = [f"@{name} = external global i8" for name in _OBJECTS]
    return [*outside, _dims(program), attributes(machine), *_WEIGHTS]


def names_module(arrays: int, machine: Machine) -> str:
    """The module's text of a function that takes so many arrays and a name, and finds by it what to call."""
    others = [*(f"@{name} = external global i8" for name in ("lw_str", "lw_out", "lw_threads")), attributes(machine)]
    return "; by name\n" + module_text([_CallByName().write(arrays)], [*others, *_WEIGHTS])


def signature_of(program: Block | Program) -> str:
    """Signature that a function without a body of its own depends on."""
    order = list(program.order) if isinstance(program, Program) else ()
    return repr([[array.shape for array in arrays] for arrays in (program.inputs, program.outputs)] + [*order])


# Branches of checks: nearly always passed, nearly never failed.
_WEIGHTS = ('!0 = !{!"branch_weights", i32 2000, i32 1}', '!1 = !{!"branch_weights", i32 1, i32 2000}')

_OBJECTS = ("lw_ndarray", "lw_float64", "lw_float32", "lw_int", "lw_none", "lw_out", "lw_threads")


def _dims(program: Block | Program) -> str:
    """Shapes of the outputs, as the allocator wants them, and bytes of a state in each array, as the crew does."""
    lines = []
    for k, array in enumerate(program.outputs):
        numbers = ", ".join(f"i64 {n}" for n in array.shape) or "i64 0"
        lines.append(f"@dims{k} = private constant [{max(1, len(array.shape))} x i64] [{numbers}]")
    arrays = (*program.inputs, *program.outputs)
    for item in (8, 4):
        strides = ", ".join(f"i64 {item * array.size}" for array in arrays)
        lines.append(f"@strides{item} = private constant [{len(arrays)} x i64] [{strides}]")
    return "\n".join(lines)


class _Caller:
    """Writes a function that Python calls, and that may leave for ``slow``."""

    def __init__(self) -> None:
        self.f = FunctionText(f"define ptr @{ENTRY}(ptr %self, ptr %args, i64 %nargs, ptr %kwnames) #0")

    def _require(self, holds: str) -> None:
        """Leave for ``slow`` unless this holds."""
        further = self.f.name()[1:]
        self.f.do(f"br i1 {holds}, label %{further}, label %slow, !prof !0")
        self.f.label(further)

    def _field(self, thing: str, kind: str, offset: int, align: int) -> str:
        return self.f.load(kind, self.f.address("i8", thing, offset), align)

    def _keyword(self) -> tuple[str, str, str]:
        """The value of keyword number ``%k``, and whether it is ``out`` or ``threads``; leaves for any other."""
        f = self.f
        name = f.load("ptr", f.address("i8", f.address("ptr", "%kwnames", "%k"), layouts.ITEMS), 8)
        value = f.load("ptr", f.address("ptr", "%args", f.emit("add i64 %nargs, %k")), 8)
        is_out, is_threads = (f.emit(f"icmp eq ptr {name}, @{word}") for word in ("lw_out", "lw_threads"))
        self._require(f.emit(f"or i1 {is_out}, {is_threads}"))
        return value, is_out, is_threads

    def _slow(self) -> FunctionText:
        f = self.f
        f.label("slow")
        slow = [("ptr", _bound(f, SLOW)), ("ptr", "%args"), ("i64", "%nargs"), ("ptr", "%kwnames")]
        f.do(f"ret ptr {f.call('ptr', 'PyObject_Vectorcall', slow)}")
        return f


class _CallByName(_Caller):
    """Writes the function of arrays and of a name behind them, by which it finds its callee in a dict."""

    def write(self, arrays: int) -> FunctionText:
        """The callee gets the arrays, ``out`` and ``threads``."""
        f = self.f
        f.label("entry")
        f.do(f"%passed = alloca [{arrays + 2} x ptr], align 8")
        self._require(f.emit(f"icmp eq i64 %nargs, {arrays + 1}"))
        name = f.load("ptr", f.address("ptr", "%args", arrays), 8)
        self._require(f.emit(f"icmp eq ptr {self._field(name, 'ptr', layouts.TYPE, 8)}, @lw_str"))
        for k in range(arrays):
            f.store("ptr", f.load("ptr", f.address("ptr", "%args", k), 8), f.address("ptr", "%passed", k), 8)
        f.do(f"br i1 {f.emit('icmp eq ptr %kwnames, null')}, label %plain, label %named, !prof !0")
        f.label("named")
        size = self._field("%kwnames", "i64", layouts.SIZE, 8)
        f.do(f"br i1 {f.emit(f'icmp sle i64 {size}, 2')}, label %few, label %slow")
        f.label("few")
        f.do("br label %keyword")
        f.label("keyword")
        f.do("%k = phi i64 [ 0, %few ], [ %following, %accepted ]")
        value, _, _ = self._keyword()
        f.store("ptr", value, f.address("ptr", "%passed", f.emit(f"add i64 %k, {arrays}")), 8)
        f.do("br label %accepted")
        f.label("accepted")
        f.do("%following = add i64 %k, 1")
        f.do(f"br i1 {f.emit(f'icmp slt i64 %following, {size}')}, label %keyword, label %plain")
        f.label("plain")
        callee = f.call("ptr", "PyDict_GetItem", [("ptr", _bound(f, CALLEE)), ("ptr", name)])
        self._require(f.emit(f"icmp ne ptr {callee}, null"))
        call = [("ptr", callee), ("ptr", "%passed"), ("i64", str(arrays)), ("ptr", "%kwnames")]
        f.do(f"ret ptr {f.call('ptr', 'PyObject_Vectorcall', call)}")
        return self._slow()


class _BuiltinWriter(_Caller):
    """Writes the function of a program's inputs."""

    def __init__(self, program: Block | Program, result: Result) -> None:
        super().__init__()
        self.loops = program if isinstance(program, Program) else None
        self.inputs, self.outputs, self.result = program.inputs, program.outputs, result
        self.descr, self.item = "@lw_float64", "8"  # the precision of the arrays, and bytes of a number

    def write(self, frame_bytes: int | None) -> FunctionText:
        """FunctionText with a frame for the body of one state, or, without one, for batches alone."""
        f = self.f
        f.label("entry")
        # Places on the stack are taken here, once for all ways through.
        frame = None if frame_bytes is None else f.emit(f"alloca [{max(frame_bytes, 1)} x i8], align 64")
        f.do("%passed = alloca [2 x ptr], align 8")
        self.sizes = [f.emit(f"alloca [{1 + len(array.shape)} x i64], align 8") for array in self.outputs]
        self.places = f.emit(f"alloca [{len(self.inputs) + len(self.outputs)} x ptr], align 8")
        f.do(f"%job = alloca [{ctypes.sizeof(Job) // 8} x i64], align 8")
        f.do("%out.at = alloca ptr, align 8")
        f.do("%threads.at = alloca i64, align 8")
        self._require(f.emit(f"icmp eq i64 %nargs, {len(self.inputs)}"))
        self._keywords()
        arguments = [f.load("ptr", f.address("ptr", "%args", k), 8) for k in range(len(self.inputs))]
        if not arguments:
            f.do("br label %one" if frame else "br label %slow")
        else:
            self._require(f.emit(f"icmp eq ptr {self._field(arguments[0], 'ptr', layouts.TYPE, 8)}, @lw_ndarray"))
            own = len(self.inputs[0].shape)
            axes = f.emit(f"sub i32 {self._field(arguments[0], 'i32', layouts.NDIM, 4)}, {own}")
            descr = self._field(arguments[0], "ptr", layouts.DESCR, 8)
            f.do(f"%double = icmp eq ptr {descr}, @lw_float64")
            f.do(f"switch i32 {axes}, label %slow [ i32 0, label %single i32 1, label %many ]")
            f.label("single")
            double = "one" if frame else "one.float" if self.loops else "slow"
            f.do(f"br i1 %double, label %{double}, label %one.float, !prof !0")
        if frame:
            f.label("one")
            self._one_state(arguments, frame)
        if arguments:
            self.descr = descr
            f.label("one.float")
            self._batch(arguments, one=True)
            f.label("many")
            self._batch(arguments)
        return self._slow()

    def _keywords(self) -> None:
        """``out`` (null if not given) and ``threads`` (one if not given) to their places; leaves for any other."""
        f = self.f
        f.store("ptr", "null", "%out.at", 8)
        f.store("i64", "1", "%threads.at", 8)
        f.do(f"br i1 {f.emit('icmp eq ptr %kwnames, null')}, label %plain, label %named, !prof !0")
        f.label("named")
        size = self._field("%kwnames", "i64", layouts.SIZE, 8)
        f.do("br label %keyword")
        f.label("keyword")
        f.do("%k = phi i64 [ 0, %named ], [ %following, %accepted ]")
        value, is_out, _ = self._keyword()
        f.do(f"br i1 {f.emit(f'icmp eq ptr {value}, @lw_none')}, label %accepted, label %given")
        f.label("given")
        f.do(f"br i1 {is_out}, label %out, label %threads")
        f.label("out")
        f.store("ptr", value, "%out.at", 8)
        f.do("br label %accepted")
        f.label("threads")
        self._require(f.emit(f"icmp eq ptr {self._field(value, 'ptr', layouts.TYPE, 8)}, @lw_int"))
        number = f.call("i64", "PyLong_AsSize_t", [("ptr", value)])  # a negative one raises, and is far too large
        f.call("ptr", "PyErr_Clear", [])
        self._require(f.emit(f"icmp sgt i64 {number}, 0"))
        f.store("i64", number, "%threads.at", 8)
        f.do("br label %accepted")
        f.label("accepted")
        f.do("%following = add i64 %k, 1")
        f.do(f"br i1 {f.emit(f'icmp slt i64 %following, {size}')}, label %keyword, label %plain")
        f.label("plain")

    def _data(self, argument: str, array: ArraySpec, count: str | None = None, flags: int = 0) -> str:
        """One argument's data pointer; leaves for ``slow`` unless it is the plain array we know.

        ``count``: the length of the batch that it must have; None for one state. ``flags``: what it must allow.
        """
        f = self.f
        self._require(f.emit(f"icmp eq ptr {self._field(argument, 'ptr', layouts.TYPE, 8)}, @lw_ndarray"))
        self._require(f.emit(f"icmp eq ptr {self._field(argument, 'ptr', layouts.DESCR, 8)}, {self.descr}"))
        sizes = [*([] if count is None else [count]), *map(str, array.shape)]
        self._require(f.emit(f"icmp eq i32 {self._field(argument, 'i32', layouts.NDIM, 4)}, {len(sizes)}"))
        wanted = layouts.C_CONTIGUOUS | layouts.ALIGNED | flags
        has = f.emit(f"and i32 {self._field(argument, 'i32', layouts.FLAGS, 4)}, {wanted}")
        self._require(f.emit(f"icmp eq i32 {has}, {wanted}"))
        if sizes:
            dims = self._field(argument, "ptr", layouts.DIMS, 8)
            for k, size in enumerate(sizes):
                self._require(f.emit(f"icmp eq i64 {f.load('i64', f.address('i64', dims, k), 8)}, {size}"))
        return self._field(argument, "ptr", layouts.DATA, 8)

    def _one_state(self, arguments: list[str], frame: str) -> None:
        f = self.f
        data = [self._data(argument, array) for argument, array in zip(arguments, self.inputs, strict=True)]
        made = self._results(data, [f"@dims{k}" for k in range(len(self.outputs))])
        data += [self._field(array, "ptr", layouts.DATA, 8) for array in made]
        f.do(f"call void @body({', '.join(f'ptr {place}' for place in [*data, frame])})")
        self._return(self._scalars(made))

    def _scalars(self, made: list[str]) -> list[str]:
        """Results of one state: those without axes as NumPy's numbers."""
        return [
            self.f.call("ptr", "lw_array_return", [("ptr", array)]) if not spec.shape else array
            for array, spec in zip(made, self.outputs, strict=True)
        ]

    def _batch(self, arguments: list[str], one: bool = False) -> None:
        """Results in fresh arrays, scratch memory for the lanes, and the kernel, without the interpreter's lock.

        ``one``: for a state without a batch axis, in a precision that has no body on scalars.
        """
        f = self.f
        known = f.emit(f"icmp eq ptr {self.descr}, @lw_float32")
        self._require(known if one and not self.loops else f.emit(f"or i1 %double, {known}"))
        self.item = f.emit("select i1 %double, i64 8, i64 4")
        count = "1" if one else f.load("i64", self._field(arguments[0], "ptr", layouts.DIMS, 8), 8)
        slot = f.call("ptr", "PyLong_AsVoidPtr", [("ptr", _bound(f, SLOT))])
        slot = f.address("i64", slot, f.emit(f"select i1 %double, i64 0, i64 {len(WORDS)}"))
        if self.loops:
            few = f.emit(f"icmp slt i64 {count}, {FEW}")
            slot = f.address("i64", slot, f.emit(f"select i1 {few}, i64 {2 * len(WORDS)}, i64 0"))
        at = {name: f.address("i64", slot, k) for k, name in enumerate(WORDS)}
        word = {name: at[name] if name == "spare" else f.load(kind, at[name], 8) for name, kind in WORDS.items()}
        self._require(f.emit(f"icmp ne ptr {word['kernel']}, null"))
        self._require(f.emit(f"icmp sgt i64 {count}, 0"))
        given = f.emit(f"icmp ne ptr {f.load('ptr', '%out.at', 8)}, null")
        fits = f.emit(f"icmp sle i64 {count}, {word['fresh']}")
        self._require(f.emit(f"or i1 {given}, {fits}"))
        if self.loops:
            self._require(f.emit(f"icmp eq i64 {f.load('i64', '%threads.at', 8)}, 1"))
        shared = "false" if one or self.loops else self._shared(count, word)
        batch = None if one else count
        data = [self._data(argument, array, batch) for argument, array in zip(arguments, self.inputs, strict=True)]
        for array, sizes in zip(self.outputs, self.sizes, strict=True):
            for k, size in enumerate(array.shape if one else (count, *array.shape)):
                f.store("i64", str(size), f.address("i64", sizes, k), 8)
        made = self._results(data, self.sizes, batch)
        places = [*data, *(self._field(array, "ptr", layouts.DATA, 8) for array in made)]
        for k, place in enumerate([places[k] for k in self.loops.order] if self.loops else places):
            f.store("ptr", place, f.address("ptr", self.places, k), 8)
        several, alone, ran, no_memory = (f.name()[1:] for _ in range(4))
        f.do(f"br i1 {shared}, label %{several}, label %{alone}")
        f.label(several)
        failed = self._run_shared(count, word)
        f.do(f"br i1 {f.emit(f'icmp eq i64 {failed}, 0')}, label %{ran}, label %{no_memory}, !prof !0")
        f.label(alone)
        self._run_alone(count, word, no_memory)
        f.do(f"br label %{ran}")
        f.label(no_memory)
        for result in made:
            _call_void(f, "Py_DecRef", result)
        f.call("ptr", "PyErr_NoMemory", [])
        f.do("ret ptr null")
        f.label(ran)
        self._return(self._scalars(made) if one else made)

    def _shared(self, count: str, word: dict[str, str]) -> str:
        """Whether several threads are to take part; leaves for ``slow`` where these have to be started first."""
        f = self.f
        others = f.emit(f"sub i64 {f.load('i64', '%threads.at', 8)}, 1")
        asked, twice = f.emit(f"icmp sgt i64 {others}, 0"), f.emit(f"shl i64 {word['smallest']}, 1")
        shared = f.emit(f"and i1 {asked}, {f.emit(f'icmp sge i64 {count}, {twice}')}")
        look, decided = f.name()[1:], f.name()[1:]
        f.do(f"br i1 {shared}, label %{look}, label %{decided}")
        f.label(look)
        self._require(f.emit(f"icmp ne ptr {word['run']}, null"))
        self._require(f.emit(f"icmp sle i64 {count}, {word['longest']}"))
        members = f.load("i64", f.address("i64", word["beside"], MEMBERS), 8)
        self._require(f.emit(f"icmp sge i64 {members}, {others}"))
        f.do(f"br label %{decided}")
        f.label(decided)
        return shared

    def _run_shared(self, count: str, word: dict[str, str]) -> str:
        """A job for the crew; whether it failed for lack of memory."""
        f = self.f
        known = {
            "kernel": ("ptr", word["kernel"]),
            "inputs": ("i64", str(len(self.inputs))),
            "outputs": ("i64", str(len(self.outputs))),
            "places": ("ptr", self.places),
            "strides": ("ptr", f.emit("select i1 %double, ptr @strides8, ptr @strides4")),
            "count": ("i64", count),
            "scratch_bytes": ("i64", word["scratch_bytes"]),
            "smallest": ("i64", word["smallest"]),
            "step": ("i64", word["step"]),
            "worth_waking": ("i64", word["worth_waking"]),
        }
        place = {name: f.address("i64", "%job", k) for k, (name, _) in enumerate(Job._fields_)}
        for name, at in place.items():
            kind, value = known.get(name, ("i64", "0"))
            f.store(kind, value, at, 8)
        others = f.emit(f"sub i64 {f.load('i64', '%threads.at', 8)}, 1")
        lock = f.call("ptr", "PyEval_SaveThread", [])
        f.do(f"call void {word['run']}(ptr {word['beside']}, ptr %job, i64 {others})")
        _call_void(f, "PyEval_RestoreThread", lock)
        return f.load("i64", place["failed"], 8)

    def _run_alone(self, count: str, word: dict[str, str], no_memory: str) -> None:
        """The kernel in this thread; what takes long without the interpreter's lock.

        It works in the memory of the call before, where that is large enough and no other thread has it.
        """
        f = self.f
        look, fresh, made, room, brief, long, through = (f.name()[1:] for _ in range(7))
        size = f.emit(f"add i64 {word['scratch_bytes']}, 128")
        spare = f.emit(f"atomicrmw xchg ptr {word['spare']}, ptr null acq_rel")
        f.do(f"br i1 {f.emit(f'icmp eq ptr {spare}, null')}, label %{fresh}, label %{look}")
        f.label(look)
        enough = f.emit(f"icmp uge i64 {f.load('i64', spare, 8)}, {size}")
        f.do(f"br i1 {enough}, label %{room}, label %{fresh}, !prof !0")
        f.label(fresh)
        _call_void(f, "PyMem_RawFree", spare)
        new = f.call("ptr", "PyMem_RawMalloc", [("i64", size)])
        f.do(f"br i1 {f.emit(f'icmp eq ptr {new}, null')}, label %{no_memory}, label %{made}, !prof !1")
        f.label(made)
        f.store("i64", size, new, 8)
        f.do(f"br label %{room}")
        f.label(room)
        memory = f.emit(f"phi ptr [ {spare}, %{look} ], [ {new}, %{made} ]")
        aligned = f.call("ptr", "llvm.ptrmask.p0.i64", [("ptr", f.address("i8", memory, 127)), ("i64", "-64")])
        outs = f.address("ptr", self.places, len(self.inputs))
        passed = f"ptr {self.places}, ptr {outs}, i64 {count}, ptr {aligned}"
        if self.loops:
            passed = f"ptr {self.places}, i64 0, i64 {count}, ptr {aligned}, ptr {word['beside']}"
        run = f"call void {word['kernel']}({passed})"
        soon = f.emit(f"icmp slt i64 {count}, {word['brief']}")
        f.do(f"br i1 {soon}, label %{brief}, label %{long}")
        f.label(brief)
        f.do(run)
        f.do(f"br label %{through}")
        f.label(long)
        lock = f.call("ptr", "PyEval_SaveThread", [])
        f.do(run)
        _call_void(f, "PyEval_RestoreThread", lock)
        f.do(f"br label %{through}")
        f.label(through)
        _call_void(f, "PyMem_RawFree", f.emit(f"atomicrmw xchg ptr {word['spare']}, ptr {memory} acq_rel"))

    def _results(self, data: list[str], sizes: list[str], count: str | None = None) -> list[str]:
        """Arrays for the results, of these sizes; or the caller's own, if there is one result and it fits."""
        f, axes = self.f, 0 if count is None else 1
        if len(self.outputs) != 1 or not (self.outputs[0].shape or count):
            self._require(f.emit(f"icmp eq ptr {f.load('ptr', '%out.at', 8)}, null"))
            made: list[str] = []
            for array, size in zip(self.outputs, sizes, strict=True):
                made.append(self._new_array(axes + len(array.shape), size, made))
            return made
        given, mine, fresh, ready = (f.name()[1:] for _ in range(4))
        out = f.load("ptr", "%out.at", 8)
        f.do(f"br i1 {f.emit(f'icmp eq ptr {out}, null')}, label %{fresh}, label %{given}, !prof !0")
        f.label(given)
        place = self._data(out, self.outputs[0], count, layouts.WRITEABLE)
        for argument, array in zip(data, self.inputs, strict=True):
            self._require(self._apart(place, self.outputs[0], argument, array, count))
        _call_void(f, "Py_IncRef", out)
        f.do(f"br label %{mine}")
        f.label(mine)
        f.do(f"br label %{ready}")
        f.label(fresh)
        new = self._new_array(axes + len(self.outputs[0].shape), sizes[0], [])
        last = f.name()[1:]
        f.do(f"br label %{last}")
        f.label(last)
        f.do(f"br label %{ready}")
        f.label(ready)
        return [f.emit(f"phi ptr [ {out}, %{mine} ], [ {new}, %{last} ]")]

    def _apart(self, a: str, a_array: ArraySpec, b: str, b_array: ArraySpec, count: str | None) -> str:
        """Whether two arrays have no number in common."""
        f = self.f
        ends = []
        for place, array in ((a, a_array), (b, b_array)):
            numbers = str(array.size) if count is None else f.emit(f"mul i64 {count}, {array.size}")
            ends.append(f.address("i8", place, f.emit(f"mul i64 {numbers}, {self.item}")))
        a_end, b_end = ends
        before, behind = f.emit(f"icmp ule ptr {a_end}, {b}"), f.emit(f"icmp ule ptr {b_end}, {a}")
        return f.emit(f"or i1 {before}, {behind}")

    def _new_array(self, ndim: int, sizes: str, earlier: list[str]) -> str:
        """A fresh array; when memory is out, give back the earlier ones and fail."""
        f = self.f
        _call_void(f, "Py_IncRef", self.descr)  # the allocator keeps the reference it is given
        head = [("ptr", "@lw_ndarray"), ("ptr", self.descr), ("i32", str(ndim)), ("ptr", sizes)]
        array = f.call("ptr", "lw_array_new", [*head, ("ptr", "null"), ("ptr", "null"), ("i32", "0"), ("ptr", "null")])
        self._or_fail(array, earlier)
        return array

    def _or_fail(self, made: str, held: list[str]) -> None:
        """Unless something was made, give back what is held and fail, with the exception that there is."""
        f = self.f
        failed, further = f.name()[1:], f.name()[1:]
        f.do(f"br i1 {f.emit(f'icmp eq ptr {made}, null')}, label %{failed}, label %{further}, !prof !1")
        f.label(failed)
        for other in held:
            _call_void(f, "Py_DecRef", other)
        f.do("ret ptr null")
        f.label(further)

    def _return(self, values: list[str]) -> None:
        """The array, a tuple of the values, or what the callable asked for makes of one."""
        f = self.f
        if self.result == "array":
            f.do(f"ret ptr {values[0]}")
            return
        plain = f.call("ptr", "PyTuple_New", [("i64", str(len(values)))])
        self._or_fail(plain, values)
        for k, value in enumerate(values):
            f.call("i32", "PyTuple_SetItem", [("ptr", plain), ("i64", str(k)), ("ptr", value)])
        if self.result == "tuple":
            f.do(f"ret ptr {plain}")
            return
        # Named tuples are made by ``tuple.__new__`` itself, which is what their ``_make`` does in Python.
        arguments = [_bound(f, KIND), plain] if self.result == "named tuple" else [plain]
        for k, argument in enumerate(arguments):
            f.store("ptr", argument, f.address("ptr", "%passed", k), 8)
        call = [("ptr", _bound(f, CALLEE)), ("ptr", "%passed"), ("i64", str(len(arguments))), ("ptr", "null")]
        made = f.call("ptr", "PyObject_Vectorcall", call)
        _call_void(f, "Py_DecRef", plain)
        f.do(f"ret ptr {made}")


def _bound(f: FunctionText, item: int) -> str:
    """An item of the tuple that the function is bound to."""
    return f.load("ptr", f.address("i8", "%self", layouts.ITEMS + 8 * item), 8)


def _call_void(f: FunctionText, name: str, argument: str) -> None:
    f.declare(f"declare void @{name}(ptr)")
    f.do(f"call void @{name}(ptr {argument})")
