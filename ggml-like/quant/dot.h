// The dot product of each weight format with a row of activations, as a formula that every backend follows to the last
// bit. The scalar functions in the table of types implement these formulas; a kernel may choose tiles, lanes and the
// order of integer sums, and nothing else.
//
// Notation. cvt: int32 to F32, to nearest even. fma: fused, one rounding (IEEE). `*` and `+` on floats: F32, one
// rounding each. d, dmin, m: the block's scales as F32 (exact). q, sum16, sum32, dx: fields of the activation block.
// code, sc, m_s: as in the comments of blocks.h, with the stated offsets subtracted. isum and msum are exact: no format
// comes near 2^31, but many exceed 2^24, so cvt rounds. acc starts at +0 and blocks are processed in ascending order.
// Denormals are kept.
//
// 1. Super-blocks of 256 with minima (Q2_K, Q4_K, Q5_K), for each block, codes unsigned:
//        isum = sum over s of sc_s * (sum over i in s of code_i * q_i)
//        msum = sum over s of m_s * sum16_s (Q2_K) or m_s * sum32_s (Q4_K, Q5_K)
//        v    = cvt(isum) * d
//        v    = fma(-cvt(msum), dmin, v)
//        acc  = fma(v, dx, acc)
// 2. Super-blocks of 256 without minima (Q3_K: code - 4, sc - 32; Q6_K: code - 32; IQ4_XS: table value, sc - 32; IQ2
//    and IQ3: magnitude * sign, IQ1: 8 t + delta, all with 2 sc + 1 for sc; TQ1_0 and TQ2_0: code - 1, sc = 1):
//        isum as above;  v = cvt(isum) * d;  acc = fma(v, dx, acc)
//    IQ2 and IQ1 have d / 8 for d, IQ3_XXS has d / 4 (exact).
// 3. Blocks of 32 (with Activation32), for each block:
//        v   = cvt(isum) * d                       isum = sum over i of code_i * q_i
//        v   = fma(cvt(sum32), m, v)               Q4_1 and Q5_1 only
//        acc = fma(v, dx, acc)
//    Q4_0: code - 8; Q5_0: code - 16; Q4_1, Q5_1: unsigned; Q8_0: as stored; IQ4_NL, MXFP4: table value. MXFP4 has
//    d = 2^(e - 128) for every e (e8m0_to_f32_half). Q1_0 (1 or -1) and Q2_0 (code - 1): d is that of the block of
//    128 or 64 values. In NVFP4 (table value) each half of 16 values is such a block, with a d of its own and the dx
//    of its 32 values.
// 4. Float weights (F32, F16, BF16; w_i as F32, exact) with float activations: 16 partial sums from +0, i ascending,
//        p[i mod 16] = fma(w_i, x_i, p[i mod 16])
//    and then reduce16(p).
#pragma once

namespace infer {

// The tree that adds 16 partial sums, here and in every kernel:
// r[j] = p[j] + p[j + 8] for j < 8; r[j] += r[j + 4] for j < 4; r[j] += r[j + 2] for j < 2; the result is r[0] + r[1].
float reduce16(const float p[16]);

}  // namespace infer
