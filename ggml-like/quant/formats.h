// Scalar reference of every weight format: its definition in code, one file per format. Used through the table in
// data_type.h. Pure functions, safe from any thread; `blocks` needs the alignment of the block's struct.
//
// to_float: exact up to one rounding per value (see blocks.h). from_float: deterministic; finite input gives finite
// values (out of the format's range they are clipped; F16 and BF16 follow IEEE and overflow to infinity), and a
// block of a quantized format with a NaN or an infinity in it decodes to non-finite values only. encode: from_float
// with a weight per value (or null), see encode.h. dot: see dot.h.
#pragma once

#include <cstdint>

namespace infer {

void f32_to_float(const void* blocks, float* values, int64_t n);
void f32_from_float(const float* values, void* blocks, int64_t n);
float f32_dot(const void* blocks, const void* activations, int64_t n);

void f16_to_float(const void* blocks, float* values, int64_t n);
void f16_from_float(const float* values, void* blocks, int64_t n);
float f16_dot(const void* blocks, const void* activations, int64_t n);

void bf16_to_float(const void* blocks, float* values, int64_t n);
void bf16_from_float(const float* values, void* blocks, int64_t n);
float bf16_dot(const void* blocks, const void* activations, int64_t n);

void q4_0_to_float(const void* blocks, float* values, int64_t n);
void q4_0_from_float(const float* values, void* blocks, int64_t n);
void q4_0_encode(const float* values, const float* importance, void* blocks, int64_t n);
float q4_0_dot(const void* blocks, const void* activations, int64_t n);

void q4_1_to_float(const void* blocks, float* values, int64_t n);
void q4_1_from_float(const float* values, void* blocks, int64_t n);
void q4_1_encode(const float* values, const float* importance, void* blocks, int64_t n);
float q4_1_dot(const void* blocks, const void* activations, int64_t n);

void q5_0_to_float(const void* blocks, float* values, int64_t n);
void q5_0_from_float(const float* values, void* blocks, int64_t n);
void q5_0_encode(const float* values, const float* importance, void* blocks, int64_t n);
float q5_0_dot(const void* blocks, const void* activations, int64_t n);

void q5_1_to_float(const void* blocks, float* values, int64_t n);
void q5_1_from_float(const float* values, void* blocks, int64_t n);
void q5_1_encode(const float* values, const float* importance, void* blocks, int64_t n);
float q5_1_dot(const void* blocks, const void* activations, int64_t n);

void q8_0_to_float(const void* blocks, float* values, int64_t n);
void q8_0_from_float(const float* values, void* blocks, int64_t n);
void q8_0_encode(const float* values, const float* importance, void* blocks, int64_t n);
float q8_0_dot(const void* blocks, const void* activations, int64_t n);

void iq4_nl_to_float(const void* blocks, float* values, int64_t n);
void iq4_nl_from_float(const float* values, void* blocks, int64_t n);
void iq4_nl_encode(const float* values, const float* importance, void* blocks, int64_t n);
float iq4_nl_dot(const void* blocks, const void* activations, int64_t n);

void mxfp4_to_float(const void* blocks, float* values, int64_t n);
void mxfp4_from_float(const float* values, void* blocks, int64_t n);
void mxfp4_encode(const float* values, const float* importance, void* blocks, int64_t n);
float mxfp4_dot(const void* blocks, const void* activations, int64_t n);

void q2_k_to_float(const void* blocks, float* values, int64_t n);
void q2_k_from_float(const float* values, void* blocks, int64_t n);
void q2_k_encode(const float* values, const float* importance, void* blocks, int64_t n);
float q2_k_dot(const void* blocks, const void* activations, int64_t n);

void q3_k_to_float(const void* blocks, float* values, int64_t n);
void q3_k_from_float(const float* values, void* blocks, int64_t n);
void q3_k_encode(const float* values, const float* importance, void* blocks, int64_t n);
float q3_k_dot(const void* blocks, const void* activations, int64_t n);

void q4_k_to_float(const void* blocks, float* values, int64_t n);
void q4_k_from_float(const float* values, void* blocks, int64_t n);
void q4_k_encode(const float* values, const float* importance, void* blocks, int64_t n);
float q4_k_dot(const void* blocks, const void* activations, int64_t n);

void q5_k_to_float(const void* blocks, float* values, int64_t n);
void q5_k_from_float(const float* values, void* blocks, int64_t n);
void q5_k_encode(const float* values, const float* importance, void* blocks, int64_t n);
float q5_k_dot(const void* blocks, const void* activations, int64_t n);

void q6_k_to_float(const void* blocks, float* values, int64_t n);
void q6_k_from_float(const float* values, void* blocks, int64_t n);
void q6_k_encode(const float* values, const float* importance, void* blocks, int64_t n);
float q6_k_dot(const void* blocks, const void* activations, int64_t n);

void iq4_xs_to_float(const void* blocks, float* values, int64_t n);
void iq4_xs_from_float(const float* values, void* blocks, int64_t n);
void iq4_xs_encode(const float* values, const float* importance, void* blocks, int64_t n);
float iq4_xs_dot(const void* blocks, const void* activations, int64_t n);

void q8_k_to_float(const void* blocks, float* values, int64_t n);
void q8_k_from_float(const float* values, void* blocks, int64_t n);

}  // namespace infer
