"""The PTX inside a kernel's text as C++, for a compiler that knows no PTX: line by line, as the manual defines it."""

from __future__ import annotations

import re

_EXPRESSIONS = {
    "add": "{0} + {1}",
    "sub": "{0} - {1}",
    "mul": "{0} * {1}",
    "fma": "lw_fma({0}, {1}, {2})",
    "abs": "lw_abs({0})",
    "neg": "-{0}",
    "sqrt": "lw_sqrt({0})",
    "mov": "{0}",
    "selp": "{2} ? {0} : {1}",
    "and": "{0} && {1}",
    "or": "{0} || {1}",
    "not": "!{0}",
    "mad": "(unsigned long long)(unsigned){0} * {1}u + (unsigned long long){2}",  # wide, of 32 bits
}
_COMPARED = {"lt": "<", "le": "<=", "gt": ">", "eq": "==", "ne": "!="}


def as_cpp(text: str) -> str:
    """A kernel's text without PTX."""
    text = re.sub(r'asm volatile\("\.reg [^"]*"[^;]*\);', lambda _: _registers(text), text)
    text = re.sub(r'asm volatile\("\.local \.align (\d+) \.b8 (\w+)\[(\d+)\];"\);', r"alignas(\1) char \2[\3];", text)
    return re.sub(r'asm volatile\(\n((?:\s*"[^"]*"\n)+)\s*:: (.*?) : "memory"\);', _block, text)


def _registers(text: str) -> str:
    """Those that are used, as variables."""
    lines = re.findall(r'^ *"(?:.*)\\n"$|LW_GET\(.*|LW_PUT\(.*', text, re.MULTILINE)
    used = set(re.findall(r"\b[tp]\d+\b", "\n".join(lines)))
    written = set(re.findall(r"(?:\.pred|\.f\d\d) ([tp]\d+),|LW_PUT\(([tp]\d+),", "\n".join(lines)))
    assert used <= {name for both in written for name in both}, "a register is read and never written"
    reals = sorted(name for name in used if name.startswith("t"))
    truths = sorted(used - set(reals))
    return " ".join(
        [f"REAL {name} = NAN;" for name in (*reals, "n0", "n1", "n2")]
        + [f"bool {name};" for name in (*truths, "p")]
        + ["unsigned long long lw_at;"]
    )


def _block(match: re.Match[str]) -> str:
    pointers = re.findall(r'"[rl]"\((\w+)\)', match[2])
    lines = [line for quoted in re.findall(r'"(.*)\\n"', match[1]) for line in quoted.split(";") if line.strip()]
    return "\n".join(_statement(line.strip(), pointers) for line in lines)


def _statement(line: str, pointers: list[str]) -> str:
    op, rest = line.split(maxsplit=1)
    name, *kind = op.split(".")
    out, *operands = (_operand(each.strip(), pointers) for each in rest.split(","))
    if name in ("ld", "st"):
        return f"{out} = {operands[0]};"
    if name == "setp":
        return f"{out} = {operands[0]} {_COMPARED[kind[0]]} {operands[1]};"
    assert name not in ("add", "sub", "mul", "fma", "sqrt") or kind[0] == "rn", line
    return f"{out} = {_EXPRESSIONS[name].format(*operands)};"


def _operand(text: str, pointers: list[str]) -> str:
    if text.startswith("["):
        place, offset = text.strip("[]").split("+")
        base = pointers[int(place[1:])] if place.startswith("%") else place
        return f"*(REAL *)((char *){base} + {offset})"
    if text.startswith("%"):
        return pointers[int(text[1:])]
    if text.startswith("0f"):
        return f"__int_as_float(0x{text[2:]})"
    if text.startswith("0d"):
        return f"__hiloint2double(0x{text[2:10]}, 0x{text[10:]})"
    return text
