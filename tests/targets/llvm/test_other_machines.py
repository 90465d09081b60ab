"""Code for machines that this one is not: compiled here, looked at, not run.

What a kernel refers to outside itself must be known where it is loaded, and Windows' own calling convention must be
kept.
"""

import re

import pytest

from linkwise.samples import stanford_arm
from linkwise.targets.llvm import binding, jit, source, transcendental

MACHINES = {
    "windows": binding.Machine("x86_64-pc-windows-msvc", "x86-64-v3", "", 32, masked=False, fma=True),
    "windows, wide": binding.Machine("x86_64-pc-windows-msvc", "x86-64-v4", "", 64, masked=True, fma=True),
    "windows on ARM": binding.Machine("aarch64-pc-windows-msvc", "generic", "", 16, masked=False, fma=True),
    "macOS": binding.Machine("arm64-apple-macosx12.0.0", "apple-m1", "", 16, masked=False, fma=True),
    "Linux on ARM": binding.Machine("aarch64-unknown-linux-gnu", "cortex-a72", "", 16, masked=False, fma=True),
}
BY_LLVM = {"__chkstk", "_fltused"}  # what jit.platform_symbols has on Windows


@pytest.fixture(scope="module")
def texts():
    """Assembly of a batch kernel that calls the C library and has a deep stack, for each machine."""
    with binding.using_llvm() as llvm:
        try:
            llvm.initialize_all_targets()
            llvm.initialize_all_asmprinters()
        except (AttributeError, RuntimeError) as error:
            pytest.skip(f"this LLVM has its own target alone: {error}")
    program = stanford_arm().function("linearize_forward").program

    def assembly(machine):
        return jit.compile_text(source.batch_module(program, machine, 64).text, machine, assembly=True)

    return {name: assembly(machine) for name, machine in MACHINES.items()}


def outside(text, prefix):
    """Names that are called or marked, and not defined."""
    called = set(re.findall(r"^\s+(?:callq?|jmp|bl|b)\s+([A-Za-z_][\w$.]*)\s*(?:@PLT)?$", text, re.MULTILINE))
    called |= set(re.findall(r"^\s+\.globl\s+(_fltused)$", text, re.MULTILINE))
    defined = set(re.findall(r"^\"?([A-Za-z_.][\w$.]*)\"?:", text, re.MULTILINE))
    return {name.removeprefix(prefix) for name in called - defined if not name.startswith(("L", ".L"))}


@pytest.mark.parametrize("name", MACHINES)
def test_kernels_refer_to_nothing_unknown(texts, name):
    found = outside(texts[name], "_" if name == "macOS" else "")
    known = set(transcendental.LIBRARY) | (BY_LLVM if "windows" in name else set())
    assert {"lw_libm_sin", "lw_libm_cos"} <= found <= known


@pytest.mark.parametrize("name", ["windows", "windows, wide"])
def test_calls_are_those_of_windows(texts, name):
    """The first argument is in rcx; xmm6 to xmm15 are the caller's, and put away before they are used."""
    entry = texts[name].split(f"\n{source.BATCH_ENTRY}:", 1)[1]
    assert re.search(r"\((%r\w+)\)", entry)[1] == "%rcx"
    body = texts[name].split("\nbody:", 1)[1].split("\tretq", 1)[0]
    opening = re.split(r"\n\t[^\n]*\((?:%rcx|%rdx)\)", body, maxsplit=1)[0]
    saved = {int(k) for k in re.findall(r"movap[sd]\s+%xmm(\d+), \d*\(%r[bs]p\)", opening)}
    used = {int(k) for k in re.findall(r"%[xyz]mm(\d+)", body)} & set(range(6, 16))
    assert used and used <= saved


def test_symbols_of_windows_are_found_by_their_names(monkeypatch):
    class Library:
        def __getattr__(self, name):
            assert name == "__chkstk"
            return jit.ctypes.c_void_p(0x1234)

    monkeypatch.setattr(jit.ctypes, "CDLL", lambda name: Library() if name == "ntdll" else None)
    found = jit.platform_symbols.__wrapped__("win32")
    assert set(found) == BY_LLVM and found["__chkstk"] == 0x1234 and found["_fltused"]
