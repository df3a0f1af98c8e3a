#include "ggml-like/gguf_parse.h"

#include <algorithm>
#include <bit>
#include <cctype>
#include <cstring>
#include <limits>
#include <numeric>
#include <type_traits>

#include "ggml-like/error.h"
#include "ggml-like/gguf_format.h"
#include "ggml-like/printable.h"

namespace infer {
namespace {

static_assert(std::endian::native == std::endian::little, "GGUF numbers are read in the file's byte order");
static_assert(sizeof(size_t) == 8, "file offsets must fit size_t");

// Together these bound the memory a header can make us allocate: about 1.5 GiB, and never more than a small multiple of
// the bytes that the file really has.
constexpr uint64_t kMaxEntries = 1 << 20;        // metadata entries, and also tensors
constexpr uint64_t kMaxArrayElements = 1 << 26;  // over all arrays of one part
constexpr uint64_t kMaxStringBytes = 64 << 20;   // of one metadata string
constexpr uint64_t kMaxTensorNameBytes = 256;    // llama.cpp takes 63
constexpr uint64_t kMaxDimensions = 4;
constexpr uint32_t kDefaultAlignment = 32;

// The smallest encodings: a key with a one-byte value, and a tensor of one dimension.
constexpr uint64_t kMinEntryBytes = 8 + 1 + 4 + 1;
constexpr uint64_t kMinTensorBytes = 8 + 1 + 4 + 8 + 4 + 8;

// What kind of file this is instead of a GGUF file, by its first bytes, with advice; "" if nothing is known.
std::string_view other_kind(std::string_view head) {
  std::string lower(head);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  const size_t text = lower.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
  const std::string_view trimmed = text == std::string::npos ? "" : std::string_view(lower).substr(text);
  constexpr std::string_view kLegacy[] = {"lmgg", "fmgg", "tjgg", "algg"};
  const std::string_view magic = head.substr(0, 4);
  if (trimmed.starts_with("<!doctype") || trimmed.starts_with("<html")) {
    return "a web page, perhaps of an error or a login; download the model again by its direct link";
  }
  if (head.starts_with("version https://git-lfs")) {
    return "a Git LFS pointer, which stands for the model; fetch the model itself with git lfs pull";
  }
  // The length of the description in 8 bytes, then the description.
  if (head.size() > 9 && head[8] == '{' && head.substr(6, 2) == std::string_view("\0\0", 2)) {
    return "a safetensors file; convert it to GGUF, or download the model as GGUF";
  }
  if (head.starts_with("PK\x03\x04") || head.starts_with("\x80\x02")) {
    return "an archive or a PyTorch checkpoint; convert it to GGUF, or download the model as GGUF";
  }
  if (head.starts_with("\x1F\x8B") || head.starts_with("\x28\xB5\x2F\xFD") ||
      head.starts_with("\xFD"
                       "7zXZ")) {
    return "a compressed file; decompress it first";
  }
  if (std::find(std::begin(kLegacy), std::end(kLegacy), magic) != std::end(kLegacy)) {
    return "a model in a format that preceded GGUF; download it as GGUF";
  }
  if (magic == std::string_view("\0\0\0\0", 4)) {
    return "zeros, as in a file whose space was reserved before its download; download it again";
  }
  return "";
}

// Thrown if the header continues beyond the available bytes.
struct NeedsMore {};

class Parser {
 public:
  Parser(std::span<const std::byte> start, uint64_t file_size, const std::string& name)
      : start_(start), file_size_(file_size), name_(name) {}

  GgufPart parse() {
    check_magic();
    part_.version = read_version();
    const uint64_t n_tensors = read<uint64_t>();
    const uint64_t n_entries = read<uint64_t>();
    check_count(n_entries, kMinEntryBytes, "metadata entries");
    check_count(n_tensors, kMinTensorBytes, "tensors");
    part_.metadata.reserve(std::min<uint64_t>(n_entries, 4096));
    for (uint64_t i = 0; i < n_entries; ++i) read_entry(i);
    check_keys_unique();
    part_.alignment = read_alignment();
    part_.tensors.reserve(std::min<uint64_t>(n_tensors, 65536));
    for (uint64_t i = 0; i < n_tensors; ++i) read_tensor(i);
    where_ = "header";
    place_tensors();
    return std::move(part_);
  }

 private:
  [[noreturn]] void fail(const std::string& what, ErrorCode code = ErrorCode::kInvalidFile) const {
    throw Error(code, concat("[gguf] ", where_, ": ", what, " (", printable(name_), ")"));
  }
  // For a file shorter than its header says, usually because a download was cut off.
  [[noreturn]] void fail_incomplete(const std::string& what) const {
    throw Error(ErrorCode::kInvalidFile, concat("[gguf] ", where_, ": ", what, " (", printable(name_),
                                                "). The file is incomplete or damaged; download or copy it again."));
  }
  [[noreturn]] void fail_file(const std::string& what, ErrorCode code = ErrorCode::kInvalidFile) const {
    throw Error(code, concat("[gguf] ", printable(name_), ": ", what));
  }

  std::string likely_cause() const {
    const size_t n = std::min<size_t>(start_.size(), 256);
    const std::string_view kind = other_kind({reinterpret_cast<const char*>(start_.data()), n});
    return kind.empty() ? "" : concat(". This is ", kind, ".");
  }

  // REQUIRES: pos_ <= file_size_, which always holds.
  void need(uint64_t n, const char* what) const {
    if (n > file_size_ - pos_) {
      const bool overflows = n > std::numeric_limits<uint64_t>::max() - pos_;
      fail_incomplete(overflows ? concat(what, " of ", n, " bytes begins at byte ", pos_, ", file has ", file_size_)
                                : concat(what, " ends at byte ", pos_ + n, ", file has ", file_size_));
    }
    if (n > start_.size() - pos_) throw NeedsMore{};
  }

  template <typename T>
  T read(const char* what = "it") {
    need(sizeof(T), what);
    T value;
    std::memcpy(&value, start_.data() + pos_, sizeof(T));
    pos_ += sizeof(T);
    return value;
  }

  std::string read_string(uint64_t max_bytes, const char* what) {
    const uint64_t length = read<uint64_t>(what);
    need(length, what);  // first: a damaged length usually exceeds the file too, and this message is clearer
    if (length > max_bytes) fail(concat(what, " has ", length, " bytes, the limit is ", max_bytes));
    std::string text(reinterpret_cast<const char*>(start_.data() + pos_), length);
    pos_ += length;
    return text;
  }

  void check_magic() {
    if (file_size_ == 0) fail_file("expected a GGUF file, found an empty file");
    const size_t n = std::min<size_t>(start_.size(), 16);
    const std::string_view head(reinterpret_cast<const char*>(start_.data()), n);
    if (head.substr(0, 4) == "FUGG")
      fail_file("expected a little-endian file, found a big-endian one", ErrorCode::kUnsupported);
    if (head.substr(0, 4) != "GGUF")
      fail_file(concat("expected a GGUF file, found one that starts with \"", printable(head), "\"", likely_cause()));
    pos_ = 4;
  }

  uint32_t read_version() {
    const uint32_t version = read<uint32_t>("version");
    // A small number in reversed byte order.
    if (version != 0 && (version & 0xFFFF) == 0) {
      fail_file(concat("expected a little-endian file, found a big-endian one (version ", __builtin_bswap32(version),
                       " with its bytes reversed)"),
                ErrorCode::kUnsupported);
    }
    if (version != 2 && version != 3) {
      fail_file(concat("expected GGUF version 2 or 3, found ", version), ErrorCode::kUnsupported);
    }
    return version;
  }

  void check_count(uint64_t count, uint64_t min_bytes, const char* what) const {
    if (count > (file_size_ - pos_) / min_bytes) {
      fail_incomplete(concat("claims ", count, " ", what, ", but only ", file_size_ - pos_, " bytes follow"));
    }
    if (count > kMaxEntries) fail(concat("claims ", count, " ", what, ", the limit is ", kMaxEntries));
  }

  void read_entry(uint64_t index) {
    where_ = concat("key ", index);
    std::string key = read_string(kMaxGgufKeyBytes, "name");
    if (key.empty()) fail("name is empty");
    where_ = concat("key ", printable(key));
    GgufValue value;
    value.type = read_type();
    if (value.type == GgufType::kArray) value.value = read_array(value.element_type);
    else read_scalar(value);
    part_.metadata.emplace_back(std::move(key), std::move(value));
  }

  GgufType read_type() {
    const uint32_t number = read<uint32_t>("value type");
    if (number > static_cast<uint32_t>(GgufType::kFloat64)) {
      fail(concat("value type ", number, " is unknown, the last one known is 12"));
    }
    return static_cast<GgufType>(number);
  }

  // The format allows 0 and 1; anything else means that the file is damaged or was written wrongly.
  bool to_bool(uint8_t byte) const {
    if (byte > 1) fail(concat("bool has value ", static_cast<int>(byte), ", expected 0 or 1"));
    return byte != 0;
  }

  void read_scalar(GgufValue& value) {
    constexpr const char* kWhat = "value";
    switch (value.type) {
      case GgufType::kUint8:
        value.value = uint64_t{read<uint8_t>(kWhat)};
        break;
      case GgufType::kUint16:
        value.value = uint64_t{read<uint16_t>(kWhat)};
        break;
      case GgufType::kUint32:
        value.value = uint64_t{read<uint32_t>(kWhat)};
        break;
      case GgufType::kUint64:
        value.value = read<uint64_t>(kWhat);
        break;
      case GgufType::kInt8:
        value.value = int64_t{read<int8_t>(kWhat)};
        break;
      case GgufType::kInt16:
        value.value = int64_t{read<int16_t>(kWhat)};
        break;
      case GgufType::kInt32:
        value.value = int64_t{read<int32_t>(kWhat)};
        break;
      case GgufType::kInt64:
        value.value = read<int64_t>(kWhat);
        break;
      case GgufType::kFloat32:
        value.value = double{read<float>(kWhat)};
        break;
      case GgufType::kFloat64:
        value.value = read<double>(kWhat);
        break;
      case GgufType::kBool:
        value.value = to_bool(read<uint8_t>(kWhat));
        break;
      case GgufType::kString:
        value.value = read_string(kMaxStringBytes, kWhat);
        break;
      case GgufType::kArray:
        CHECK_INTERNAL(false);
    }
  }

  // T: the type in the file; Held: the type in memory.
  template <typename T, typename Held>
  std::vector<Held> read_numbers(uint64_t count) {
    need(count * sizeof(T), "array");  // count <= kMaxArrayElements
    std::vector<Held> values(count);
    const std::byte* source = start_.data() + pos_;
    for (uint64_t i = 0; i < count; ++i) {
      T value;
      std::memcpy(&value, source + i * sizeof(T), sizeof(T));
      values[i] = static_cast<Held>(value);
    }
    pos_ += count * sizeof(T);
    return values;
  }

  std::vector<std::string> read_strings(uint64_t count) {
    std::vector<std::string> values;
    // Room for a whole vocabulary; beyond that, an untrusted count must not decide the allocation.
    values.reserve(std::min<uint64_t>(count, 1 << 19));
    for (uint64_t i = 0; i < count; ++i) values.push_back(read_string(kMaxStringBytes, "string of the array"));
    return values;
  }

  GgufValue::Array read_array(GgufType& element_type) {
    element_type = read_type();
    const uint64_t count = read<uint64_t>("array length");
    const uint64_t remaining = file_size_ - pos_;
    const auto check_fits = [&](uint64_t min_element_bytes) {
      if (count > remaining / min_element_bytes) {
        fail_incomplete(concat("array of ", count, " ", gguf_type_name(element_type), " values, only ", remaining,
                               " bytes follow"));
      }
      if (count > elements_left_) {
        fail(concat("array of ", count, " values, the limit for all arrays is ", kMaxArrayElements),
             ErrorCode::kUnsupported);
      }
      elements_left_ -= count;
    };
    const auto numbers = [&]<typename T, typename Held>(T, Held) {
      check_fits(sizeof(T));
      return GgufValue::Array(read_numbers<T, Held>(count));
    };
    switch (element_type) {
      case GgufType::kUint8:
        return numbers(uint8_t{}, uint64_t{});
      case GgufType::kUint16:
        return numbers(uint16_t{}, uint64_t{});
      case GgufType::kUint32:
        return numbers(uint32_t{}, uint64_t{});
      case GgufType::kUint64:
        return numbers(uint64_t{}, uint64_t{});
      case GgufType::kInt8:
        return numbers(int8_t{}, int64_t{});
      case GgufType::kInt16:
        return numbers(int16_t{}, int64_t{});
      case GgufType::kInt32:
        return numbers(int32_t{}, int64_t{});
      case GgufType::kInt64:
        return numbers(int64_t{}, int64_t{});
      case GgufType::kFloat32:
        return numbers(float{}, double{});
      case GgufType::kFloat64:
        return numbers(double{}, double{});
      case GgufType::kBool: {
        check_fits(1);
        need(count, "array");
        std::vector<bool> values(count);
        for (uint64_t i = 0; i < count; ++i) values[i] = to_bool(static_cast<uint8_t>(start_[pos_ + i]));
        pos_ += count;
        return values;
      }
      case GgufType::kString: {
        check_fits(sizeof(uint64_t));
        return read_strings(count);
      }
      case GgufType::kArray:
        break;
    }
    fail("array of arrays, which is not supported", ErrorCode::kUnsupported);
  }

  void check_keys_unique() {
    part_.key_order.resize(part_.metadata.size());
    std::iota(part_.key_order.begin(), part_.key_order.end(), 0);
    const auto key = [&](uint32_t i) -> const std::string& { return part_.metadata[i].first; };
    std::sort(part_.key_order.begin(), part_.key_order.end(), [&](uint32_t a, uint32_t b) { return key(a) < key(b); });
    for (size_t i = 1; i < part_.key_order.size(); ++i) {
      if (key(part_.key_order[i - 1]) != key(part_.key_order[i])) continue;
      where_ = concat("key ", printable(key(part_.key_order[i])));
      fail("appears twice in the metadata");
    }
  }

  uint32_t read_alignment() {
    const auto entry = std::find_if(part_.metadata.begin(), part_.metadata.end(),
                                    [](const auto& e) { return e.first == "general.alignment"; });
    if (entry == part_.metadata.end()) return kDefaultAlignment;
    where_ = "key general.alignment";
    const GgufValue& value = entry->second;
    uint64_t alignment = 0;
    if (const auto* u = std::get_if<uint64_t>(&value.value)) alignment = *u;
    else if (const auto* s = std::get_if<int64_t>(&value.value)) alignment = *s < 0 ? 0 : static_cast<uint64_t>(*s);
    else fail(concat("expected an integer, found ", gguf_type_name(value.type)));
    if (!std::has_single_bit(alignment) || alignment < kMinGgufAlignment || alignment > kMaxGgufAlignment) {
      fail(
          concat("expected a power of two from ", kMinGgufAlignment, " to ", kMaxGgufAlignment, ", found ", alignment));
    }
    return static_cast<uint32_t>(alignment);
  }

  void read_tensor(uint64_t index) {
    GgufTensor tensor{};
    where_ = concat("tensor ", index);
    tensor.name = read_string(kMaxTensorNameBytes, "name");
    if (tensor.name.empty()) fail("name is empty");
    where_ = concat("tensor ", printable(tensor.name));

    const uint32_t n_dims = read<uint32_t>("number of dimensions");
    if (n_dims == 0 || n_dims > kMaxDimensions) fail(concat("expected 1 to 4 dimensions, found ", n_dims));
    tensor.shape.resize(n_dims);
    uint64_t n_elements = 1;
    for (uint32_t i = 0; i < n_dims; ++i) {
      const uint64_t size = read<uint64_t>("shape");
      if (size == 0 || size > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
        fail(concat("dimension ", i, " has size ", size));
      }
      if (__builtin_mul_overflow(n_elements, size, &n_elements) ||
          n_elements > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
        fail("number of values exceeds 63 bits");
      }
      tensor.shape[n_dims - 1 - i] = static_cast<int64_t>(size);
    }

    const uint32_t type = read<uint32_t>("data type");
    const TypeTraits* type_traits = find_type(type);
    if (!type_traits) fail(concat("data type ", type, " is not supported"), ErrorCode::kUnsupported);
    tensor.type = type_traits->type;
    const uint64_t row = static_cast<uint64_t>(tensor.shape.back());
    if (row % type_traits->block_size != 0) {
      fail(concat("rows of ", row, " values, ", type_traits->name, " needs a multiple of ", type_traits->block_size));
    }
    uint64_t n_bytes = 0;
    if (__builtin_mul_overflow(n_elements / type_traits->block_size, uint64_t{type_traits->type_size}, &n_bytes)) {
      fail("number of bytes exceeds 64 bits");
    }
    tensor.n_bytes = n_bytes;

    tensor.file_offset = read<uint64_t>("data offset");  // relative to the start of the data, until place_tensors()
    if (tensor.file_offset % part_.alignment != 0) {
      fail(concat("data offset ", tensor.file_offset, " is not a multiple of the alignment ", part_.alignment));
    }
    part_.tensors.push_back(std::move(tensor));
  }

  // Makes offsets absolute; checks that the data is in the file and that no two tensors overlap.
  void place_tensors() {
    const uint64_t data_start = (pos_ + part_.alignment - 1) / part_.alignment * part_.alignment;
    for (GgufTensor& tensor : part_.tensors) {
      uint64_t end = 0;
      const bool overflows = __builtin_add_overflow(tensor.file_offset, data_start, &tensor.file_offset) ||
                             __builtin_add_overflow(tensor.file_offset, uint64_t{tensor.n_bytes}, &end);
      if (!overflows && end <= file_size_) continue;
      where_ = concat("tensor ", printable(tensor.name));
      fail_incomplete(overflows
                          ? concat("data of ", tensor.n_bytes, " bytes ends beyond 64 bits, file has ", file_size_)
                          : concat("data ends at byte ", end, ", file has ", file_size_));
    }
    std::vector<const GgufTensor*> order;
    order.reserve(part_.tensors.size());
    for (const GgufTensor& tensor : part_.tensors) order.push_back(&tensor);
    std::sort(order.begin(), order.end(), [](auto* a, auto* b) { return a->file_offset < b->file_offset; });
    for (size_t i = 1; i < order.size(); ++i) {
      const GgufTensor &before = *order[i - 1], &tensor = *order[i];
      if (before.file_offset + before.n_bytes <= tensor.file_offset) continue;
      where_ = concat("tensor ", printable(tensor.name));
      fail(concat("data begins at byte ", tensor.file_offset, ", inside that of ", printable(before.name), " (bytes ",
                  before.file_offset, " to ", before.file_offset + before.n_bytes, ")"));
    }
  }

  const std::span<const std::byte> start_;
  const uint64_t file_size_;
  const std::string& name_;
  std::string where_ = "header";
  uint64_t pos_ = 0;
  uint64_t elements_left_ = kMaxArrayElements;
  GgufPart part_;
};

}  // namespace

std::optional<GgufPart> parse_gguf_part(std::span<const std::byte> start, uint64_t file_size, const std::string& name) {
  try {
    return Parser(start, file_size, name).parse();
  } catch (const NeedsMore&) {
    return std::nullopt;
  }
}

}  // namespace infer
