"""How many cycles the emitted kernels need, without a clock: LLVM's machine-code analyser on their assembly.

``python -m bench.mca`` compiles the batch kernels for five processors, wherever it runs, and asks ``llvm-mca`` (19 or
newer knows all five) what one state costs there. A kernel is its ``body`` and what is called around it: sines and
cosines, and the transposes, where they are not woven into the body. Of the body also its throughput bound is shown,
with the part of the processor that sets it, and how many vectors it puts aside in memory and brings back.

What the analyser does not know: caches and their misses, the time from a store to the load that reads it, the cost of
wide vectors to the clock. Its figures are to be compared with each other, not with a watch.
``LLVM_MCA`` names the program where it is not on the path.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from bench.codegen_micro import robot_programs
from bench.report import table, write
from bench.robots import ROBOTS
from linkwise.targets.llvm import jit, source, transcendental, weaving
from linkwise.targets.llvm.binding import Machine, using_llvm
from linkwise.targets.llvm.function_plan import GroupedCall, make_plan
from linkwise.targets.llvm.ir import LaneShape
from linkwise.trace.block import Block

_X86, _ARM = "x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"
MACHINES = {
    machine.cpu: machine
    for machine in (
        Machine(_X86, "znver4", "", 64, masked=True, fma=True),
        Machine(_X86, "icelake-server", "", 64, masked=True, fma=True),
        Machine(_X86, "sapphirerapids", "", 64, masked=True, fma=True),
        Machine(_X86, "haswell", "", 32, masked=False, fma=True),
        Machine(_ARM, "neoverse-v2", "", 16, masked=False, fma=True),
    )
}
QUANTITIES = ("inverse_dynamics", "forward_dynamics", "linearize_inverse", "linearize_forward")
ITERATIONS = 10  # one behind the other, as blocks of states are

_LABEL = re.compile(r"^([\w.$]+):")
_JUMP = re.compile(r"^(?:j\w+|b|b\.\w+|cbn?z|tbn?z)\s.*?(\.L\w+)$")
_CALL = re.compile(r"^(?:call\w*|blr?)\s")
_FRAME = re.compile(r"^(?:push|pop|ret|leave)")
_ON_STACK = re.compile(r"\(%r[sb]p\)|\[(?:sp|x29)\b")
_SLOT = re.compile(r"\s*(%\w+) = getelementptr .*, ptr %frame, i64 (-?\d+)$")
_PUT = re.compile(r"\s*store volatile <.*, ptr (%\w+), align \d+$")
_READ = re.compile(r"\s*%\w+ = load volatile <.*, ptr (%\w+), align \d+$")
_VECTOR = re.compile(r"%[xyz]mm\d|\b[qz]\d")


@dataclass(frozen=True)
class Analysis:
    """What the analyser says of a stretch of code, each time it is run."""

    cycles: float
    bound: float  # cycles, if nothing ever waited for an argument
    busiest: str  # the unit that sets the bound, "dispatch" where it is the number of operations
    instructions: int

    @classmethod
    def of_json(cls, text: str) -> Analysis:
        """From the output of ``llvm-mca --json``."""
        found = json.loads(text[text.index("{") :])
        region = found["CodeRegions"][0]
        summary, names = region["SummaryView"], found["TargetInfo"]["Resources"]
        count, rounds = len(region["Instructions"]), summary["Iterations"]
        busy = {"dispatch": summary["TotaluOps"] / rounds / summary["DispatchWidth"]}
        for use in region["ResourcePressureView"]["ResourcePressureInfo"]:
            if use["InstructionIndex"] == count:  # the sums come behind the last instruction
                name = re.sub(r"[^\w]+$", "", names[use["ResourceIndex"]])
                busy[name] = max(busy.get(name, 0.0), use["ResourceUsage"])
        busiest = max(busy, key=busy.__getitem__)
        return cls(summary["TotalCycles"] / rounds, summary["BlockRThroughput"], busiest, count)


@dataclass(frozen=True)
class Cost:
    """A kernel on a machine; cycles and instructions are those of one state."""

    body: float
    bound: float
    busiest: str
    around: float  # sines and cosines, transposes
    instructions: float
    spills: float  # vectors put aside in memory
    reloads: float  # vectors read from there, by a load or as an operand

    @property
    def cycles(self) -> float:
        """All together."""
        return self.body + self.around


@cache
def analyser() -> str | None:
    """The program: what ``LLVM_MCA`` names, or the newest on the path."""
    names = [os.environ.get("LLVM_MCA", ""), *(f"llvm-mca-{version}" for version in range(30, 13, -1)), "llvm-mca"]
    return next((path for path in map(shutil.which, filter(None, names)) if path), None)


@cache
def known(machine: Machine) -> bool:
    """Whether the analyser has this processor."""
    return analyse(["nop"], machine) is not None


def analyse(lines: Sequence[str], machine: Machine, iterations: int = ITERATIONS) -> Analysis | None:
    """What the analyser says of instructions one behind the other; None if it does not know the processor."""
    program = analyser()
    if program is None:
        raise SystemExit("bench.mca needs llvm-mca (Debian: llvm-19); set LLVM_MCA to where it is")
    options = [f"-mtriple={machine.triple}", f"-mcpu={machine.cpu}", f"-iterations={iterations}", "-json", "-"]
    done = subprocess.run([program, *options], input="\n".join(lines) + "\n", capture_output=True, text=True)
    if "not a recognized processor" in done.stderr or "unable to find" in done.stderr:
        return None
    if done.returncode:
        raise RuntimeError(f"{program} failed: {done.stderr[-2000:]}")
    return Analysis.of_json(done.stdout)


def functions(assembly: str) -> dict[str, list[str]]:
    """The instructions and labels of each function, without directives and comments."""
    found: dict[str, list[str]] = {}
    lines: list[str] = []
    for raw in assembly.splitlines():
        line = raw.split("//")[0].split(" # ")[0].strip()
        label = _LABEL.match(line)
        if label and not label[1].startswith(".L"):
            lines = found.setdefault(label[1], [])
        elif line and (label or not line.startswith((".", "#"))):
            lines.append(line)
    return found


def straight(lines: Sequence[str]) -> list[str]:
    """A body's own instructions: not its labels, calls and what saves the caller's registers."""
    return [line for line in lines if not (_LABEL.match(line) or _CALL.match(line) or _FRAME.match(line))]


def hot_loop(lines: Sequence[str]) -> list[str]:
    """The blocks of a function's first loop, but for those that call out, which hardly ever run."""
    places = {found[1]: k for k, line in enumerate(lines) if (found := _LABEL.match(line))}
    back = [
        (places[found[1]], k)
        for k, line in enumerate(lines)
        if (found := _JUMP.match(line)) and places.get(found[1], k) < k
    ]
    if not back:
        return []
    first = min(start for start, _ in back)
    last = max(end for start, end in back if start == first)
    blocks: list[list[str]] = [[]]
    for line in lines[first : last + 1]:
        if _LABEL.match(line):
            blocks.append([])
            continue
        blocks[-1].append(line)
        if _JUMP.match(line):
            blocks.append([])
    return [line for block in blocks if not any(map(_CALL.match, block)) for line in block]


def stack_traffic(lines: Sequence[str]) -> tuple[int, int]:
    """Vectors stored to the stack, and vectors read from it."""
    stored = read = 0
    for line in lines:
        if not (_ON_STACK.search(line) and _VECTOR.search(line)):
            continue
        name, _, operands = line.partition("\t")
        pair = 2 if name in ("stp", "ldp") else 1
        if name.startswith("st") or ("[" not in operands and _ON_STACK.search(operands.rsplit(",", 1)[-1])):
            stored += pair
        else:
            read += pair
    return stored, read


def planned_traffic(text: str) -> tuple[int, int]:
    """Vectors that a woven body puts aside in the frame by plan, not by LLVM's choice, and how often it reads them."""
    stored, read = set(), 0
    put_aside = 0
    slots = {"%frame": "0"}
    for line in text[text.index("@body(") : text.index("ret void", text.index("@body("))].splitlines():
        if found := _SLOT.match(line):
            slots[found[1]] = found[2]
        elif (found := _PUT.match(line)) and found[1] in slots:
            put_aside += 1
            stored.add(slots[found[1]])
        elif (found := _READ.match(line)) and slots.get(found[1]) in stored:
            read += 1
    return put_aside, read


@dataclass(frozen=True)
class Code:
    """A batch kernel as assembly: its functions, what its body computes, and whether it does the transposes."""

    functions: dict[str, list[str]]
    main: Block
    woven: bool
    put_aside: int  # vectors stored by the text's own plan,
    brought_back: int  # and read again

    @classmethod
    def of(cls, program: Block, machine: Machine, bits: int) -> Code:
        """Compiled for any machine, from any machine."""
        with using_llvm() as llvm:
            llvm.initialize_all_targets()
            llvm.initialize_all_asmprinters()
        module = source.batch_module(program, machine, bits)
        text = jit.compile_text(module.text, machine, in_order=module.in_order, assembly=True)
        woven = weaving.overlap(program, machine, LaneShape(bits, machine.vector_bytes * 8 // bits))
        if woven is None:
            return cls(functions(text), program, False, 0, 0)
        return cls(functions(text), woven.program, True, *planned_traffic(module.text))


def cost(program: Block, machine: Machine, bits: int = 64) -> Cost | None:
    """What a state costs; None if the analyser does not know the machine."""
    if not known(machine):
        return None
    code, lanes = Code.of(program, machine, bits), machine.vector_bytes * 8 // bits
    bodies = [straight(lines) for name, lines in code.functions.items() if re.fullmatch(r"body(_\d+)?", name)]
    parts = [part for lines in bodies if lines and (part := analyse(lines, machine))]
    traffic = [stack_traffic(lines) for lines in bodies]
    return Cost(
        sum(part.cycles for part in parts) / lanes,
        sum(part.bound for part in parts) / lanes,
        max(parts, key=lambda part: part.cycles).busiest,
        sum(_loop_cycles(code, name, n, machine) for name, n in _rounds(code, lanes).items()) / lanes,
        sum(part.instructions for part in parts) / lanes,
        (code.put_aside + sum(stored for stored, _ in traffic)) / lanes,
        (code.brought_back + sum(read for _, read in traffic)) / lanes,
    )


def _rounds(code: Code, lanes: int) -> dict[str, int]:
    """How often each loop outside the body is run for a block of states."""
    rounds: dict[str, int] = {}
    for piece in make_plan(code.main).pieces:
        for step in piece.steps:
            if isinstance(step, GroupedCall):
                name = transcendental.function_name(step.entry)
                rounds[name] = rounds.get(name, 0) + len(step.members)
    if not code.woven:
        rounds["rows_to_lanes"] = sum(-(-array.size // lanes) for array in code.main.inputs)
        rounds["lanes_to_rows"] = sum(-(-array.size // lanes) for array in code.main.outputs)
    return rounds


def _loop_cycles(code: Code, name: str, rounds: int, machine: Machine) -> float:
    found = analyse(hot_loop(code.functions[name]), machine, rounds) if rounds else None
    return found.cycles * rounds if found else 0.0


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.mca", description="Cycles per state of the batch kernels.")
    parser.add_argument("--cpus", nargs="+", default=list(MACHINES), choices=list(MACHINES))
    parser.add_argument("--robots", nargs="+", default=["panda", "g1"], choices=list(ROBOTS))
    parser.add_argument("--quantities", nargs="+", default=QUANTITIES[:2], choices=QUANTITIES)
    parser.add_argument("--bits", type=int, default=64, choices=(32, 64))
    parser.add_argument("--json", action="store_true", help="write the results to bench/results as well")
    asked = parser.parse_args()
    header = ["", "cycles", "body", "bound", "set by", "around", "instr.", "spills", "reloads"]
    rows: list[list[object]] = []
    for name, program in robot_programs(asked.robots, asked.quantities):
        for cpu in asked.cpus:
            found = cost(program, MACHINES[cpu], asked.bits)
            shown = _shown(found) if found else [None] * (len(header) - 1)
            rows.append([f"{name} {cpu}", *shown])
    print(table(header, rows))
    print(f"\nper state, float{asked.bits}; {version()}")
    if asked.json:
        print(write("mca", {"analyser": version(), "bits": asked.bits, "header": header, "rows": rows}))


def _shown(found: Cost) -> list[object]:
    first = [found.cycles, found.body, found.bound]
    return [*first, found.busiest, found.around, found.instructions, found.spills, found.reloads]


def version() -> str:
    """What the analyser calls itself."""
    text = subprocess.run([str(analyser()), "--version"], capture_output=True, text=True).stdout
    return next((line.strip() for line in text.splitlines() if "version" in line), "no analyser")


if __name__ == "__main__":
    main()
