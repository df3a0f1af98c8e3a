// Operations on recurrent states, token by token, so that results do not depend on how a text is split into steps.
// Lanes are channels or columns of the state; sums over the state's rows run in order, those over lanes as in floats.h.
// Included inside an anonymous namespace after floats.h.

INFER_SIMD float first_lane(F x) {
  float lanes[16];
  f_store(lanes, x);
  return lanes[0];
}

void short_conv(const ShortConvArgs& a) {
  constexpr int kBlock = 256;  // channels whose rows are read together
  const int before = (a.width - 1) * a.dilation;
  // Row t of the step; those before it come from the state.
  const auto row_at = [&](int t)
                          INFER_LAMBDA { return t < 0 ? a.state + (t + before) * a.channels : a.x + t * a.x_stride; };
  for (int64_t first = a.begin; first < a.end; first += kBlock) {
    const int count = a.end - first < kBlock ? static_cast<int>(a.end - first) : kBlock;
    float weight[kMaxConvWidth * kBlock];  // [width][kBlock]
    for (int j = 0; j < a.width; ++j) {
      for (int i = 0; i < count; ++i) weight[kBlock * j + i] = a.weight[(first + i) * a.width + j];
    }
    for (int t = 0; t < a.n_tokens; ++t) {
      for (int i = 0; i < count; i += 16) {
        const int n = count - i < 16 ? count - i : 16;
        const int64_t c = first + i;
        F sum = f_zero();
        for (int j = 0; j < a.width; ++j) {
          sum = f_fma(take(row_at(t - before + j * a.dilation) + c, n), take(weight + kBlock * j + i, n), sum);
        }
        if (a.bias) sum = f_add(sum, take(a.bias + c, n));
        if (a.silu) sum = activate_lanes<UnaryKind::kSilu>(sum);
        f_store_first(a.y + t * a.y_stride + c, sum, n);
      }
    }
    // Ascending: each row is read before it is overwritten.
    for (int j = 0; j < before; ++j) {
      __builtin_memmove(a.state + j * a.channels + first, row_at(a.n_tokens - before + j) + first,
                        static_cast<size_t>(count) * sizeof(float));
    }
  }
}

// Adds n channels of one row to the sums of a block: `sums` is [3][dim].
INFER_SIMD void add_gated(const GatedPoolArgs& a, const float* x, const float* gates, const float* offsets, float* sums,
                          int n) {
  float *largest = sums, *total = sums + a.dim, *sum = total + a.dim;
  F gate = take(gates, n);
  if (offsets) gate = f_add(gate, take(offsets, n));
  const F old = take(largest, n), weights = take(total, n);
  const F best = f_select_less(f_zero(), weights, f_max(old, gate), gate);
  const F before = f_select_less(f_zero(), weights, exp_lanes(f_sub(old, best)), f_zero());
  const F weight = exp_lanes(f_sub(gate, best));
  f_store_first(sum, f_fma(take(sum, n), before, f_mul(take(x, n), weight)), n);
  f_store_first(total, f_fma(weights, before, weight), n);
  f_store_first(largest, best, n);
}

void gated_pool(const GatedPoolArgs& a) {
  for (int t = 0; t < a.n_tokens; ++t) {
    const int place = (a.position + t) % a.block;
    for (int i = a.begin; i < a.end; i += 16) {
      const int n = a.end - i < 16 ? a.end - i : 16;
      for (int part = 0; part < a.parts; ++part) {
        const int64_t at = int64_t{part} * a.dim + i;
        const float* offsets = a.offsets ? a.offsets + int64_t{place} * a.parts * a.dim + at : nullptr;
        // The last part belongs to the current block.
        float* sums = a.state + int64_t{a.parts - 1 - part} * 3 * a.dim + i;
        add_gated(a, a.x + t * a.x_stride + at, a.gates + t * a.gates_stride + at, offsets, sums, n);
      }
      float* sums = a.state + i;
      f_store_first(a.y + int64_t{t} * a.dim + i, f_div(take(sums + 2 * a.dim, n), take(sums + a.dim, n)), n);
      for (int v = 0; place == a.block - 1 && v < 3; ++v, sums += a.dim) {
        f_store_first(sums, a.parts > 1 ? take(sums + 3 * a.dim, n) : f_zero(), n);
        if (a.parts > 1) f_store_first(sums + 3 * a.dim, f_zero(), n);
      }
    }
  }
}

// One head for one token, whose time step is `step`.
INFER_SIMD void scan_head(const SelectiveScanArgs& a, int head, int t, float step) {
  const float* b = a.b + t * a.b_stride + static_cast<int64_t>(head / a.heads_per_group) * a.n_state;
  const float* c = a.c + t * a.c_stride + static_cast<int64_t>(head / a.heads_per_group) * a.n_state;
  const float* rates = a.a_per_value ? a.a + static_cast<int64_t>(head) * a.n_state : nullptr;
  const F common = rates ? f_zero() : exp_lanes(f_set1(step * a.a[head]));
  for (int i = 0; i < a.dim; ++i) {
    const int64_t at = static_cast<int64_t>(head) * a.dim + i;
    const float x = a.x[t * a.x_stride + at];
    const F scaled = f_set1(x * step);
    float* state = a.state + at * a.n_state;
    F sum = f_zero();
    for (int j = 0; j < a.n_state; j += 16) {
      const int n = a.n_state - j < 16 ? a.n_state - j : 16;
      const F decay = rates ? exp_lanes(f_mul(f_set1(step), take(rates + j, n))) : common;
      const F s = f_fma(take(state + j, n), decay, f_mul(take(b + j, n), scaled));
      f_store_first(state + j, s, n);
      sum = f_fma(s, take(c + j, n), sum);
    }
    const float y = f_reduce_add(sum);
    a.y[t * a.y_stride + at] = a.skip ? __builtin_fmaf(a.skip[head], x, y) : y;
  }
}

void scan(const SelectiveScanArgs& a) {
  // Many heads of one dimension share a vector of time steps; one large head at a time stays in the cache.
  const int most = a.dim == 1 ? 16 : 1;
  for (int head = a.head_begin; head < a.head_end; head += most) {
    const int n = a.head_end - head < most ? a.head_end - head : most;
    for (int t = 0; t < a.n_tokens; ++t) {
      float steps[16];
      f_store(steps, activate_lanes<UnaryKind::kSoftplus>(take(a.dt + t * a.dt_stride + head, n)));
      for (int i = 0; i < n; ++i) scan_head(a, head + i, t, steps[i]);
    }
  }
}

// Calls f<kVectors>(column, lanes of the last vector) for the columns in [begin, end), up to 64 at a time.
template <typename G>
INFER_SIMD void for_columns(int begin, int end, const G& g) {
  int column = begin;
  for (; column + 64 <= end; column += 64) g.template operator()<4>(column, 16);
  for (; column < end; column += 16) g.template operator()<1>(column, end - column < 16 ? end - column : 16);
}

void delta_rule(const DeltaRuleArgs& a) {
  for_columns(a.begin, a.end, [&]<int kVectors>(int column, int n) INFER_LAMBDA {
    for (int t = 0; t < a.n_tokens; ++t) {
      const float *q = a.q + t * a.q_stride, *k = a.k + t * a.k_stride, *v = a.v + t * a.v_stride + column;
      const float* dt = a.dt + t * a.dt_stride;
      const auto decay_lanes = [&](F x) INFER_LAMBDA {
        const F rate = f_set1(a.a);
        return exp_lanes(a.lowest_decay < 0 ? f_mul(f_set1(a.lowest_decay), sigmoid_lanes(f_mul(rate, x)))
                                            : f_mul(rate, activate_lanes<UnaryKind::kSoftplus>(x)));
      };
      if (a.dt_per_channel) {
        for_lanes(a.decays, a.key_dim, [&](int64_t i, int m) INFER_LAMBDA { return decay_lanes(take(dt + i, m)); });
      } else {
        const F decay = decay_lanes(f_set1(*dt));
        for_lanes(a.decays, a.key_dim, [&](int64_t, int) INFER_LAMBDA { return decay; });
      }
      F sums[kVectors];
      for (int j = 0; j < kVectors; ++j) sums[j] = f_zero();
      for (int i = 0; i < a.key_dim; ++i) {
        const float* s = a.state + static_cast<int64_t>(i) * a.value_dim + column;
        const F decay = f_set1(a.decays[i]), key = f_set1(k[i]);
        for (int j = 0; j < kVectors; ++j) sums[j] = f_fma(f_mul(take(s + 16 * j, n), decay), key, sums[j]);
      }
      const F beta = f_set1(a.beta[t * a.beta_stride]);
      F corrections[kVectors];
      for (int j = 0; j < kVectors; ++j) {
        corrections[j] = f_mul(f_sub(take(v + 16 * j, n), sums[j]), beta);
        sums[j] = f_zero();
      }
      for (int i = 0; i < a.key_dim; ++i) {
        float* s = a.state + static_cast<int64_t>(i) * a.value_dim + column;
        const F decay = f_set1(a.decays[i]), key = f_set1(k[i]), query = f_set1(q[i]);
        for (int j = 0; j < kVectors; ++j) {
          const F next = f_fma(key, corrections[j], f_mul(take(s + 16 * j, n), decay));
          f_store_first(s + 16 * j, next, n);
          sums[j] = f_fma(next, query, sums[j]);
        }
      }
      for (int j = 0; j < kVectors; ++j) f_store_first(a.y + t * a.y_stride + column + 16 * j, sums[j], n);
    }
  });
}

void wkv(const WkvArgs& a) {
  const auto decay_lanes = [&](F w) INFER_LAMBDA {
    return exp_lanes(a.a ? f_mul(f_set1(-0.606531f), sigmoid_lanes(w)) : f_sub(f_zero(), exp_lanes(w)));
  };
  for_columns(a.begin, a.end, [&]<int kVectors>(int column, int n) INFER_LAMBDA {
    for (int t = 0; t < a.n_tokens; ++t) {
      const float *r = a.r + t * a.r_stride, *k = a.k + t * a.k_stride, *v = a.v + t * a.v_stride + column;
      const float *w = a.w + t * a.w_stride, *read = a.a + t * a.a_stride, *write = a.b + t * a.b_stride;
      for_lanes(a.decays, a.dim, [&](int64_t i, int m) INFER_LAMBDA { return decay_lanes(take(w + i, m)); });
      F sums[kVectors], reads[kVectors];
      for (int j = 0; j < kVectors; ++j) sums[j] = reads[j] = f_zero();
      for (int i = 0; a.a && i < a.dim; ++i) {
        const float* s = a.state + static_cast<int64_t>(i) * a.dim + column;
        for (int j = 0; j < kVectors; ++j) reads[j] = f_fma(take(s + 16 * j, n), f_set1(read[i]), reads[j]);
      }
      for (int i = 0; i < a.dim; ++i) {
        float* s = a.state + static_cast<int64_t>(i) * a.dim + column;
        const F decay = f_set1(a.decays[i]), receptance = f_set1(r[i]);
        for (int j = 0; j < kVectors; ++j) {
          const F last = take(s + 16 * j, n);
          F next = f_fma(f_set1(k[i]), take(v + 16 * j, n), f_mul(last, decay));
          if (a.a) next = f_fma(f_set1(write[i]), reads[j], next);
          f_store_first(s + 16 * j, next, n);
          sums[j] = f_fma(a.a ? next : last, receptance, sums[j]);
        }
      }
      const float bonus = sum_lanes(a.dim, [&](int64_t i, int m, F s) INFER_LAMBDA {
        return f_fma(f_mul(take(r + i, m), take(a.first + i, m)), take(k + i, m), s);
      });
      for (int j = 0; j < kVectors; ++j) {
        const int64_t to = t * a.y_stride + column + 16 * j;
        f_store_first(a.y + to, sums[j], n);
        f_store_first(a.bonus + to, f_mul(take(v + 16 * j, n), f_set1(bonus)), n);
      }
    }
  });
}
