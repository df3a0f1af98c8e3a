#include "tools/quantize/convert.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>

#include "ggml-like/error.h"
#include "ggml-like/message.h"
#include "ggml-like/printable.h"
#include "ggml-like/quant/encode.h"

namespace infer {
namespace {

// A thread's scratch memory, kept between slices.
struct Working {
  std::vector<std::byte> source;
  std::vector<float> values, decoded;
};

[[noreturn]] void fail_io(const std::filesystem::path& path, const std::string& what) {
  throw Error(ErrorCode::kIo, concat("[quantize] ", printable_path(path), ": ", what));
}

// Index of the first NaN or infinite value, or n. Summing 0 * x is cheap and gives NaN only if some x is not finite.
int64_t first_not_finite(const float* x, int64_t n) {
  constexpr int64_t kStretch = 4096;
  for (int64_t start = 0; start < n; start += kStretch) {
    const int64_t end = std::min(n, start + kStretch);
    float sums[8] = {};
    int64_t i = start;
    for (; i + 8 <= end; i += 8) {
      for (int k = 0; k < 8; ++k) sums[k] += x[i + k] * 0.0f;
    }
    float sum = 0;
    for (; i < end; ++i) sum += x[i] * 0.0f;
    for (const float s : sums) sum += s;
    if (sum == 0) continue;
    const float* bad = std::find_if(x + start, x + end, [](float v) { return !std::isfinite(v); });
    if (bad != x + end) return bad - x;
  }
  return n;
}

// CPU time of this thread, so other processes do not count.
double processor_seconds() {
  timespec now = {};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

std::string place(const GgufTensor& tensor, int64_t element) {
  std::string text;
  for (size_t i = tensor.shape.size(); i-- > 0;) {
    text = concat(element % tensor.shape[i], text.empty() ? "" : ", ", text);
    element /= tensor.shape[i];
  }
  return concat("tensor ", printable(tensor.name), ": value [", text, "]");
}

void check_finite(const GgufTensor& tensor, int64_t start, const std::vector<float>& values) {
  const int64_t n = static_cast<int64_t>(values.size());
  const int64_t bad = first_not_finite(values.data(), n);
  if (bad == n) return;
  const float value = values[static_cast<size_t>(bad)];
  throw Error(ErrorCode::kInvalidFile, expected_found("quantize", place(tensor, start + bad), "a finite number",
                                                      std::isnan(value) ? "NaN"
                                                      : value > 0       ? "infinity"
                                                                        : "-infinity"));
}

// Of the float types only F16 has a smaller range than its source; block formats clamp to their largest value.
void check_fits(const Conversion& c, int64_t start, const std::vector<float>& values) {
  constexpr float kOverflowsF16 = 65520;
  if (c.type != DataType::kF16) return;
  const auto bad = std::find_if(values.begin(), values.end(), [](float v) { return std::abs(v) >= kOverflowsF16; });
  if (bad == values.end()) return;
  throw Error(ErrorCode::kInvalidFile, expected_found("quantize", place(*c.tensor, start + (bad - values.begin())),
                                                      "a number in the range of F16", *bad));
}

// Calls of(position, n, weights) for each part of the slice that lies within one row; weights are those of its columns.
template <typename Of>
void for_each_row(const Conversion& c, int64_t start, int64_t n, const Of& of) {
  const int64_t row = c.tensor->shape.back();
  const int64_t n_weights = static_cast<int64_t>(c.importance->weights.size());
  const int64_t matrix = c.tensor->n_elements() / (n_weights / row);
  for (int64_t at = 0; at < n;) {
    const int64_t element = start + at, column = element % row;
    const int64_t n_here = std::min(row - column, n - at);
    of(at, n_here, c.importance->weights.data() + element / matrix * row + column);
    at += n_here;
  }
}

void encode(const Conversion& c, int64_t start, const std::vector<float>& values, std::vector<std::byte>& bytes) {
  const int64_t n = static_cast<int64_t>(values.size());
  if (!c.importance || !traits(c.type).quantized) return encode_blocks(c.type, values.data(), nullptr, bytes.data(), n);
  for_each_row(c, start, n, [&](int64_t at, int64_t n_here, const float* weights) {
    encode_blocks(c.type, values.data() + at, weights, bytes.data() + row_bytes(c.type, at), n_here);
  });
}

void measure_errors(const Conversion& c, int64_t start, Working& working, Slice& slice) {
  const int64_t n = static_cast<int64_t>(working.values.size());
  working.decoded.resize(working.values.size());
  traits(c.type).to_float(slice.bytes.data(), working.decoded.data(), n);
  ErrorSums& sums = slice.errors;
  sums.n = n;
  const auto off = [&](int64_t i) {
    return static_cast<double>(working.values[static_cast<size_t>(i)]) - working.decoded[static_cast<size_t>(i)];
  };
  for (int64_t i = 0; i < n; ++i) {
    const double x = working.values[static_cast<size_t>(i)];
    sums.error += off(i) * off(i);
    sums.square += x * x;
    sums.largest = std::max(sums.largest, std::abs(off(i)));
  }
  if (!c.importance) return;
  for_each_row(c, start, n, [&](int64_t at, int64_t n_here, const float* weights) {
    for (int64_t i = 0; i < n_here; ++i) {
      const double x = working.values[static_cast<size_t>(at + i)], w = weights[i];
      sums.weighted_error += w * off(at + i) * off(at + i);
      sums.weighted_square += w * x * x;
    }
  });
}

}  // namespace

ModelParts::ModelParts(const std::vector<std::filesystem::path>& paths) : paths_(paths) {
  for (const auto& path : paths_) {
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) {
      const int reason = errno;
      for (const int open : descriptors_) ::close(open);
      fail_io(path, std::strerror(reason));
    }
    descriptors_.push_back(descriptor);
  }
}

ModelParts::~ModelParts() {
  for (const int descriptor : descriptors_) ::close(descriptor);
}

void ModelParts::read(uint32_t part, uint64_t offset, std::byte* to, size_t n) const {
  while (n > 0) {
    const ssize_t got = ::pread(descriptors_[part], to, n, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_io(paths_[part], std::strerror(errno));
    if (got == 0)
      fail_io(paths_[part], concat("expected the file to keep its size, found its end at byte ", offset, ""));
    to += got;
    offset += static_cast<uint64_t>(got);
    n -= static_cast<size_t>(got);
  }
}

void ErrorSums::add(const ErrorSums& other) {
  error += other.error;
  square += other.square;
  weighted_error += other.weighted_error;
  weighted_square += other.weighted_square;
  largest = std::max(largest, other.largest);
  n += other.n;
}

double ErrorSums::relative() const { return square > 0 ? std::sqrt(error / square) : 0; }
double ErrorSums::weighted_relative() const {
  return weighted_square > 0 ? std::sqrt(weighted_error / weighted_square) : 0;
}

void convert_slice(const ModelParts& parts, const Conversion& c, int64_t start, bool measure, Slice& slice) {
  const GgufTensor& tensor = *c.tensor;
  const TypeTraits& from = traits(tensor.type);
  const int64_t n = std::min(kSliceValues, tensor.n_elements() - start);
  slice.errors = {};
  thread_local Working working;
  std::vector<std::byte>& source = working.source;
  source.resize(row_bytes(tensor.type, n));
  parts.read(tensor.part, tensor.file_offset + row_bytes(tensor.type, start), source.data(), source.size());
  const double began = processor_seconds();
  if (from.to_float) {
    working.values.resize(static_cast<size_t>(n));
    from.to_float(source.data(), working.values.data(), n);
    check_finite(tensor, start, working.values);
  }
  if (c.type == tensor.type) {
    slice.bytes.swap(source);
  } else {
    check_fits(c, start, working.values);
    slice.bytes.resize(row_bytes(c.type, n));
    encode(c, start, working.values, slice.bytes);
  }
  slice.seconds = processor_seconds() - began;
  if (measure && from.to_float && c.type != tensor.type) measure_errors(c, start, working, slice);
}

}  // namespace infer
