// SentencePiece Unigram: normalizes the text by the vocabulary's compiled character map, then finds the token sequence
// with the highest sum of scores by dynamic programming over byte positions.
#include <algorithm>
#include <cfloat>
#include <cstring>
#include <string>

#include "ggml-like/bytes_text.h"
#include "ggml-like/error.h"
#include "ggml-like/message.h"
#include "src/text/byte_trie.h"
#include "src/text/tokenizer_algorithm.h"
#include "src/text/utf8.h"

namespace infer {
namespace {

constexpr float kUnknownPenalty = 10.0f;  // below the lowest score of a normal token

// The compiled map: a 32-bit size, a double array of that many bytes (a trie over UTF-8 bytes), and NUL-terminated
// replacement strings. A node has its child's base in bits 10 to 30 (shifted by 8 more if bit 9 is set), a "has a
// value" flag in bit 8 and its own label in bits 0 to 7; a value node has bit 31 set and an offset into the strings.
class CharacterMap {
 public:
  explicit CharacterMap(const std::vector<uint8_t>& bytes) {
    if (bytes.empty()) return;
    uint32_t size = 0;
    if (bytes.size() >= sizeof(size)) std::memcpy(&size, bytes.data(), sizeof(size));
    if (bytes.size() < sizeof(size) || size % 4 != 0 || size >= bytes.size() - sizeof(size) || bytes.back() != 0) {
      throw Error(
          ErrorCode::kInvalidFile,
          expected_found("tokenizer", "tokenizer.ggml.precompiled_charsmap", "a table and NUL-terminated strings",
                         concat(grouped(bytes.size()), " bytes with a table of ", grouped(size))));
    }
    nodes_.resize(size / 4);
    if (size > 0) std::memcpy(nodes_.data(), bytes.data() + sizeof(size), size);
    strings_.assign(bytes.begin() + sizeof(size) + size, bytes.end());
  }

  struct Match {
    size_t length = 0;  // bytes of text; 0: no match
    std::string_view replacement;
  };

  Match longest_match(std::string_view text, size_t at) const {
    Match best;
    if (nodes_.empty()) return best;
    uint32_t node = base(0);
    for (size_t i = at; i < text.size() && text[i] != 0; ++i) {
      const auto label = static_cast<uint8_t>(text[i]);
      node ^= label;
      if (node >= nodes_.size() || (nodes_[node] & 0x800000FFu) != label) break;
      const bool has_value = nodes_[node] >> 8 & 1;
      node ^= base(node);
      if (node >= nodes_.size()) break;
      if (has_value) {
        const uint32_t offset = nodes_[node] & 0x7FFFFFFFu;
        if (offset >= strings_.size()) break;
        best = {i + 1 - at, std::string_view(strings_.c_str() + offset)};
      }
    }
    return best;
  }

 private:
  uint32_t base(uint32_t node) const { return (nodes_[node] >> 10) << ((nodes_[node] & 1u << 9) >> 6); }

  std::vector<uint32_t> nodes_;
  std::string strings_;
};

class Unigram final : public TokenizerAlgorithm {
 public:
  explicit Unigram(const Vocabulary& vocabulary) : vocabulary_(vocabulary), map_(vocabulary.precompiled_charsmap) {
    if (vocabulary.unk == kNoToken) {
      throw Error(ErrorCode::kInvalidFile,
                  expected_found("tokenizer", "an unknown token in a Unigram vocabulary", "none"));
    }
    float lowest = FLT_MAX;
    ByteTrie::Entries all, user_defined;
    for (size_t id = 0; id < vocabulary.tokens.size(); ++id) {
      const Vocabulary::Token& token = vocabulary.tokens[id];
      const auto entry = std::pair<std::string_view, int32_t>(token.text, static_cast<int32_t>(id));
      if (token.type == TokenType::kNormal) lowest = std::min(lowest, token.score);
      if (token.type == TokenType::kUserDefined) user_defined.push_back(entry);
      if (token.type == TokenType::kNormal || token.type == TokenType::kUserDefined ||
          token.type == TokenType::kUnused) {
        all.push_back(entry);
      }
    }
    unknown_score_ = lowest - kUnknownPenalty;
    tokens_ = ByteTrie(std::move(all));
    user_defined_ = ByteTrie(std::move(user_defined));
  }

  void encode(std::string_view text, bool, std::vector<TokenId>& out) const override {
    const std::string normalized = normalize(text);
    if (normalized.empty()) return;
    // The best way to reach each byte position: its last token, where that token begins, the sum of scores.
    struct Step {
      TokenId token;
      uint32_t begin;
      double score;
    };
    std::vector<Step> steps(normalized.size() + 1, {vocabulary_.unk, 0, -DBL_MAX});
    steps[0].score = 0;
    for (size_t at = 0; at < normalized.size();) {
      const size_t length = decode_utf8(normalized, at).length;
      const double score = steps[at].score;
      bool covered = false;
      int32_t node = ByteTrie::kRoot;
      for (size_t i = at; i < normalized.size(); ++i) {
        node = tokens_.child(node, static_cast<uint8_t>(normalized[i]));
        if (node == ByteTrie::kNone) break;
        const TokenId token = tokens_.value(node);
        if (token == ByteTrie::kNone) continue;
        if (i + 1 - at == length) covered = true;
        const Vocabulary::Token& data = vocabulary_.tokens[static_cast<size_t>(token)];
        const double sum = score + (data.type == TokenType::kUserDefined ? 0.0 : static_cast<double>(data.score));
        if (sum > steps[i + 1].score) steps[i + 1] = {token, static_cast<uint32_t>(at), sum};
      }
      if (!covered && score + unknown_score_ > steps[at + length].score) {
        steps[at + length] = {vocabulary_.unk, static_cast<uint32_t>(at), score + unknown_score_};
      }
      at += length;
    }
    // From the end backwards; adjacent unknown tokens are joined into one.
    const auto first = static_cast<ptrdiff_t>(out.size());
    bool after_unknown = false;
    for (size_t at = normalized.size(); at > 0; at = steps[at].begin) {
      const bool unknown = steps[at].token == vocabulary_.unk;
      if (!(unknown && after_unknown)) out.push_back(steps[at].token);
      after_unknown = unknown;
    }
    std::reverse(out.begin() + first, out.end());
  }

 private:
  std::string normalize(std::string_view text) const {
    const std::string_view blank = vocabulary_.escape_whitespaces ? kEscapedBlank : " ";
    const bool merge_blanks = vocabulary_.remove_extra_whitespaces;
    bool prefix_due = vocabulary_.add_space_prefix, in_word = false;
    std::string out;
    out.reserve(text.size() * 2);
    const auto add = [&](std::string_view part) {
      for (const char c : part) {
        if (c == ' ') {
          in_word = false;
          if (!merge_blanks) out += blank;
          continue;
        }
        if (!in_word && (prefix_due || merge_blanks)) {
          out += blank;
          prefix_due = false;
        }
        in_word = true;
        out += c;
      }
    };
    for (size_t at = 0; at < text.size();) {
      if (const auto token = user_defined_.longest_match(text, at); token.length > 0) {
        add(text.substr(at, token.length));
        at += token.length;
      } else if (const auto match = map_.longest_match(text, at); match.length > 0) {
        add(match.replacement);
        at += match.length;
      } else {
        const Utf8Char c = decode_utf8(text, at);
        add(c.valid ? text.substr(at, c.length) : kReplacementUtf8);
        at += c.valid ? c.length : 1;
      }
    }
    return out;
  }

  const Vocabulary& vocabulary_;
  CharacterMap map_;
  ByteTrie tokens_, user_defined_;
  double unknown_score_ = 0;
};

}  // namespace

std::unique_ptr<TokenizerAlgorithm> make_unigram(const Vocabulary& vocabulary, const TextMap&) {
  return std::make_unique<Unigram>(vocabulary);
}

}  // namespace infer
