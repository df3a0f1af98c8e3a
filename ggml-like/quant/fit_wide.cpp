// Blocks with one scale for many values of one or two bits.
#include <algorithm>
#include <iterator>

#include "ggml-like/quant/fit.h"
#include "ggml-like/quant/fit_search.h"

namespace infer {
namespace {

using namespace fit;

// With so few codes, the best scale leaves most of the largest values beyond the outermost code.
constexpr float kFactors[] = {0.72f, 0.8f, 0.9f,  1.0f, 1.1f, 1.2f, 1.35f, 1.5f, 1.7f,
                              1.9f,  2.1f, 2.35f, 2.6f, 2.9f, 3.3f, 3.8f,  4.5f, 5.5f};

template <bool kWeighted, int kN>
void search(const Values<kN>& v, const Integers& grid, FitWide<kN>& fit) {
  const Part<kN, kWeighted> part(v, 0);
  fit.d = v.to_f16(best_scale(part, grid, Candidates{kFactors, static_cast<int>(std::size(kFactors))}));
  write_codes(part, v.from_f16(fit.d), grid, fit.code);
}

template <int kN>
FitWide<kN> fit_wide(const float* x, const float* importance, const Integers& grid) {
  FitWide<kN> fit{};
  Values<kN> v;
  const Loaded loaded = load(x, importance, v);
  if (loaded == Loaded::kNotFinite) fit.d = kF16NaN;
  if (loaded != Loaded::kValues) std::fill_n(fit.code, kN, grid.zero());
  else if (v.weighted) search<true>(v, grid, fit);
  else search<false>(v, grid, fit);
  return fit;
}

}  // namespace

FitWide<64> fit_scale64(const float* x, const float* importance, IntegerGrid grid) {
  return fit_wide<64>(x, importance, Integers(grid));
}

FitWide<256> fit_ternary256(const float* x, const float* importance) {
  return fit_wide<256>(x, importance, Integers({-1, 1}));
}

}  // namespace infer
