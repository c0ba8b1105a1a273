"""scripts/gpu_kernels.py: that it counts the instructions of the loop, and those that a branch may skip apart."""

from scripts.gpu_kernels import Turn, turn_of

LISTING = """
.text.runs:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
.L_x_4:
        /*0010*/                   IMAD R2, R3, 0x400, R0 ;
        /*0020*/              @!P0 BRA `(.L_x_0) ;
        /*0030*/                   LOP3.LUT R5, R5, R6, RZ, 0xc0, !PT ;
        /*0040*/                   LOP3.LUT R5, R5, R6, RZ, 0xc0, !PT ;
.L_x_0:
        /*0050*/              @!P1 BRA `(.L_x_3) ;
        /*0060*/              @P2  STG.E desc[UR14][R74.64], R2 ;
.L_x_3:
        /*0070*/               @P0 BRA `(.L_x_4) ;
        /*0080*/                   EXIT ;
.L_x_9:
        /*0090*/                   BRA `(.L_x_9);
"""


def test_instructions_of_a_turn():
    assert turn_of(LISTING) == Turn(always=4, refill=1, seldom=2)
