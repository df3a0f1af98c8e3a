// GGUF model files: reading (versions 2 and 3, little endian, split files) and writing (version 3).
// Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
//
// A GgufFile owns the mapping (or, if mmap fails, a copy) of the file or of all parts of a split model; the tensors'
// data pointers live as long as it does. Immutable after open(), so any number of threads may read it. Every size in
// the file is checked before it is used or allocated; a malformed file throws Error(kInvalidFile). If another program
// truncates a mapped file, this process dies (SIGBUS); replace model files by renaming.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "ggml-like/data_type.h"

namespace infer {

enum class GgufType : uint32_t {
  kUint8 = 0,
  kInt8 = 1,
  kUint16 = 2,
  kInt16 = 3,
  kUint32 = 4,
  kInt32 = 5,
  kFloat32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kUint64 = 10,
  kInt64 = 11,
  kFloat64 = 12,
};

std::string_view gguf_type_name(GgufType type);

// One metadata value. Integers of every width are stored as int64_t or uint64_t; `type` is the width in the file.
// Arrays have one element type.
struct GgufValue {
  using Array = std::variant<std::vector<int64_t>, std::vector<uint64_t>, std::vector<double>, std::vector<bool>,
                             std::vector<std::string>>;
  GgufType type = GgufType::kUint32;
  GgufType element_type = GgufType::kUint32;  // only for arrays
  std::variant<int64_t, uint64_t, double, bool, std::string, Array> value = uint64_t{0};

  size_t array_length() const;  // 0 if it is not an array
  bool operator==(const GgufValue&) const = default;

  // Values to write. of_int and of_ints accept any integer type of the format and check that the number fits
  // (Error(kInvalidArgument)); uint64 arrays with values above 2^63 - 1 are constructed directly.
  static GgufValue of_int(GgufType type, int64_t number);
  static GgufValue of_uint32(uint32_t number) { return of_int(GgufType::kUint32, number); }
  static GgufValue of_float32(float number);
  static GgufValue of_bool(bool flag);
  static GgufValue of_string(std::string text);
  static GgufValue of_ints(GgufType element_type, const std::vector<int64_t>& numbers);
  static GgufValue of_floats(const std::vector<float>& numbers);
  static GgufValue of_strings(std::vector<std::string> texts);
};

// One tensor of the file.
struct GgufTensor {
  std::string name;
  DataType type;
  std::vector<int64_t> shape;  // slowest dimension first, 1 to 4 dimensions (reversed in the file)
  uint64_t file_offset;        // of the data, from the start of its part
  uint32_t part;               // index of the file in a split model, otherwise 0
  const std::byte* data;       // n_bytes long; null if the file was opened without data
  size_t n_bytes;

  int64_t n_elements() const;
  std::string shape_string() const;  // "[32000, 2048]"
};

struct GgufOpenOptions {
  bool use_mmap = true;       // false, or if mmap fails: read() the file
  bool map_data = true;       // false: metadata and tensor table only; data pointers are null
  bool follow_splits = true;  // open all parts of NAME-00001-of-0000N.gguf, whichever one `path` names
  // Metadata that replaces the file's or is added to it, in order. A key that begins with a dot belongs to the file's
  // architecture: ".rope.freq_base" stands for "llama.rope.freq_base" in a llama file.
  std::vector<std::pair<std::string, GgufValue>> overrides = {};
};

class GgufFile {
 public:
  static std::shared_ptr<const GgufFile> open(const std::filesystem::path& path, const GgufOpenOptions& options = {});
  // For tests and fuzzing: parses one part in memory; `bytes` must outlive the object.
  static std::shared_ptr<const GgufFile> parse(std::span<const std::byte> bytes, const std::string& name_for_errors);
  virtual ~GgufFile() = default;

  virtual uint32_t version() const = 0;
  virtual uint32_t alignment() const = 0;
  virtual const std::vector<std::filesystem::path>& parts() const = 0;
  virtual uint64_t total_file_bytes() const = 0;

  // In file order. A split model's metadata is that of its first part.
  virtual const std::vector<std::pair<std::string, GgufValue>>& metadata() const = 0;
  virtual const std::vector<GgufTensor>& tensors() const = 0;

  virtual const GgufValue* find(std::string_view key) const = 0;           // nullptr if absent
  virtual const GgufTensor* find_tensor(std::string_view name) const = 0;  // nullptr if absent

  // Typed look-up: nullopt if the key is absent; Error(kInvalidFile) naming key and types if the type differs or the
  // number does not fit. Integers are converted between widths if the value fits.
  std::optional<int64_t> get_int(std::string_view key) const;
  std::optional<double> get_float(std::string_view key) const;  // also accepts integers
  std::optional<bool> get_bool(std::string_view key) const;
  std::optional<std::string> get_string(std::string_view key) const;
  std::optional<std::vector<int64_t>> get_int_array(std::string_view key) const;
  std::optional<std::vector<uint64_t>> get_unsigned_array(std::string_view key) const;
  std::optional<std::vector<double>> get_float_array(std::string_view key) const;
  std::optional<std::vector<std::string>> get_string_array(std::string_view key) const;
};

// Writes a version 3 file: metadata, tensor table and data are streamed in that order, so the writer never holds a
// tensor. The file is written under a temporary name and renamed by finish(); a writer destroyed before that removes
// it. Errors are Error(kIo) with the path and the system's reason.
class GgufWriter {
 public:
  struct TensorInfo {
    std::string name;
    DataType type;
    std::vector<int64_t> shape;  // slowest dimension first
  };

  GgufWriter(std::filesystem::path path, std::vector<std::pair<std::string, GgufValue>> metadata,
             std::vector<TensorInfo> tensors, uint32_t alignment = 32);
  ~GgufWriter();
  GgufWriter(const GgufWriter&) = delete;
  GgufWriter& operator=(const GgufWriter&) = delete;

  // Appends data of the current tensor, in pieces of any size; tensors in the given order. The writer adds padding.
  void write(std::span<const std::byte> bytes);
  // Leaves the rest of the data as a hole: zeros that occupy no disk space.
  void leave_rest_empty();
  // REQUIRES: every byte of every tensor has been written or left empty. Flushes, syncs and renames.
  void finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace infer
