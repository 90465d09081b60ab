"""A Python function, all of it machine code.

For a small robot the arithmetic takes a hundred nanoseconds, and unpacking arguments in Python several
times as much. So the builtin function itself is emitted: it looks at each ndarray in place, makes the result
with NumPy's allocator, runs the program and returns. It knows two kinds of arguments: those of one state, for which it
carries the program on plain scalars, and contiguous batches with one leading axis, for which it calls the batch kernel,
as soon as there is one. Whatever is not exactly as expected (lists, other dtypes, strides, keywords) goes to a Python
callable with the same arguments.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from typing import Any, Literal

from linkwise.codegen.llvm import jit, layouts, transcendental
from linkwise.codegen.llvm.body import Body
from linkwise.codegen.llvm.ir import Function, Shape, module_text
from linkwise.codegen.llvm.machines import Machine
from linkwise.codegen.llvm.plan import make_plan
from linkwise.codegen.llvm.source import attributes, entries_used
from linkwise.tracing.program import ArraySpec, Program

ENTRY = "linkwise_single"
# A program beyond this many nodes takes so long that a call's overhead does not show, and much stack.
LARGEST = 50_000

available = layouts.available


def identity() -> str:
    """What the code relies on beyond the machine; part of the cache key."""
    offsets = (layouts.TYPE, layouts.DATA, layouts.NDIM, layouts.DIMS, layouts.DESCR, layouts.FLAGS)
    return f"ndarray at {' '.join(map(str, offsets))}, tuple at {layouts.ITEMS}"


Result = Literal["array", "tuple", "named tuple", "call"]
"""What is returned: the array, a plain tuple, a named tuple of that, or what a callable makes of it."""


def result_of(program: Program, make_result: Callable[..., Any] | None) -> Result:
    """What a function of this program returns."""
    if make_result is None:
        return "array" if len(program.outputs) == 1 else "tuple"
    if make_result is tuple:
        return "tuple"
    return "call" if _named_tuple(make_result) is None else "named tuple"


def _named_tuple(make_result: Callable[..., Any]) -> type[Any] | None:
    """The class of named tuples that is asked for, itself or by its ``_make``; None for any other callable."""
    kind = getattr(make_result, "__self__", None) if getattr(make_result, "__name__", "") == "_make" else make_result
    return kind if isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields") else None


def entry_module(program: Program, machine: Machine, result: Result, *, one_state: bool) -> str:
    """The module's text: the function that Python calls and, if it is to serve single states, the body on scalars."""
    outside = [f"@{name} = external global i8" for name in _OBJECTS]
    others = [*outside, _dims(program), attributes(machine), *_WEIGHTS]
    if not one_state:
        return "; batches\n" + module_text([_Entry(program, result).write(None)], others)
    plan = make_plan(program)
    vector = Shape(64, machine.vector_bytes // 8)
    body = Body(program, plan, Shape(64, 1), vector, masked=machine.masked)
    grouped = [f for entry in entries_used(plan) for f in transcendental.functions(entry, machine, 64)]
    made = [*grouped, *body.functions, _Entry(program, result).write(body.frame_bytes)]
    return f"; {program.name}, one state\n" + module_text(made, others)


def signature_of(program: Program) -> str:
    """What a function that serves batches alone depends on."""
    return repr([[array.shape for array in arrays] for arrays in (program.inputs, program.outputs)])


# Branches of checks: nearly always passed, nearly never failed.
_WEIGHTS = ('!0 = !{!"branch_weights", i32 2000, i32 1}', '!1 = !{!"branch_weights", i32 1, i32 2000}')

_OBJECTS = ("lw_ndarray", "lw_float64")


def _dims(program: Program) -> str:
    """Shapes of the outputs, as the allocator wants them: arrays of 64-bit integers in memory."""
    lines = []
    for k, array in enumerate(program.outputs):
        numbers = ", ".join(f"i64 {n}" for n in array.shape) or "i64 0"
        lines.append(f"@dims{k} = private constant [{max(1, len(array.shape))} x i64] [{numbers}]")
    return "\n".join(lines)


class _Entry:
    """Writes the function that Python calls."""

    def __init__(self, program: Program, result: Result) -> None:
        self.inputs, self.outputs, self.result = program.inputs, program.outputs, result
        self.f = Function(f"define ptr @{ENTRY}(ptr %self, ptr %args, i64 %nargs, ptr %kwnames) #0")

    def write(self, frame_bytes: int | None) -> Function:
        """With a frame for the body of one state, or, without one, for batches alone."""
        f = self.f
        f.label("entry")
        # Places on the stack are taken here, once for all ways through.
        frame = None if frame_bytes is None else f.emit(f"alloca [{max(frame_bytes, 1)} x i8], align 64")
        f.do("%passed = alloca [2 x ptr], align 8")
        self.sizes = [f.emit(f"alloca [{1 + len(array.shape)} x i64], align 8") for array in self.outputs]
        self.tables = [f.emit(f"alloca [{len(a) or 1} x ptr], align 8") for a in (self.inputs, self.outputs)]
        few = f.emit(f"icmp eq i64 %nargs, {len(self.inputs)}")
        plain = f.emit("icmp eq ptr %kwnames, null")
        f.do(f"br i1 {f.emit(f'and i1 {few}, {plain}')}, label %counted, label %slow, !prof !0")
        f.label("counted")
        arguments = [f.load("ptr", f.address("ptr", "%args", k), 8) for k in range(len(self.inputs))]
        if not arguments:
            f.do("br label %one" if frame else "br label %slow")
        else:
            self._require(f.emit(f"icmp eq ptr {self._field(arguments[0], 'ptr', layouts.TYPE, 8)}, @lw_ndarray"))
            own = len(self.inputs[0].shape)
            axes = f.emit(f"sub i32 {self._field(arguments[0], 'i32', layouts.NDIM, 4)}, {own}")
            ways = "i32 0, label %one i32 1, label %many" if frame else "i32 1, label %many"
            f.do(f"switch i32 {axes}, label %slow [ {ways} ]")
        if frame:
            f.label("one")
            self._one_state(arguments, frame)
        if arguments:
            f.label("many")
            self._batch(arguments)
        f.label("slow")
        slow = [("ptr", _bound(f, _SLOW)), ("ptr", "%args"), ("i64", "%nargs"), ("ptr", "%kwnames")]
        f.do(f"ret ptr {f.call('ptr', 'PyObject_Vectorcall', slow)}")
        return f

    def _require(self, holds: str) -> None:
        """Leave for ``slow`` unless this holds."""
        further = self.f.name()[1:]
        self.f.do(f"br i1 {holds}, label %{further}, label %slow, !prof !0")
        self.f.label(further)

    def _field(self, thing: str, kind: str, offset: int, align: int) -> str:
        return self.f.load(kind, self.f.address("i8", thing, offset), align)

    def _data(self, argument: str, array: ArraySpec, count: str | None = None) -> str:
        """One argument's data pointer; leaves for ``slow`` unless it is the plain array we know.

        ``count``: the length of the batch that it must have; None for one state.
        """
        f = self.f
        self._require(f.emit(f"icmp eq ptr {self._field(argument, 'ptr', layouts.TYPE, 8)}, @lw_ndarray"))
        self._require(f.emit(f"icmp eq ptr {self._field(argument, 'ptr', layouts.DESCR, 8)}, @lw_float64"))
        sizes = [*([] if count is None else [count]), *map(str, array.shape)]
        self._require(f.emit(f"icmp eq i32 {self._field(argument, 'i32', layouts.NDIM, 4)}, {len(sizes)}"))
        wanted = layouts.C_CONTIGUOUS | layouts.ALIGNED
        flags = f.emit(f"and i32 {self._field(argument, 'i32', layouts.FLAGS, 4)}, {wanted}")
        self._require(f.emit(f"icmp eq i32 {flags}, {wanted}"))
        if sizes:
            dims = self._field(argument, "ptr", layouts.DIMS, 8)
            for k, size in enumerate(sizes):
                self._require(f.emit(f"icmp eq i64 {f.load('i64', f.address('i64', dims, k), 8)}, {size}"))
        return self._field(argument, "ptr", layouts.DATA, 8)

    def _one_state(self, arguments: list[str], frame: str) -> None:
        f = self.f
        data = [self._data(argument, array) for argument, array in zip(arguments, self.inputs, strict=True)]
        made: list[str] = []
        for k, array in enumerate(self.outputs):
            made.append(self._new_array(len(array.shape), f"@dims{k}", made))
        data += [self._field(array, "ptr", layouts.DATA, 8) for array in made]
        f.do(f"call void @body({', '.join(f'ptr {place}' for place in [*data, frame])})")
        self._return(
            [
                f.call("ptr", "lw_array_return", [("ptr", array)]) if not spec.shape else array
                for array, spec in zip(made, self.outputs, strict=True)
            ]
        )

    def _batch(self, arguments: list[str]) -> None:
        """Results in fresh arrays, scratch memory for the lanes, and the kernel, without the interpreter's lock."""
        f = self.f
        dims = self._field(arguments[0], "ptr", layouts.DIMS, 8)
        count = f.load("i64", dims, 8)
        slot = f.call("ptr", "PyLong_AsVoidPtr", [("ptr", _bound(f, _SLOT))])
        kernel, scratch, most, brief = (
            f.load(kind, f.address("i64", slot, k), 8) for k, kind in enumerate(("ptr", "i64", "i64", "i64"))
        )
        self._require(f.emit(f"icmp ne ptr {kernel}, null"))
        self._require(f.emit(f"icmp sgt i64 {count}, 0"))
        self._require(f.emit(f"icmp sle i64 {count}, {most}"))
        data = [self._data(argument, array, count) for argument, array in zip(arguments, self.inputs, strict=True)]
        made: list[str] = []
        for array, sizes in zip(self.outputs, self.sizes, strict=True):
            for k, size in enumerate((count, *array.shape)):
                f.store("i64", str(size), f.address("i64", sizes, k), 8)
            made.append(self._new_array(1 + len(array.shape), sizes, made))
        results = [self._field(array, "ptr", layouts.DATA, 8) for array in made]
        for table, places in zip(self.tables, (data, results), strict=True):
            for k, place in enumerate(places):
                f.store("ptr", place, f.address("ptr", table, k), 8)
        memory = f.call("ptr", "PyMem_RawMalloc", [("i64", f.emit(f"add i64 {scratch}, 64"))])
        self._or_fail(memory, made, "PyErr_NoMemory")
        aligned = f.call("ptr", "llvm.ptrmask.p0.i64", [("ptr", f.address("i8", memory, 63)), ("i64", "-64")])
        run = f"call void {kernel}(ptr {self.tables[0]}, ptr {self.tables[1]}, i64 {count}, ptr {aligned})"
        f.do(f"br i1 {f.emit(f'icmp slt i64 {count}, {brief}')}, label %brief, label %long")
        f.label("brief")
        f.do(run)
        f.do("br label %ran")
        f.label("long")
        lock = f.call("ptr", "PyEval_SaveThread", [])
        f.do(run)
        _call_void(f, "PyEval_RestoreThread", lock)
        f.do("br label %ran")
        f.label("ran")
        _call_void(f, "PyMem_RawFree", memory)
        self._return(made)

    def _new_array(self, ndim: int, sizes: str, earlier: list[str]) -> str:
        """A fresh array; when memory is out, give back the earlier ones and fail."""
        f = self.f
        _call_void(f, "Py_IncRef", "@lw_float64")  # the allocator keeps the reference it is given
        head = [("ptr", "@lw_ndarray"), ("ptr", "@lw_float64"), ("i32", str(ndim)), ("ptr", sizes)]
        array = f.call("ptr", "lw_array_new", [*head, ("ptr", "null"), ("ptr", "null"), ("i32", "0"), ("ptr", "null")])
        self._or_fail(array, earlier)
        return array

    def _or_fail(self, made: str, held: list[str], say: str | None = None) -> None:
        """Unless something was made, give back what is held and raise what ``say`` raises, or what is raised already."""
        f = self.f
        failed, further = f.name()[1:], f.name()[1:]
        f.do(f"br i1 {f.emit(f'icmp eq ptr {made}, null')}, label %{failed}, label %{further}, !prof !1")
        f.label(failed)
        for other in held:
            _call_void(f, "Py_DecRef", other)
        if say is not None:
            f.call("ptr", say, [])
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
        arguments = [_bound(f, _KIND), plain] if self.result == "named tuple" else [plain]
        for k, argument in enumerate(arguments):
            f.store("ptr", argument, f.address("ptr", "%passed", k), 8)
        call = [("ptr", _bound(f, _CALLEE)), ("ptr", "%passed"), ("i64", str(len(arguments))), ("ptr", "null")]
        made = f.call("ptr", "PyObject_Vectorcall", call)
        _call_void(f, "Py_DecRef", plain)
        f.do(f"ret ptr {made}")


def _bound(f: Function, item: int) -> str:
    """An item of the tuple that the function is bound to."""
    return f.load("ptr", f.address("i8", "%self", layouts.ITEMS + 8 * item), 8)


def _call_void(f: Function, name: str, argument: str) -> None:
    f.declare(f"declare void @{name}(ptr)")
    f.do(f"call void @{name}(ptr {argument})")


class BatchSlot:
    """Where a function finds the kernel for batches; empty until there is one.

    Four words that the emitted code reads: the kernel's address, its scratch memory in bytes, the greatest number of
    states (more go to the ordinary way), and the number from which on the interpreter's lock is given up.
    """

    def __init__(self) -> None:
        self._words = (ctypes.c_int64 * 4)()
        self._kernel: object = None

    @property
    def address(self) -> int:
        """Where the words lie."""
        return ctypes.addressof(self._words)

    def fill(self, kernel: object, address: int, scratch_bytes: int, most: int, brief: int) -> None:
        """Set the words, the address last: whoever finds it may use the rest."""
        self._kernel = kernel  # holds the code
        self._words[1], self._words[2], self._words[3] = scratch_bytes, most, brief
        self._words[0] = address


class _MethodDef(ctypes.Structure):
    """CPython's ``PyMethodDef``."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


_FASTCALL_KEYWORDS = 0x0080 | 0x0002

_SLOW, _CALLEE, _KIND, _SLOT = 0, 1, 2, 3


class _Bound(tuple[Any, ...]):
    """What a single-state function is bound to, as ``__self__``: its ordinary path, and all that its code refers to.

    The last item holds the code and the method definition. They go when the function goes: it lets go of this tuple
    when it is freed, as the last thing it does (CPython's ``meth_dealloc`` says that a method definition may be kept
    alive by ``__self__``), and the collector, which cannot take a tuple apart, does not see into that item.
    """

    __slots__ = ()

    def __reduce__(self) -> tuple[Any, ...]:
        """A builtin pickles as an attribute of what it is bound to: here of the object whose method it stands for."""
        return _itself, (getattr(self[_SLOW], "__self__", None),)


def _itself(thing: object) -> object:
    return thing


def make_function(
    obj: bytes,
    slow: Callable[..., Any],
    name: str,
    signature: str,
    doc: str,
    make_result: Callable[..., Any] | None,
    imports: Mapping[str, int],
    slot: BatchSlot,
) -> Callable[..., Any]:
    """Load an object made from :func:`entry_module` and wrap its entry as a builtin function."""
    kind = None if make_result is None else _named_tuple(make_result)
    library = jit.load(obj, (ENTRY,), {**imports, **layouts.addresses()})
    text = f"{name}{signature}\n--\n\n{doc}"
    method = _MethodDef(name.encode(), library[ENTRY], _FASTCALL_KEYWORDS, text.encode())
    callee = make_result if kind is None else layouts.TUPLE_NEW
    held = jit.unseen(library, method, slot)
    function: Any = _new_function(
        ctypes.addressof(method), _Bound((slow, callee, kind, slot.address, held)), "linkwise"
    )
    return function  # type: ignore[no-any-return]


_new_function = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.py_object)(
    ("PyCFunction_NewEx", ctypes.pythonapi)
)
