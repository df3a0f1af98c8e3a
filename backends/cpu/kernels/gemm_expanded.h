// GEMM with many tokens for the formats of expand.h: sixteen rows of expanded blocks are unpacked to a panel as in
// gemm.h. The kernel is compiled once and calls the format's expand_blocks(). Included inside an anonymous namespace
// after gemm.h.

struct Expander {
  ExpandKernel expand;
  float unit;
};

// Sixteen rows of expanded blocks as a format of formats.h. Where products are added in pairs, codes are made unsigned.
struct Expanded {
  static constexpr int kBytes = sizeof(ExpandedBlocks), kSub = 16;
  static constexpr bool kMin = false, kSigned = !kPairSums, kNarrow = false;
  static constexpr int kOffset = kPairSums ? 64 : kSignedOffset, kBits = kPairSums ? 7 : 8;
  struct Head {
    F d;
    I scales[4];
    INFER_SIMD Head(const uint8_t* p, size_t) {
      const auto& blocks = *reinterpret_cast<const ExpandedBlocks*>(p);
      d = f_load_f16(blocks.d);
      i_transpose(blocks.scales[0], 16, scales);
    }
    template <int S>
    INFER_SIMD I scale() const {
      return i_and(i_shr<8 * (S % 4)>(scales[S / 4]), i_set1(255));
    }
  };
  // c + 64 for -64 <= c < 64, per byte.
  static INFER_SIMD I prepare(I codes) {
    if constexpr (kPairSums) return i_and(i_xor(codes, byte_mask(64)), byte_mask(127));
    else return i_prepare_s8(codes);
  }
  template <int Q = 0, typename Sink>
  static INFER_SIMD void unpack(const uint8_t* p, size_t stride, const Sink& sink) {
    if constexpr (Q < 4) {
      const Places& places = reinterpret_cast<const ExpandedBlocks*>(p)->places;
      I groups[16];
      for (int j = 0; j < 4; ++j) i_transpose(p + Q * places.step + j * (80 - places.step), 256, groups + 4 * j);
      each_of_four([&]<int R>() INFER_LAMBDA {
        I codes[4];
        for (int c = 0; c < 4; ++c) codes[c] = prepare(groups[places.group[R][c]]);
        sink.template operator()<4 * Q + R>(codes);
      });
      unpack<Q + 1>(p, stride, sink);
    }
  }
};

struct ExpandedMany : SuperMany<Expanded> {
  static constexpr int kCopyBytes = sizeof(ExpandedBlocks);
  Expander expander;
  int64_t bytes;  // of a block

  int64_t block_bytes() const { return bytes; }
  INFER_SIMD void fill_group(const RowGroup& g, int64_t block, int, Panel& panel, uint8_t* copy) const {
    auto& blocks = *reinterpret_cast<ExpandedBlocks*>(copy);
    expander.expand(g.base + block * bytes, g.stride, g.count, blocks);
    fill_panel(copy, 0, panel);
    panel.d = f_mul(panel.d, f_set1(expander.unit));
  }
};

INFER_OUTLINE void many_expanded(const MatmulArgs& a, const Expander& e) {
  gemm_groups(a, ExpandedMany{{}, e, a.row_bytes / (a.k / 256)});
}

template <typename W>
void many_expanded_of(const MatmulArgs& a) {
  many_expanded(a, {expand_blocks<W>, W::kUnit});
}
