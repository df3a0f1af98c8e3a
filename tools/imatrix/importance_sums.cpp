#include "tools/imatrix/importance_sums.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <fstream>

#include "ggml-like/error.h"
#include "ggml-like/message.h"
#include "ggml-like/printable.h"
#include "tools/input.h"

namespace infer {
namespace {

constexpr std::string_view kSums = ".in_sum2", kCounts = ".counts";
constexpr int32_t kMaxEntries = 1 << 20, kMaxNameBytes = 4096, kMaxWeights = 1 << 28;
constexpr int64_t kMaxChunkSize = INT32_MAX;

[[noreturn]] void fail(const std::string& where, const std::string& what) {
  throw Error(ErrorCode::kInvalidFile, concat("[imatrix] ", where, ": ", what));
}

template <typename Expected, typename Found>
[[noreturn]] void unexpected(const std::string& where, const std::string& subject, const Expected& expected,
                             const Found& found) {
  throw Error(ErrorCode::kInvalidFile, expected_found("imatrix", concat(where, ": ", subject), expected, found));
}

// Reads the older format sequentially.
class Reader {
 public:
  Reader(std::string where, const std::string& bytes) : where_(std::move(where)), bytes_(bytes) {}

  bool at_end() const { return at_ == bytes_.size(); }
  int32_t number(const char* what, int32_t low, int32_t high) {
    int32_t n = 0;
    copy(&n, sizeof(n), what);
    if (n < low || n > high) unexpected(where_, what, concat(low, " to ", high), n);
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
    if (bytes_.size() - at_ < n) unexpected(where_, what, concat(n, " bytes"), "the end of the file");
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

void check_sums(const std::string& where, const std::string& name, const char* what, const std::vector<double>& v) {
  for (const double x : v) {
    if (!std::isfinite(x) || x < 0)
      fail(where, concat("tensor ", printable(name), ": expected ", what, " from 0, found ", x));
  }
}

void insert(ImportanceSums& to, const std::string& where, const std::string& name, ImportanceSums::Entry entry) {
  check_sums(where, name, "sums", entry.sums);
  check_sums(where, name, "counts", entry.counts);
  if (!to.entries.emplace(name, std::move(entry)).second)
    fail(where, concat("tensor ", printable(name), ": expected it once, found it twice"));
}

std::vector<double> doubles(const std::string& where, const GgufTensor& tensor) {
  if (tensor.type != DataType::kF32) {
    fail(where, concat("tensor ", printable(tensor.name), ": expected F32, found ", traits(tensor.type).name));
  }
  std::vector<float> values(static_cast<size_t>(tensor.n_elements()));
  std::memcpy(values.data(), tensor.data, tensor.n_bytes);
  return {values.begin(), values.end()};
}

ImportanceSums read_gguf(const std::filesystem::path& path) {
  ImportanceSums result;
  const auto file = GgufFile::open(path);
  const std::string where = printable_path(path);
  const std::string kind = file->get_string("general.type").value_or("");
  if (kind != "imatrix") unexpected(where, "general.type", "imatrix", kind.empty() ? "none" : printable(kind));
  const auto number = [&](const char* key, int64_t most) {
    const int64_t n = file->get_int(key).value_or(0);
    if (n < 0 || n > most) unexpected(where, key, concat("0 to ", most), n);
    return n;
  };
  result.n_chunks = number("imatrix.chunk_count", UINT32_MAX);
  result.chunk_size = number("imatrix.chunk_size", kMaxChunkSize);
  result.datasets = file->get_string_array("imatrix.datasets").value_or(std::vector<std::string>{});
  for (const GgufTensor& sums : file->tensors()) {
    if (!sums.name.ends_with(kSums)) continue;
    const std::string name = sums.name.substr(0, sums.name.size() - kSums.size());
    const GgufTensor* counts = file->find_tensor(name + std::string(kCounts));
    if (!counts) fail(where, concat("tensor ", printable(name), ": expected counts, found none"));
    if (sums.n_elements() % counts->n_elements() != 0) {
      fail(where, concat("tensor ", printable(name), ": ", sums.n_elements(), " sums do not match ",
                         counts->n_elements(), " counts"));
    }
    insert(result, where, name, {doubles(where, sums), doubles(where, *counts)});
  }
  return result;
}

// int32 n; then n times: int32 length, name, int32 n_calls, int32 n_weights, float weights (sums over the calls); then,
// in most files: int32 n_chunks, int32 length, name of the text.
ImportanceSums read_binary(const std::filesystem::path& path, int64_t rows_per_call) {
  ImportanceSums result;
  const std::string where = printable_path(path), bytes = read_text_file(path.string());
  Reader reader(where, bytes);
  const double rows = static_cast<double>(rows_per_call);
  int32_t n = 0;
  if (bytes.size() >= sizeof(n)) std::memcpy(&n, bytes.data(), sizeof(n));
  if (n < 1 || n > kMaxEntries) {
    throw Error(ErrorCode::kInvalidFile,
                expected_found("imatrix", where, "an importance matrix (GGUF or .dat)", "another kind of file"));
  }
  reader.number("number of entries", 1, kMaxEntries);
  for (int32_t i = 0; i < n; ++i) {
    const std::string name = reader.text("name", reader.number("length of a name", 1, kMaxNameBytes));
    // Without calls, the weights are already means.
    const int32_t n_calls = std::max(1, reader.number("number of calls", 0, INT32_MAX));
    const std::vector<float> weights = reader.floats("weights", reader.number("number of weights", 1, kMaxWeights));
    ImportanceSums::Entry entry{{weights.begin(), weights.end()}, {n_calls * rows}};
    for (double& sum : entry.sums) sum *= rows;
    insert(result, where, name, std::move(entry));
  }
  if (reader.at_end()) return result;
  result.n_chunks = reader.number("number of chunks", 0, INT32_MAX);
  result.chunk_size = rows_per_call;
  if (!reader.at_end())
    result.datasets.push_back(reader.text("name of the text", reader.number("its length", 0, kMaxNameBytes)));
  return result;
}

void add_entry(ImportanceSums::Entry& to, const ImportanceSums::Entry& entry, const std::string& where,
               const std::string& name) {
  const size_t n = to.counts.size(), n_other = entry.counts.size();
  if (to.sums.size() != entry.sums.size() || (n != n_other && n != 1 && n_other != 1)) {
    unexpected(where, "tensor " + printable(name), concat(to.sums.size(), " sums of ", n, " matrices, as before"),
               concat(entry.sums.size(), " of ", n_other, "; use files of one model"));
  }
  for (size_t i = 0; i < to.sums.size(); ++i) to.sums[i] += entry.sums[i];
  // A single count applies to every expert.
  to.counts.resize(std::max(n, n_other), to.counts.front());
  for (size_t i = 0; i < to.counts.size(); ++i) to.counts[i] += entry.counts[n_other == 1 ? 0 : i];
}

std::vector<float> floats(const std::string& name, const std::vector<double>& values) {
  for (const double v : values) {
    if (v > FLT_MAX) fail(printable(name), concat("a sum of ", v, " is beyond F32"));
  }
  return {values.begin(), values.end()};
}

}  // namespace

ImportanceSums ImportanceSums::read(const std::filesystem::path& path, int64_t rows_per_call) {
  char magic[4] = {};
  std::ifstream(path, std::ios::binary).read(magic, sizeof(magic));
  const bool gguf = std::string_view(magic, sizeof(magic)) == "GGUF";
  ImportanceSums result = gguf ? read_gguf(path) : read_binary(path, rows_per_call);
  if (result.entries.empty()) fail(printable_path(path), "no entry for any tensor");
  return result;
}

void ImportanceSums::add(const ImportanceSums& other, const std::string& where) {
  for (const auto& [name, entry] : other.entries) {
    const auto [at, is_new] = entries.emplace(name, entry);
    if (!is_new) add_entry(at->second, entry, where, name);
  }
  for (const std::string& dataset : other.datasets) {
    if (std::find(datasets.begin(), datasets.end(), dataset) == datasets.end()) datasets.push_back(dataset);
  }
  if (chunk_size == 0) chunk_size = other.chunk_size;
  const bool converts = other.chunk_size > 0 && chunk_size != other.chunk_size;
  n_chunks += converts ? (other.n_chunks * other.chunk_size + chunk_size - 1) / chunk_size : other.n_chunks;
}

void ImportanceSums::write(const std::filesystem::path& path) const {
  std::vector<GgufWriter::TensorInfo> tensors;
  for (const auto& [name, entry] : entries) {
    const int64_t n_matrices = static_cast<int64_t>(entry.counts.size());
    const int64_t row = static_cast<int64_t>(entry.sums.size()) / n_matrices;
    const auto shape = [&](int64_t width) {
      return n_matrices == 1 ? std::vector<int64_t>{width} : std::vector<int64_t>{n_matrices, width};
    };
    tensors.push_back({name + std::string(kSums), DataType::kF32, shape(row)});
    tensors.push_back({name + std::string(kCounts), DataType::kF32, shape(1)});
  }
  const auto number = [](int64_t n) {
    return GgufValue::of_uint32(static_cast<uint32_t>(std::min<int64_t>(n, UINT32_MAX)));
  };
  GgufWriter writer(path,
                    {{"general.type", GgufValue::of_string("imatrix")},
                     {"imatrix.datasets", GgufValue::of_strings(datasets)},
                     {"imatrix.chunk_count", number(n_chunks)},
                     {"imatrix.chunk_size", number(chunk_size)}},
                    tensors);
  for (const auto& [name, entry] : entries) {
    const std::vector<float> sums = floats(name, entry.sums), counts = floats(name, entry.counts);
    writer.write(std::as_bytes(std::span(sums)));
    writer.write(std::as_bytes(std::span(counts)));
  }
  writer.finish();
}

int64_t importance_size(const GgufTensor& weight) {
  int64_t n_matrices = 1;
  for (size_t i = 0; i + 2 < weight.shape.size(); ++i) n_matrices *= weight.shape[i];
  return n_matrices * weight.shape.back();
}

}  // namespace infer
