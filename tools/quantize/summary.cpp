#include "tools/quantize/summary.h"

#include <cstdio>

#include "ggml-like/bytes_text.h"
#include "ggml-like/error.h"

namespace infer {
namespace {

template <typename... Args>
std::string format(const char* pattern, Args... args) {
  char buffer[256];
  std::snprintf(buffer, sizeof(buffer), pattern, args...);
  return buffer;
}

double bits_per_weight(uint64_t bytes, uint64_t parameters) {
  return parameters ? 8.0 * static_cast<double>(bytes) / static_cast<double>(parameters) : 0;
}

}  // namespace

void Summary::add_tensor(const Conversion& c, uint64_t output_bytes) {
  Row& row = rows_[c.type];
  ++row.n_tensors;
  row.n_parameters += static_cast<uint64_t>(c.tensor->n_elements());
  row.n_bytes += output_bytes;
  row.n_input_bytes += c.tensor->n_bytes;
  if (c.type != c.tensor->type) row.n_converted_bytes += c.tensor->n_bytes;
}

void Summary::add_slice(const Conversion& c, const Slice& slice) {
  if (c.type == c.tensor->type) return;
  Row& row = rows_[c.type];
  row.seconds += slice.seconds;
  row.errors.add(slice.errors);
}

void Summary::print(std::ostream& out, bool with_errors) const {
  Row all;
  bool weighted = false;
  for (const auto& [type, row] : rows_) {
    all.n_tensors += row.n_tensors;
    all.n_parameters += row.n_parameters;
    all.n_bytes += row.n_bytes;
    all.n_input_bytes += row.n_input_bytes;
    weighted = weighted || row.errors.weighted_square > 0;
  }
  out << "type     tensors   parameters          bytes  bits/weight";
  if (with_errors) out << (weighted ? "    rms error  weighted" : "    rms error") << "  max error  core-s    MB/s";
  out << "\n";
  const auto line = [&](const char* name, const Row& row) {
    out << format("%-7s %8llu %12llu %14llu %12.3f", name, static_cast<unsigned long long>(row.n_tensors),
                  static_cast<unsigned long long>(row.n_parameters), static_cast<unsigned long long>(row.n_bytes),
                  bits_per_weight(row.n_bytes, row.n_parameters));
  };
  for (const auto& [type, row] : rows_) {
    line(std::string(traits(type).name).c_str(), row);
    if (with_errors && row.errors.n > 0) {
      out << format("  %10.3f%%", 100 * row.errors.relative());
      if (weighted) out << format("  %7.3f%%", 100 * row.errors.weighted_relative());
      out << format("  %9.3g %7.2f %7.0f", row.errors.largest, row.seconds,
                    row.seconds > 0 ? static_cast<double>(row.n_converted_bytes) / 1e6 / row.seconds : 0.0);
    }
    out << "\n";
  }
  line("all", all);
  out << "\n"
      << format("%s at %.2f bits per weight -> %s at %.2f\n", megabytes(all.n_input_bytes).c_str(),
                bits_per_weight(all.n_input_bytes, all.n_parameters), megabytes(all.n_bytes).c_str(),
                bits_per_weight(all.n_bytes, all.n_parameters));
}

void show_progress(StatusLine& line, const std::string& tensor, uint64_t done_bytes, uint64_t total_bytes) {
  if (!line.due()) return;
  const double done = static_cast<double>(done_bytes), total = static_cast<double>(total_bytes);
  line.show(concat(format("%3.0f %%  %.0f MB/s", total > 0 ? 100 * done / total : 100.0, done / 1e6 / line.seconds()),
                   line.time_left(done, total), "  ", tensor));
}

}  // namespace infer
