// Reads hyper-parameters from a file's `<arch>.*` metadata and checks their ranges. The reader records which keys were
// read. Any other key is rejected, unless it is known to have no effect, so that a model never runs contrary to its
// file.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "ggml-like/error.h"
#include "ggml-like/gguf.h"
#include "ggml-like/message.h"

namespace infer {

// Caps on counts: far above those of any model, far below what would overflow.
inline constexpr int64_t kMaxLayers = 4096;
inline constexpr int64_t kMaxWidth = 1 << 22;  // embedding, feed forward, heads * head size
inline constexpr int64_t kMaxHeads = 1 << 14;
inline constexpr int64_t kMaxHeadDim = 1 << 14;
inline constexpr int64_t kMaxExperts = 1 << 14;
inline constexpr int64_t kMaxVocabulary = 1 << 24;
inline constexpr int64_t kMaxContext = 1 << 30;

// The part of a file's layers that a model consists of. Prediction layers (multi-token prediction,
// https://arxiv.org/abs/2412.19437) draft for the others: from the final hidden state of a token and the token after
// it, they predict the one after that.
enum class ModelPart : uint8_t {
  kTrunk,       // all but the prediction layers
  kPrediction,  // the first prediction layer
};

// Throws Error(kInvalidFile) about the value of a key, given with its prefix.
template <typename Expected, typename Found>
[[noreturn]] void reject_value(const std::string& key, const Expected& expected, const Found& found) {
  throw Error(ErrorCode::kInvalidFile, expected_found("model", concat("key ", key), expected, found));
}

class ConfigReader {
 public:
  explicit ConfigReader(const GgufFile& file, ModelPart part = ModelPart::kTrunk);

  ModelPart part() const { return part_; }
  const std::string& architecture() const { return architecture_; }
  // Keys are given without the "<arch>." prefix.

  // A count in [low, high]. Without a fallback, the key is required; the same holds below.
  int count(std::string_view key, int64_t low, int64_t high, std::optional<int> fallback = std::nullopt);
  // One number for all n layers, or an array with one per layer.
  std::vector<int> counts(std::string_view key, int n, int64_t low, int64_t high,
                          const std::vector<int>* fallback = nullptr);
  // The first n numbers of an array, which may be longer. Required.
  std::vector<int> counts_of_first(std::string_view key, int n, int64_t low, int64_t high);
  // One flag for each of n layers: an array of booleans or integers. nullopt if the key is absent or has a single
  // number.
  std::optional<std::vector<bool>> flags(std::string_view key, int n);
  // One number in [low, high] for all n layers, or an array with one per layer. Default: `fallback`, or zeros.
  std::vector<float> numbers(std::string_view key, int n, double low, double high,
                             const std::vector<float>& fallback = {});
  // The same for a required key that is stored without the "<arch>." prefix.
  std::vector<float> numbers_without_prefix(std::string_view key, int n, double low, double high);
  // A finite number in [low, high]; booleans are 0 and 1.
  double number(std::string_view key, double low, double high, std::optional<double> fallback = std::nullopt);
  std::string text(std::string_view key, std::string_view fallback);
  std::vector<std::string> texts(std::string_view key);          // empty if the key is absent
  std::vector<uint64_t> unsigned_numbers(std::string_view key);  // the same
  // A key for which only `values` are implemented (booleans are 0 and 1); it may be absent.
  void only(std::string_view key, std::initializer_list<double> values);
  bool has_tensor(std::string_view name) const;
  // A key that does not change the result.
  void ignore(std::string_view key) { mark(key); }

  // Throws Error(kUnsupported) naming a key of the architecture that was not read.
  void finish() const;

 private:
  std::string mark(std::string_view key);  // records the key and returns its full name
  // For full names of keys.
  std::optional<std::vector<float>> find_numbers(const std::string& full, int n, double low, double high) const;
  std::optional<double> find_number(const std::string& full, double low, double high) const;

  const GgufFile& file_;
  const ModelPart part_;
  std::string architecture_;
  std::set<std::string, std::less<>> asked_;
};

}  // namespace infer
