// The matmul kernels of this level, by weight type and number of tokens: one row per type. A level's simd_*.h defines
// up to how many tokens each is used: kInOrderTokens, kInOrderTokensQ6, kInOrderQ8, kTokenLanes, kFewTokens. Included
// inside an anonymous namespace after everything else.

// Tokens:                  1                   2, 3 and 4          5 to kFewTokens             more
template <typename W>
constexpr MatmulKernels rows_in_lanes(DataType type) {
  return {type, {{1, gemm_few<W, 1>}, {4, gemm_few<W, 4>}, {kFewTokens, gemm_few<W, kFewTokens>}, {kAny, gemm<W>}}};
}

// Reads weights in memory order for 1 token, and for up to kInOrder tokens where that is faster; else rows_in_lanes().
template <typename W, int T, int kInOrder>
constexpr MatmulKernel in_order_or_rows() {
  if constexpr (T <= kInOrder) return gemm_in_order<W, T>;
  else return gemm_few<W, 4>;
}
template <typename W, int kInOrder>
constexpr MatmulKernels in_order(DataType type) {
  return {type,
          {{1, gemm_in_order<W, 1>},
           {2, in_order_or_rows<W, 2, kInOrder>()},
           {4, in_order_or_rows<W, 4, kInOrder>()},
           {kFewTokens, gemm_few<W, kFewTokens>},
           {kAny, gemm<W>}}};
}

// As in_order(), with tokens in lanes for 5 to 8 tokens where that is faster on this level.
template <typename W, typename Lanes, int kInOrder>
constexpr MatmulKernels in_order_and_lanes(DataType type) {
  MatmulKernels kernels = in_order<W, kInOrder>(type);
  if constexpr (kTokenLanes) kernels.ranges[3] = {kLaneTokens, gemm_token_lanes<Lanes>};
  return kernels;
}

// Q8_0 has two kernels for one and two tokens on some levels; which is faster depends on the processor (KernelChoice).
constexpr MatmulKernels q8_0() {
  const DataType type = DataType::kQ8_0;
  const MatmulKernels rows = rows_in_lanes<Q80>(type);
  if constexpr (kInOrderQ8 == InOrder::kNever) return rows;
  const MatmulKernel one = gemm_in_order_q80<1>, two = gemm_in_order_q80<2>;
  if constexpr (kInOrderQ8 == InOrder::kPossible) {
    return {type, {rows.ranges[0], {2, gemm_few<Q80, 4>}, rows.ranges[1], rows.ranges[2], rows.ranges[3]}, one, two};
  }
  return {
      type, {{1, one}, {2, two}, rows.ranges[1], rows.ranges[2], rows.ranges[3]}, gemm_few<Q80, 1>, gemm_few<Q80, 4>};
}

// Formats of few_blocks.h and expand.h.
template <typename Few, typename Expand>
constexpr MatmulKernels expanded(DataType type) {
  return {
      type,
      {{1, few_blocks<Few, 1>}, {2, few_blocks<Few, 2>}, {4, few_blocks<Few, 4>}, {kAny, many_expanded_of<Expand>}}};
}
template <typename W>
constexpr MatmulKernels book(DataType type) {
  return expanded<Book<W>, ExpandBook<W>>(type);
}

// Formats of few_small.h.
template <typename Few, typename W>
constexpr MatmulKernels small(DataType type) {
  return {type,
          {{1, few_small<Few, 1>},
           {2, few_small<Few, 2>},
           {4, few_small<Few, 4>},
           {kFewTokens, few_small<Few, kFewTokens>},
           {kAny, gemm<W>}}};
}

constexpr MatmulKernels kMatmuls[] = {
    float_kernels<LoadF32>(DataType::kF32),
    float_kernels<LoadF16>(DataType::kF16),
    float_kernels<LoadBF16>(DataType::kBF16),
    rows_in_lanes<Q40>(DataType::kQ4_0),
    rows_in_lanes<Q41>(DataType::kQ4_1),
    rows_in_lanes<Q50>(DataType::kQ5_0),
    rows_in_lanes<Q51>(DataType::kQ5_1),
    q8_0(),
    rows_in_lanes<Q2K>(DataType::kQ2_K),
    rows_in_lanes<Q3K>(DataType::kQ3_K),
    in_order_and_lanes<OneQ4K, LanesQ4K, kInOrderTokens>(DataType::kQ4_K),
    in_order<OneQ5K, kInOrderTokens>(DataType::kQ5_K),
    in_order_and_lanes<OneQ6K, LanesQ6K, kInOrderTokensQ6>(DataType::kQ6_K),
    rows_in_lanes<IQ4NL>(DataType::kIQ4_NL),
    rows_in_lanes<IQ4XS>(DataType::kIQ4_XS),
    rows_in_lanes<MXFP4>(DataType::kMXFP4),
    small<FewNVFP4, NVFP4>(DataType::kNVFP4),
    small<FewQ10, Q10>(DataType::kQ1_0),
    small<FewQ20, Q20>(DataType::kQ2_0),
    expanded<FewTQ1, ExpandTQ1>(DataType::kTQ1_0),
    expanded<FewTQ2, ExpandTQ2>(DataType::kTQ2_0),
    book<BookIQ1S>(DataType::kIQ1_S),
    book<BookIQ1M>(DataType::kIQ1_M),
    book<BookIQ2XXS>(DataType::kIQ2_XXS),
    book<BookIQ2XS>(DataType::kIQ2_XS),
    book<BookIQ2S>(DataType::kIQ2_S),
    book<BookIQ3XXS>(DataType::kIQ3_XXS),
    book<BookIQ3S>(DataType::kIQ3_S),
};
