"""scripts/peak.py: that it counts what a kernel does, and that its parts can be left out."""

from quorisk.kernels.engines.specialized.traced import Shape
from quorisk.kernels.protocols import registry
from scripts import peak
from tests.support import point_of

ASSEMBLY = """
	.globl	kernel
# %bb.0:                                # %entry
	movq	%rdi, %rax
.LBB0_1:                                # %loop
                                        # =>This Inner Loop Header: Depth=1
	vpmuludq	%zmm0, %zmm1, %zmm2     # a remark
	vmovdqu64	%zmm2, 64(%rsp)
.LBB0_2:                                #   in Loop: Header=BB0_1 Depth=1
	jne	.LBB0_1
# %bb.3:                                # %row
	vpaddd	%zmm0, %zmm1, %zmm2
"""


def test_instructions_are_counted_by_block_and_kind():
    found = peak.blocks(ASSEMBLY)
    assert {name: len(some) for name, some in found.items()} == {"entry": 1, "loop": 3, "row": 1}
    turn, kinds = peak.count(peak.Kernel(lambda: 0.0, ASSEMBLY), lanes=8, mean_steps=4.0)
    assert turn == 3 + 1 * 8 / 4
    assert kinds == {
        "vector multiplications": 1,
        "registers spilled to the stack, and back": 1,
        "scalar instructions": 1,
    }


def test_a_kernel_without_a_part_has_fewer_instructions():
    model = registry.load("compaction")
    turns = {}
    for part in peak.PARTS:
        kernel = peak.made(model, point_of(model), Shape(8, 32), part)
        assert kernel.run() > peak.RUNS
        turns[part.name] = peak.count(kernel, 8, 10.0)[0]
    whole = turns.pop("nothing")
    assert turns.pop("losses of messages") == whole  # none are sent
    assert 0 < min(turns.values()) <= max(turns.values()) < whole
