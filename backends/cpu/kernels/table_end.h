// The exported table of kernels_<isa>.cpp; included in namespace infer::cpu after the anonymous namespace, with
// INFER_LEVEL and INFER_TABLE defined.
extern const MatmulTable INFER_TABLE;
constinit const MatmulTable INFER_TABLE = {
    INFER_LEVEL, kMatmuls, sizeof(kMatmuls) / sizeof(kMatmuls[0]), probe_read, probe_dot, probe_fma,
};
