// The exported table; included in namespace infer::cpu after the anonymous namespace, with INFER_LEVEL and
// INFER_TABLE defined.
extern const KernelTable INFER_TABLE;
constinit const KernelTable INFER_TABLE = {
    INFER_LEVEL,  kMatmuls,   sizeof(kMatmuls) / sizeof(kMatmuls[0]),
    quantize256,  quantize32, rms_norm,
    layer_norm,   rms,        sparsify,
    add,          mul,        scale,
    unary,        xielu,      gated,
    rope,         softmax,    max_and_sum,
    weighted_add, to_f16,     attention,
    index_scores, short_conv, gated_pool,
    scan,         delta_rule, wkv,
    probe_read,   probe_dot,  probe_fma,
};
