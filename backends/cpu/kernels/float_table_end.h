// The exported table of kernels_<isa>_floats.cpp; included in namespace infer::cpu after the anonymous namespace, with
// INFER_TABLE defined.
extern const FloatTable INFER_TABLE;
constinit const FloatTable INFER_TABLE = {
    quantize256, quantize32, rms_norm,     layer_norm, rms,        sparsify, add,         mul,
    scale,       unary,      xielu,        gated,      rope,       softmax,  max_and_sum, weighted_add,
    to_f16,      attention,  index_scores, short_conv, gated_pool, scan,     delta_rule,  wkv,
};
