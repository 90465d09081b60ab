"""The bench without a clock reads assembly and the analyser's output as it should."""

import json

import pytest

from bench import mca
from tests.targets.programs import mixture

HASWELL = mca.MACHINES["haswell"]

LOOP = """
lanes_sincos:
	pushq	%rbx
	jmp	.LBB4_1
	.p2align	4
.LBB4_3:
	incq	%r13
	jge	.LBB4_4
.LBB4_1:
	vmovapd	(%r12), %zmm0
	je	.LBB4_3
	callq	lanes_sincos_rare
	vbroadcastsd	.LCPI4_23(%rip), %zmm31
	jmp	.LBB4_3
.LBB4_4:
	popq	%rbx
	retq
"""


def test_functions_hold_instructions_and_labels_only():
    found = mca.functions(".LCPI0_0:\n\t.quad\t0\nf:\n\t.cfi\n\taddq\t$1, %rax # note\n.L1:\n\tretq\ng:\n\tret\n")
    assert found == {"f": ["addq\t$1, %rax", ".L1:", "retq"], "g": ["ret"]}


def test_the_hot_loop_leaves_out_what_calls_and_what_comes_before_and_after():
    found = mca.hot_loop(mca.functions(LOOP)["lanes_sincos"])
    assert found == ["incq\t%r13", "jge\t.LBB4_4", "vmovapd\t(%r12), %zmm0", "je\t.LBB4_3"]
    assert mca.hot_loop(["nop", "ret"]) == []


def test_only_vectors_on_the_stack_count_as_spills():
    x86 = [
        "vmovapd\t%zmm1, 64(%rsp)",
        "vmovapd\t64(%rsp), %zmm2",
        "vfmadd231pd\t128(%rsp), %zmm3, %zmm4",
        "vmovapd\t%zmm1, 64(%rdi)",
        "movq\t%rax, 8(%rsp)",
    ]
    arm = ["stp\tq0, q1, [sp, #16]", "ldr\tq0, [sp, #16]", "stp\td8, d9, [sp]", "ldr\tq2, [x0]"]
    assert mca.stack_traffic(x86) == (1, 2)
    assert mca.stack_traffic(arm) == (2, 1)


def test_values_put_aside_by_plan_count_as_spills():
    text = """define internal void @body(ptr %in0, ptr %frame) {
  %t1 = load volatile <8 x double>, ptr %in0, align 64
  %t2 = getelementptr <8 x double>, ptr %frame, i64 3
  store volatile <8 x double> %t1, ptr %t2, align 64
  %t3 = getelementptr <8 x double>, ptr %frame, i64 3
  %t4 = load volatile <8 x double>, ptr %t3, align 64
  %t5 = getelementptr <8 x double>, ptr %frame, i64 4
  %t6 = load volatile <8 x double>, ptr %t5, align 64
  ret void
}"""
    assert mca.planned_traffic(text) == (1, 1)


def test_an_analysis_is_read_per_iteration():
    text = json.dumps(
        {
            "CodeRegions": [
                {
                    "Instructions": ["a", "b"],
                    "SummaryView": {
                        "BlockRThroughput": 2.0,
                        "DispatchWidth": 4,
                        "Iterations": 10,
                        "TotalCycles": 35,
                        "TotaluOps": 40,
                    },
                    "ResourcePressureView": {
                        "ResourcePressureInfo": [
                            {"InstructionIndex": 0, "ResourceIndex": 0, "ResourceUsage": 9},
                            {"InstructionIndex": 2, "ResourceIndex": 0, "ResourceUsage": 0.5},
                            {"InstructionIndex": 2, "ResourceIndex": 1, "ResourceUsage": 2},
                        ]
                    },
                }
            ],
            "TargetInfo": {"Resources": ["Load.\x00", "Multiply.\x01"]},
        }
    )
    assert mca.Analysis.of_json("warning: call\n" + text) == mca.Analysis(3.5, 2.0, "Multiply", 2)


@pytest.mark.skipif(mca.analyser() is None, reason="needs llvm-mca")
def test_the_analyser_answers():
    one = mca.analyse(["vfmadd231pd\t%ymm1, %ymm2, %ymm3"] * 8, HASWELL, iterations=100)
    assert one is not None
    assert one.instructions == 8
    assert one.bound == 4.0  # two units multiply
    assert one.cycles == pytest.approx(40, rel=0.05)  # each waits five cycles for the one before
    assert mca.analyse(["nop"], mca.Machine(HASWELL.triple, "nonsense", "", 32, masked=False, fma=True)) is None


@pytest.mark.skipif(mca.analyser() is None, reason="needs llvm-mca")
def test_a_kernel_costs_at_least_its_bound():
    found = mca.cost(mixture(), HASWELL)
    assert found is not None
    assert found.cycles >= found.body >= 0.99 * found.bound > 0
    assert found.around > 0  # its transposes
