// What backends compute from positions alone: the rotation angles of rotary position embeddings, YaRN included, and the
// factor of PositionFactorParams.
#pragma once

#include <span>
#include <vector>

#include "ggml-like/op.h"

namespace infer {

struct RopeAngles {
  std::vector<double> step;  // [n_dims / 2]: angle of pair i at position p is p * step[i]
  float magnitude;           // factor for cosine and sine
};

// `factors` is empty or has at least n_dims / 2 entries.
RopeAngles rope_angles(const RopeTableParams& params, std::span<const float> factors);

// Writes magnitude * (cos, sin) of each pair at one position, which is a multiple of the period: [n_dims / 2, 2].
void rope_row(const RopeAngles& angles, int position, float* row);

float position_factor(const PositionFactorParams& params, int position);

}  // namespace infer
