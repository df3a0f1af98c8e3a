// GgufWriter: writes the header at once, then the tensors' data as it arrives, to PATH.PID-N.tmp, which finish()
// renames to PATH.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstring>
#include <set>

#include "ggml-like/error.h"
#include "ggml-like/gguf.h"
#include "ggml-like/gguf_format.h"
#include "ggml-like/printable.h"

namespace infer {
namespace {

constexpr size_t kBufferBytes = 1 << 20;
constexpr size_t kMaxNameBytes = 63;  // so that llama.cpp reads the file

[[noreturn]] void fail(const std::string& what) { throw Error(ErrorCode::kInvalidArgument, concat("[gguf] ", what)); }

uint64_t padded(uint64_t size, uint64_t alignment) { return (size + alignment - 1) / alignment * alignment; }

template <typename T>
void append(std::string& out, T number) {
  out.append(reinterpret_cast<const char*>(&number), sizeof(number));
}

void append_string(std::string& out, std::string_view text) {
  append(out, uint64_t{text.size()});
  out += text;
}

// Writes a number in the width of its type in the file. Held is GgufValue's type for it.
template <typename Held>
void append_number(std::string& out, GgufType type, Held number) {
  const auto as = [&]<typename T>(T) { append(out, static_cast<T>(number)); };
  switch (type) {
    case GgufType::kUint8:
      return as(uint8_t{});
    case GgufType::kInt8:
      return as(int8_t{});
    case GgufType::kUint16:
      return as(uint16_t{});
    case GgufType::kInt16:
      return as(int16_t{});
    case GgufType::kUint32:
      return as(uint32_t{});
    case GgufType::kInt32:
      return as(int32_t{});
    case GgufType::kFloat32:
      return as(float{});
    case GgufType::kBool:
      return as(uint8_t{});
    case GgufType::kUint64:
      return as(uint64_t{});
    case GgufType::kInt64:
      return as(int64_t{});
    case GgufType::kFloat64:
      return as(double{});
    case GgufType::kString:
    case GgufType::kArray:
      break;
  }
  CHECK_INTERNAL(false);
}

// Whether a value of `type` is stored as Held: an invariant of GgufValue that a caller may have broken.
template <typename Held>
bool holds(GgufType type) {
  switch (type) {
    case GgufType::kUint8:
    case GgufType::kUint16:
    case GgufType::kUint32:
    case GgufType::kUint64:
      return std::is_same_v<Held, uint64_t>;
    case GgufType::kInt8:
    case GgufType::kInt16:
    case GgufType::kInt32:
    case GgufType::kInt64:
      return std::is_same_v<Held, int64_t>;
    case GgufType::kFloat32:
    case GgufType::kFloat64:
      return std::is_same_v<Held, double>;
    case GgufType::kBool:
      return std::is_same_v<Held, bool>;
    case GgufType::kString:
      return std::is_same_v<Held, std::string>;
    case GgufType::kArray:
      return false;
  }
  return false;
}

template <typename Held>
void append_item(std::string& out, GgufType type, const Held& item) {
  if constexpr (std::is_same_v<Held, std::string>) append_string(out, item);
  else append_number(out, type, item);
}

void append_value(std::string& out, const std::string& key, const GgufValue& value) {
  const auto check_held = [&](bool matches) {
    if (!matches) fail(concat("key ", printable(key), ": expected a value of its type, found another"));
  };
  append(out, static_cast<uint32_t>(value.type));
  std::visit(
      [&]<typename Held>(const Held& held) {
        if constexpr (std::is_same_v<Held, GgufValue::Array>) {
          check_held(value.type == GgufType::kArray);
          append(out, static_cast<uint32_t>(value.element_type));
          std::visit(
              [&]<typename Item>(const std::vector<Item>& items) {
                check_held(holds<Item>(value.element_type));
                append(out, uint64_t{items.size()});
                for (const Item& item : items) append_item<Item>(out, value.element_type, item);
              },
              held);
        } else {
          check_held(holds<Held>(value.type));
          append_item(out, value.type, held);
        }
      },
      value.value);
}

// The file states its alignment unless it is the default; a key with another value would make the file unreadable.
void state_alignment(std::vector<std::pair<std::string, GgufValue>>& metadata, uint32_t alignment) {
  const auto stated =
      std::find_if(metadata.begin(), metadata.end(), [](auto& e) { return e.first == "general.alignment"; });
  const GgufValue value = GgufValue::of_uint32(alignment);
  if (stated != metadata.end()) stated->second = value;
  else if (alignment != 32) metadata.emplace_back("general.alignment", value);
}

void append_metadata(std::string& header, const std::vector<std::pair<std::string, GgufValue>>& metadata) {
  std::set<std::string_view> seen;
  for (const auto& [key, value] : metadata) {
    if (key.empty() || key.size() > kMaxGgufKeyBytes)
      fail(concat("a key has ", key.size(), " bytes, expected 1 to ", kMaxGgufKeyBytes));
    if (!seen.insert(key).second) fail(concat("key ", printable(key), ": appears twice in the metadata"));
    append_string(header, key);
    append_value(header, key, value);
  }
}

// The bytes of a tensor's data. Fails when its name, shape or size cannot be written; `where` begins the message.
uint64_t checked_bytes(const std::string& where, const GgufWriter::TensorInfo& tensor) {
  if (tensor.name.empty() || tensor.name.size() > kMaxNameBytes) {
    fail(concat(where, ": name has ", tensor.name.size(), " bytes, expected 1 to ", kMaxNameBytes));
  }
  if (tensor.shape.empty() || tensor.shape.size() > 4) {
    fail(concat(where, ": expected 1 to 4 dimensions, found ", tensor.shape.size()));
  }
  int64_t n_elements = 1;
  for (const int64_t size : tensor.shape) {
    if (size <= 0 || __builtin_mul_overflow(n_elements, size, &n_elements))
      fail(concat(where, ": bad dimension ", size));
  }
  const TypeTraits& type = traits(tensor.type);
  if (tensor.shape.back() % type.block_size != 0) {
    fail(concat(where, ": rows of ", tensor.shape.back(), " values, ", type.name, " needs a multiple of ",
                type.block_size));
  }
  uint64_t n_bytes = 0;
  if (__builtin_mul_overflow(static_cast<uint64_t>(n_elements) / type.block_size, uint64_t{type.type_size}, &n_bytes) ||
      n_bytes > uint64_t{1} << 62) {
    fail(concat(where, ": number of bytes is too large"));
  }
  return n_bytes;
}

}  // namespace

struct GgufWriter::Impl {
  struct Placed {
    uint64_t n_bytes = 0, padding = 0;
  };
  std::filesystem::path path, temporary;
  int descriptor = -1;
  std::string buffer;  // bytes not yet passed to the system
  std::vector<Placed> tensors;
  std::vector<std::string> names;
  size_t current = 0;  // tensor being written
  uint64_t done = 0;   // bytes of it already written
  bool finished = false;

  ~Impl() {
    if (descriptor >= 0) ::close(descriptor);
    if (!finished && !temporary.empty()) ::unlink(temporary.c_str());
  }

  [[noreturn]] void fail_io(const char* what, int reason) const {
    throw Error(ErrorCode::kIo, concat("[gguf] ", printable_path(path), ": ", what, ": ", std::strerror(reason)));
  }

  void create() {
    // Unique among this process's writers and, through the process id, among processes.
    static std::atomic<unsigned> counter{0};
    temporary = path;
    temporary += concat(".", ::getpid(), "-", counter++, ".tmp");
    descriptor = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor >= 0) return;
    const int reason = errno;
    temporary.clear();
    fail_io("cannot create", reason);
  }

  void put(const void* bytes, size_t n) {
    if (buffer.size() + n > kBufferBytes) flush();
    if (n >= kBufferBytes) put_through(static_cast<const char*>(bytes), n);
    else buffer.append(static_cast<const char*>(bytes), n);
  }

  void flush() {
    put_through(buffer.data(), buffer.size());
    buffer.clear();
  }

  void put_through(const char* bytes, size_t n) {
    while (n > 0) {
      const ssize_t written = ::write(descriptor, bytes, std::min(n, size_t{1} << 30));
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) fail_io("cannot write", errno);
      bytes += written;
      n -= static_cast<size_t>(written);
    }
  }

  // Pads complete tensors and moves on to the next one.
  void advance() {
    while (current < tensors.size() && done == tensors[current].n_bytes) {
      const std::string zeros(tensors[current].padding, '\0');
      put(zeros.data(), zeros.size());
      ++current;
      done = 0;
    }
  }

  // Syncing the folder makes the new name durable. On file systems that cannot do it, the file is still complete.
  void sync_folder() const {
    const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
    const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return;
    ::fsync(fd);
    ::close(fd);
  }
};

GgufWriter::GgufWriter(std::filesystem::path path, std::vector<std::pair<std::string, GgufValue>> metadata,
                       std::vector<TensorInfo> tensors, uint32_t alignment)
    : impl_(std::make_unique<Impl>()) {
  if (!std::has_single_bit(alignment) || alignment < kMinGgufAlignment || alignment > kMaxGgufAlignment) {
    fail(concat("alignment: expected a power of two from ", kMinGgufAlignment, " to ", kMaxGgufAlignment, ", found ",
                alignment));
  }
  state_alignment(metadata, alignment);
  std::string header = "GGUF";
  append(header, uint32_t{3});
  append(header, uint64_t{tensors.size()});
  append(header, uint64_t{metadata.size()});
  append_metadata(header, metadata);
  std::set<std::string_view> seen;
  uint64_t offset = 0;
  for (const TensorInfo& tensor : tensors) {
    const std::string where = concat("tensor ", printable(tensor.name));
    const uint64_t n_bytes = checked_bytes(where, tensor);
    if (!seen.insert(tensor.name).second) fail(concat(where, ": appears twice"));
    append_string(header, tensor.name);
    append(header, static_cast<uint32_t>(tensor.shape.size()));
    for (auto size = tensor.shape.rbegin(); size != tensor.shape.rend(); ++size)
      append(header, static_cast<uint64_t>(*size));
    append(header, static_cast<uint32_t>(tensor.type));
    append(header, offset);
    const uint64_t whole = padded(n_bytes, alignment);
    if (__builtin_add_overflow(offset, whole, &offset)) fail(concat(where, ": the file is too large"));
    impl_->tensors.push_back({n_bytes, whole - n_bytes});
    impl_->names.push_back(tensor.name);
  }
  header.resize(padded(header.size(), alignment));

  impl_->path = std::move(path);
  impl_->create();
  impl_->put(header.data(), header.size());
}

GgufWriter::~GgufWriter() = default;

void GgufWriter::write(std::span<const std::byte> bytes) {
  Impl& w = *impl_;
  while (!bytes.empty()) {
    if (w.current == w.tensors.size()) fail(concat(bytes.size(), " bytes more than the tensors have"));
    const uint64_t n = std::min<uint64_t>(bytes.size(), w.tensors[w.current].n_bytes - w.done);
    w.put(bytes.data(), n);
    w.done += n;
    bytes = bytes.subspan(n);
    w.advance();
  }
}

void GgufWriter::leave_rest_empty() {
  Impl& w = *impl_;
  w.flush();
  const off_t at = ::lseek(w.descriptor, 0, SEEK_CUR);
  uint64_t rest = 0;
  for (; w.current < w.tensors.size(); ++w.current, w.done = 0) {
    rest += w.tensors[w.current].n_bytes - w.done + w.tensors[w.current].padding;
  }
  if (at < 0 || ::ftruncate(w.descriptor, at + static_cast<off_t>(rest)) != 0) w.fail_io("cannot grow", errno);
}

void GgufWriter::finish() {
  Impl& w = *impl_;
  if (w.finished) fail("finish() called twice");
  if (w.current < w.tensors.size()) {
    fail(concat("tensor ", printable(w.names[w.current]), ": ", w.done, " of ", w.tensors[w.current].n_bytes,
                " bytes were written"));
  }
  w.flush();
  if (::fsync(w.descriptor) != 0) w.fail_io("cannot sync", errno);
  const int closed = ::close(std::exchange(w.descriptor, -1));
  if (closed != 0) w.fail_io("cannot close", errno);
  if (::rename(w.temporary.c_str(), w.path.c_str()) != 0) w.fail_io("cannot rename the finished file", errno);
  w.finished = true;
  w.sync_folder();
}

}  // namespace infer
