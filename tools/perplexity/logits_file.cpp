#include "tools/perplexity/logits_file.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>

#include "ggml-like/bytes_text.h"
#include "ggml-like/error.h"
#include "ggml-like/message.h"
#include "ggml-like/printable.h"
#include "src/text/logprobs.h"

namespace infer {
namespace {

constexpr char kMagic[8] = {'_', 'l', 'o', 'g', 'i', 't', 's', '_'};
constexpr float kRange = 16;      // log-probabilities are clamped to this far below the best one
constexpr float kLevels = 65535;  // of a code
constexpr size_t kHead = 4;       // uint16 before a row's codes: two floats
constexpr int64_t kMaxTokens = int64_t{1} << 31;

size_t row_size(int n_vocab) { return kHead + 2 * ((static_cast<size_t>(n_vocab) + 1) / 2); }

}  // namespace

LogitsWriter::LogitsWriter(const std::string& path, const TextChunks& chunks, int n_vocab)
    : file_(path), row_(row_size(n_vocab)) {
  const int32_t head[] = {static_cast<int32_t>(chunks.n_ctx), n_vocab, chunks.n_chunks};
  file_.write(kMagic, sizeof(kMagic));
  file_.write(head, sizeof(head));
  file_.write(chunks.tokens.data(), chunks.tokens.size() * sizeof(TokenId));
}

void LogitsWriter::add(std::span<const float> logits) {
  const auto [least, best] = std::minmax_element(logits.begin(), logits.end());
  const float low = std::max(*least, *best - kRange);
  const float scale = (*best - low) / kLevels;
  const float min_log_prob = static_cast<float>(low - log_sum_exp(logits));
  std::memcpy(&row_[0], &scale, sizeof(scale));
  std::memcpy(&row_[2], &min_log_prob, sizeof(min_log_prob));
  for (size_t i = 0; i < logits.size(); ++i) {
    const float steps = scale > 0 ? (logits[i] - low) / scale : 0;
    row_[kHead + i] = static_cast<uint16_t>(std::clamp(std::nearbyint(steps), 0.0f, kLevels));
  }
  file_.write(row_.data(), row_.size() * sizeof(row_[0]));
}

LogitsReader::LogitsReader(const std::string& path) : path_(path), file_(std::fopen(path.c_str(), "rb"), std::fclose) {
  if (!file_) throw Error(ErrorCode::kIo, concat("[perplexity] ", printable(path), ": ", std::strerror(errno)));
  char magic[sizeof(kMagic)];
  int32_t head[3];
  read(magic, sizeof(magic));
  if (std::memcmp(magic, kMagic, sizeof(kMagic)) != 0) damaged("a file written by --save-logits", "another kind");
  read(head, sizeof(head));
  const int64_t n_ctx = head[0], n_vocab = head[1], n_chunks = head[2];
  if (n_ctx < 4 || n_vocab < 1 || n_vocab > 1 << 24 || n_chunks < 1 || n_ctx * n_chunks > kMaxTokens) {
    damaged("a context, a vocabulary and chunks", concat(n_ctx, ", ", n_vocab, " and ", n_chunks));
  }
  chunks_.n_ctx = n_ctx;
  chunks_.n_chunks = head[2];
  n_vocab_ = head[1];
  struct stat info = {};
  const uint64_t rows = static_cast<uint64_t>(n_chunks * chunks_.scored_per_chunk());
  const uint64_t expected = sizeof(kMagic) + sizeof(head) + static_cast<uint64_t>(n_ctx * n_chunks) * sizeof(TokenId) +
                            rows * row_size(n_vocab_) * sizeof(uint16_t);
  if (fstat(fileno(file_.get()), &info) != 0 || static_cast<uint64_t>(info.st_size) != expected) {
    damaged(concat(grouped(expected), " bytes"), grouped(static_cast<uint64_t>(info.st_size)));
  }
  chunks_.tokens.resize(static_cast<size_t>(n_ctx * n_chunks));
  read(chunks_.tokens.data(), chunks_.tokens.size() * sizeof(TokenId));
  for (const TokenId token : chunks_.tokens) {
    if (token < 0 || token >= n_vocab_) damaged(concat("token ids below ", n_vocab_), concat(token));
  }
  row_.resize(row_size(n_vocab_));
  values_.resize(static_cast<size_t>(n_vocab_));
}

void LogitsReader::damaged(const std::string& expected, const std::string& found) const {
  throw Error(ErrorCode::kInvalidFile, expected_found("perplexity", printable(path_), expected, found));
}

void LogitsReader::read(void* to, size_t bytes) {
  if (std::fread(to, 1, bytes, file_.get()) != bytes) damaged("more data", "the end of the file");
}

std::span<const float> LogitsReader::next() {
  read(row_.data(), row_.size() * sizeof(row_[0]));
  float scale = 0, min_log_prob = 0;
  std::memcpy(&scale, &row_[0], sizeof(scale));
  std::memcpy(&min_log_prob, &row_[2], sizeof(min_log_prob));
  if (!std::isfinite(scale) || !std::isfinite(min_log_prob)) damaged("finite scales", "NaN or infinity");
  for (size_t i = 0; i < values_.size(); ++i) {
    values_[i] = min_log_prob + scale * static_cast<float>(row_[kHead + i]);
  }
  return values_;
}

}  // namespace infer
