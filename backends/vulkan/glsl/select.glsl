// The best of `n` candidates in order, by one workgroup: higher values first, then lower indices, NaN last.
// Each lane keeps the best of every kSelectLanes-th candidate; each pass takes the best of the lanes, and only the lane
// that had it searches again. If there are fewer than k candidates, the remaining indices are kNothing.

const uint kSelectLanes = 256u;
const uint kNothing = 0xffffffffu;
shared float select_values[kSelectLanes];
shared uint select_indices[kSelectLanes];

// Defined by the shader. The index of a candidate may be kNothing.
float value_at(uint candidate);
uint index_at(uint candidate);
void put(uint place, float value, uint index);

bool better(float a, uint i, float b, uint j) {
  if (j == kNothing) return i != kNothing;
  if (i == kNothing) return false;
  const bool nan_a = isnan(a), nan_b = isnan(b);
  if (nan_a || nan_b) return nan_a == nan_b ? i < j : nan_b;
  return a != b ? a > b : i < j;
}

// Puts the `k` best in order. Returns the value of the first, in all lanes.
float select_best(uint n, uint k) {
  const uint lane = gl_LocalInvocationID.x;
  float best = 0.0, last_value = 0.0, first = 0.0;
  uint index = kNothing, last_index = kNothing;
  for (uint place = 0u; place < k; ++place) {
    if (place == 0u || index == last_index) {
      index = kNothing;
      for (uint i = lane; i < n; i += kSelectLanes) {
        const float value = value_at(i);
        const uint at = index_at(i);
        const bool left = place == 0u || better(last_value, last_index, value, at);
        if (left && better(value, at, best, index)) {
          best = value;
          index = at;
        }
      }
    }
    select_values[lane] = best;
    select_indices[lane] = index;
    barrier();
    for (uint stride = kSelectLanes / 2u; stride > 0u; stride >>= 1) {
      if (lane < stride && better(select_values[lane + stride], select_indices[lane + stride], select_values[lane],
                                  select_indices[lane])) {
        select_values[lane] = select_values[lane + stride];
        select_indices[lane] = select_indices[lane + stride];
      }
      barrier();
    }
    last_value = select_values[0];
    last_index = select_indices[0];
    if (place == 0u) first = last_value;
    if (lane == 0u) put(place, last_value, last_index);
    barrier();
  }
  return first;
}

// The sum over the lanes, in all of them.
float sum_of_lanes(float x) {
  const uint lane = gl_LocalInvocationID.x;
  select_values[lane] = x;
  barrier();
  for (uint stride = kSelectLanes / 2u; stride > 0u; stride >>= 1) {
    if (lane < stride) select_values[lane] += select_values[lane + stride];
    barrier();
  }
  return select_values[0];
}
