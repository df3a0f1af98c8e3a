#include "tools/quantize/importance.h"

#include <cmath>
#include <cstring>
#include <fstream>

#include "ggml-like/error.h"
#include "ggml-like/gguf.h"
#include "ggml-like/printable.h"
#include "tools/input.h"

namespace infer {
namespace {

constexpr std::string_view kSums = ".in_sum2", kCounts = ".counts";
constexpr int32_t kMaxEntries = 1 << 20, kMaxNameBytes = 4096, kMaxWeights = 1 << 28;

[[noreturn]] void fail(const std::string& where, const std::string& what) {
  throw Error(ErrorCode::kInvalidFile, concat("[imatrix] ", where, ": ", what));
}

std::string shown(const std::filesystem::path& path) { return printable(path.string(), 4096); }

// Bytes of the older form, from front to back.
class Reader {
 public:
  Reader(std::string where, const std::string& bytes) : where_(std::move(where)), bytes_(bytes) {}

  bool at_end() const { return at_ == bytes_.size(); }
  int32_t number(const char* what, int32_t low, int32_t high) {
    int32_t n = 0;
    copy(&n, sizeof(n), what);
    if (n < low || n > high) fail(where_, concat(what, ": expected ", low, " to ", high, ", found ", n));
    return n;
  }
  std::string text(const char* what, int32_t n) {
    std::string result(static_cast<size_t>(n), '\0');
    copy(result.data(), result.size(), what);
    return result;
  }
  std::vector<float> floats(const char* what, int32_t n) {
    const size_t n_bytes = static_cast<size_t>(n) * sizeof(float);
    check(n_bytes, what);
    std::vector<float> result(static_cast<size_t>(n));
    copy(result.data(), n_bytes, what);
    return result;
  }

 private:
  void check(size_t n, const char* what) const {
    if (bytes_.size() - at_ < n) fail(where_, concat(what, ": the file ends at byte ", bytes_.size()));
  }
  void copy(void* to, size_t n, const char* what) {
    check(n, what);
    std::memcpy(to, bytes_.data() + at_, n);
    at_ += n;
  }

  std::string where_;
  const std::string& bytes_;
  size_t at_ = 0;
};

}  // namespace

const Importance::Entry* Importance::find(std::string_view tensor) const {
  const auto at = entries_.find(tensor);
  return at == entries_.end() ? nullptr : &at->second;
}

void Importance::add(const std::string& where, const std::string& name, Entry entry) {
  for (const float w : entry.weights) {
    if (!std::isfinite(w) || w < 0)
      fail(where, concat("tensor ", printable(name), ": expected weights from 0, found ", w));
  }
  if (!entries_.emplace(name, std::move(entry)).second)
    fail(where, concat("tensor ", printable(name), ": stands twice"));
}

Importance Importance::load(const std::filesystem::path& path) {
  Importance result;
  char magic[4] = {};
  std::ifstream(path, std::ios::binary).read(magic, sizeof(magic));
  if (std::string_view(magic, sizeof(magic)) == "GGUF") result.load_gguf(path);
  else result.load_binary(path, read_text_file(path.string()));
  if (result.empty()) fail(shown(path), "no importance of any tensor in it");
  return result;
}

void Importance::load_gguf(const std::filesystem::path& path) {
  const auto file = GgufFile::open(path);
  const std::string where = shown(path);
  const std::string kind = file->get_string("general.type").value_or("");
  if (kind != "imatrix") fail(where, concat("general.type: expected imatrix, found ", printable(kind)));
  n_chunks_ = file->get_int("imatrix.chunk_count").value_or(0);
  if (const auto datasets = file->get_string_array("imatrix.datasets"); datasets && !datasets->empty()) {
    dataset_ = datasets->front();
  }
  for (const GgufTensor& sums : file->tensors()) {
    if (!sums.name.ends_with(kSums)) continue;
    const std::string name = sums.name.substr(0, sums.name.size() - kSums.size());
    const GgufTensor* counts = file->find_tensor(name + std::string(kCounts));
    if (!counts) fail(where, concat("tensor ", printable(name), ": it has no counts"));
    if (sums.type != DataType::kF32 || counts->type != DataType::kF32)
      fail(where, concat("tensor ", printable(name), ": expected F32"));
    const int64_t n = sums.n_elements(), n_matrices = counts->n_elements();
    if (n % n_matrices != 0) {
      fail(where, concat("tensor ", printable(name), ": ", n, " sums do not go with ", n_matrices, " counts"));
    }
    std::vector<float> count(static_cast<size_t>(n_matrices));
    std::memcpy(count.data(), counts->data, counts->n_bytes);
    Entry entry{std::vector<float>(static_cast<size_t>(n))};
    std::memcpy(entry.weights.data(), sums.data, sums.n_bytes);
    const int64_t row = n / n_matrices;
    for (int64_t i = 0; i < n; ++i) {
      // An expert that no token went to: all its columns alike.
      float& w = entry.weights[static_cast<size_t>(i)];
      const float divisor = count[static_cast<size_t>(i / row)];
      w = divisor > 0 ? w / divisor : 1;
    }
    add(where, name, std::move(entry));
  }
}

// int32 n; n times: int32 length, name, int32 n_calls, int32 n_weights, float weights (sums over the calls);
// then, in most files: int32 n_chunks, int32 length, name of the text.
void Importance::load_binary(const std::filesystem::path& path, const std::string& bytes) {
  const std::string where = shown(path);
  Reader reader(where, bytes);
  const int32_t n = reader.number("number of entries (is it an importance matrix?)", 1, kMaxEntries);
  for (int32_t i = 0; i < n; ++i) {
    const std::string name = reader.text("name", reader.number("length of a name", 1, kMaxNameBytes));
    const int32_t n_calls = reader.number("number of calls", 0, INT32_MAX);
    Entry entry{reader.floats("weights", reader.number("number of weights", 1, kMaxWeights))};
    for (float& w : entry.weights) w = n_calls > 0 ? w / static_cast<float>(n_calls) : w;
    add(where, name, std::move(entry));
  }
  if (reader.at_end()) return;
  n_chunks_ = reader.number("number of chunks", 0, INT32_MAX);
  if (!reader.at_end()) dataset_ = reader.text("name of the text", reader.number("its length", 0, kMaxNameBytes));
}

}  // namespace infer
