"""The writer of LLVM's text, apart from any program."""

import ctypes

from linkwise.targets.llvm import binding, jit
from linkwise.targets.llvm.ir import FunctionText, module_text


def test_one_function_may_have_several_loops_that_may_not_begin():
    f = FunctionText("define i64 @passes(i64 %rows, i64 %columns, ptr %sum)")
    f.label("entry")
    for count, index, block, after in (("%rows", "%i", "first", "between"), ("%columns", "%j", "second", "done")):
        with f.counted(count, index, block=block, after=after):
            f.store("i64", f.emit(f"add i64 {f.load('i64', '%sum', 8)}, 1"), "%sum", 8)
    f.do(f"ret i64 {f.load('i64', '%sum', 8)}")
    made = bytes(jit.compile_text(module_text([f]), binding.host()))
    library = jit.LoadedObject(made, ("passes",), {})
    passes = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)(library["passes"])
    for rows, columns in ((0, 0), (3, 0), (0, 4), (3, 4)):
        total = ctypes.c_int64(0)
        assert passes(rows, columns, ctypes.addressof(total)) == rows + columns
