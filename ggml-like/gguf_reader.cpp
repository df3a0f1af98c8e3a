// GgufFile: opens a file or all parts of a split model and joins their tensor tables.
#include <algorithm>
#include <cstdio>
#include <numeric>

#include "ggml-like/error.h"
#include "ggml-like/gguf.h"
#include "ggml-like/gguf_bytes.h"
#include "ggml-like/gguf_parse.h"
#include "ggml-like/printable.h"

namespace infer {
namespace {

constexpr uint64_t kFirstRead = 4 << 20;  // for a file that is not mapped; most headers are shorter
constexpr uint64_t kMaxParts = 65535;     // split.count is a uint16

// NAME-00002-of-00005.gguf
struct SplitName {
  std::filesystem::path folder;
  std::string stem;  // NAME
  uint32_t number;   // 2, from one
  uint32_t count;    // 5

  std::filesystem::path path_of(uint32_t part_number) const {
    char suffix[40];
    std::snprintf(suffix, sizeof(suffix), "-%05u-of-%05u.gguf", part_number, count);
    return folder / (stem + suffix);
  }
};

std::optional<SplitName> parse_split_name(const std::filesystem::path& path) {
  constexpr std::string_view kPattern = "-00000-of-00000.gguf";  // 0 is any digit
  const std::string name = path.filename().string();
  if (name.size() <= kPattern.size()) return std::nullopt;
  const size_t start = name.size() - kPattern.size();
  for (size_t i = 0; i < kPattern.size(); ++i) {
    const char c = name[start + i];
    if (kPattern[i] == '0' ? c < '0' || c > '9' : c != kPattern[i]) return std::nullopt;
  }
  const auto number = [&](size_t at) { return static_cast<uint32_t>(std::stoul(name.substr(start + at, 5))); };
  return SplitName{path.parent_path(), name.substr(0, start), number(1), number(10)};
}

class OpenFile final : public GgufFile {
 public:
  explicit OpenFile(const GgufOpenOptions& options) : options_(options) {}

  uint32_t version() const override { return version_; }
  uint32_t alignment() const override { return alignment_; }
  const std::vector<std::filesystem::path>& parts() const override { return paths_; }
  uint64_t total_file_bytes() const override { return total_bytes_; }
  const std::vector<std::pair<std::string, GgufValue>>& metadata() const override { return metadata_; }
  const std::vector<GgufTensor>& tensors() const override { return tensors_; }

  const GgufValue* find(std::string_view key) const override {
    const auto at = std::lower_bound(key_order_.begin(), key_order_.end(), key,
                                     [&](uint32_t i, std::string_view k) { return metadata_[i].first < k; });
    return at != key_order_.end() && metadata_[*at].first == key ? &metadata_[*at].second : nullptr;
  }
  const GgufTensor* find_tensor(std::string_view name) const override {
    const auto at = std::lower_bound(name_order_.begin(), name_order_.end(), name,
                                     [&](uint32_t i, std::string_view n) { return tensors_[i].name < n; });
    return at != name_order_.end() && tensors_[*at].name == name ? &tensors_[*at] : nullptr;
  }

  void open(const std::filesystem::path& path) {
    std::optional<SplitName> split = options_.follow_splits ? parse_split_name(path) : std::nullopt;
    std::filesystem::path first = path;
    if (split && split->number != 1) {
      // The metadata decides whether it is a part, not the name.
      OpenFile probe({.use_mmap = options_.use_mmap, .map_data = false, .follow_splits = false});
      probe.add_path(path);
      if (probe.check_split(path)) first = split->path_of(1);
    }
    add_existing(first, 1, split ? split->count : 1);
    if (options_.follow_splits) split = check_split(first);
    if (split) add_other_parts(*split);
    index_tensors();
    for (const auto& [key, value] : options_.overrides) override_key(key, value);
  }

  void parse(std::span<const std::byte> bytes, const std::string& name) {
    add_part(name, *parse_gguf_part(bytes, bytes.size(), name), bytes.size(), bytes);
    index_tensors();
  }

 private:
  [[noreturn]] static void fail(const std::filesystem::path& path, const std::string& what) {
    throw Error(ErrorCode::kInvalidFile, concat("[gguf] ", printable_path(path), ": ", what));
  }

  void add_existing(const std::filesystem::path& path, uint32_t number, uint32_t count) {
    std::error_code ignored;
    if (count > 1 && !std::filesystem::exists(path, ignored)) {
      throw Error(ErrorCode::kIo,
                  concat("[gguf] ", printable_path(path), ": part ", number, " of ", count, " is missing"));
    }
    add_path(path);
  }

  void add_path(const std::filesystem::path& path) {
    FileBytes file(path);
    const std::string name = path.filename().string();
    if (options_.use_mmap && file.map()) {
      GgufPart part = *parse_gguf_part(file.bytes(), file.size(), name);
      add_part(path, std::move(part), file.size(), options_.map_data ? file.bytes() : std::span<const std::byte>());
    } else {
      GgufPart part = parse_start(file, name);
      if (options_.map_data) file.load();
      add_part(path, std::move(part), file.size(), file.bytes());
    }
    file.close_descriptor();
    if (options_.map_data) files_.push_back(std::move(file));
  }

  // Reads at most a few times the header's size.
  static GgufPart parse_start(const FileBytes& file, const std::string& name) {
    for (uint64_t n = kFirstRead;; n *= 4) {
      const std::vector<std::byte> start = file.read_start(std::min(n, file.size()));
      if (std::optional<GgufPart> part = parse_gguf_part(start, file.size(), name)) return std::move(*part);
    }
  }

  // `bytes` is empty if tensors get no data.
  void add_part(const std::filesystem::path& path, GgufPart part, uint64_t size, std::span<const std::byte> bytes) {
    const auto index = static_cast<uint32_t>(paths_.size());
    for (GgufTensor& tensor : part.tensors) {
      tensor.part = index;
      tensor.data = bytes.empty() ? nullptr : bytes.data() + tensor.file_offset;
      tensors_.push_back(std::move(tensor));
    }
    paths_.push_back(path);
    total_bytes_ += size;
    if (index == 0) {
      version_ = part.version;
      alignment_ = part.alignment;
      metadata_ = std::move(part.metadata);
      key_order_ = std::move(part.key_order);
    }
  }

  // The place of the only part added so far according to its name, checked; nullopt if it is a whole model.
  std::optional<SplitName> check_split(const std::filesystem::path& path) const {
    const int64_t count = get_int("split.count").value_or(0);
    if (count <= 1 && count >= 0) return std::nullopt;  // 0: a model that was split and merged again
    if (count < 0 || static_cast<uint64_t>(count) > kMaxParts) {
      fail(path, concat("key split.count: expected 0 to ", kMaxParts, ", found ", count));
    }
    const std::optional<SplitName> name = parse_split_name(path);
    if (!name) {
      const SplitName example{{}, "model", 1, static_cast<uint32_t>(count)};
      fail(path, concat("one of ", count, " parts, expected a name like ", example.path_of(1).string()));
    }
    check_place(path, *this, name->number, name->count);
    return name;
  }

  // REQUIRES: `number` and `count` come from the file's name.
  static void check_place(const std::filesystem::path& path, const OpenFile& part, uint32_t number, uint32_t count) {
    const int64_t found_count = part.get_int("split.count").value_or(0);
    if (found_count != count) {
      fail(path, concat("key split.count: expected ", count, " as in the name, found ", found_count));
    }
    const int64_t found_number = part.get_int("split.no").value_or(-1);
    if (number == 0 || found_number != number - 1) {
      fail(path, concat("key split.no: expected ", static_cast<int64_t>(number) - 1, " as in the name, found ",
                        found_number));
    }
  }

  // REQUIRES: part 1 has been added.
  void add_other_parts(const SplitName& split) {
    for (uint32_t number = 2; number <= split.count; ++number) {
      const std::filesystem::path path = split.path_of(number);
      OpenFile part(options_);
      part.add_existing(path, number, split.count);
      check_place(path, part, number, split.count);
      for (GgufTensor& tensor : part.tensors_) {
        tensor.part = number - 1;
        tensors_.push_back(std::move(tensor));
      }
      paths_.push_back(path);
      total_bytes_ += part.total_bytes_;
      std::move(part.files_.begin(), part.files_.end(), std::back_inserter(files_));
    }
    if (const std::optional<int64_t> expected = get_int("split.tensors.count")) {
      if (*expected != static_cast<int64_t>(tensors_.size())) {
        fail(paths_[0], concat("key split.tensors.count: expected ", *expected, " tensors in ", split.count,
                               " parts, found ", tensors_.size()));
      }
    }
  }

  void override_key(const std::string& written, const GgufValue& value) {
    const bool of_architecture = written.starts_with('.');
    const std::string key = (of_architecture ? get_string("general.architecture").value_or("") : "") + written;
    const auto at = std::lower_bound(key_order_.begin(), key_order_.end(), key,
                                     [&](uint32_t i, const std::string& k) { return metadata_[i].first < k; });
    if (at != key_order_.end() && metadata_[*at].first == key) {
      metadata_[*at].second = value;
      return;
    }
    key_order_.insert(at, static_cast<uint32_t>(metadata_.size()));
    metadata_.emplace_back(key, value);
  }

  void index_tensors() {
    name_order_.resize(tensors_.size());
    std::iota(name_order_.begin(), name_order_.end(), 0);
    const auto name = [&](uint32_t i) -> const std::string& { return tensors_[i].name; };
    std::sort(name_order_.begin(), name_order_.end(), [&](uint32_t a, uint32_t b) { return name(a) < name(b); });
    for (size_t i = 1; i < name_order_.size(); ++i) {
      const GgufTensor &a = tensors_[name_order_[i - 1]], &b = tensors_[name_order_[i]];
      if (a.name != b.name) continue;
      const std::string where = a.part == b.part ? concat("appears twice in ", paths_[a.part].filename().string())
                                                 : concat("appears in parts ", std::min(a.part, b.part) + 1, " and ",
                                                          std::max(a.part, b.part) + 1);
      throw Error(ErrorCode::kInvalidFile, concat("[gguf] tensor ", printable(a.name), ": ", where));
    }
  }

  GgufOpenOptions options_;
  std::vector<FileBytes> files_;  // the memory behind the tensors' data
  std::vector<std::filesystem::path> paths_;
  uint64_t total_bytes_ = 0;
  uint32_t version_ = 0;
  uint32_t alignment_ = 0;
  std::vector<std::pair<std::string, GgufValue>> metadata_;
  std::vector<GgufTensor> tensors_;
  std::vector<uint32_t> key_order_;   // of metadata_, sorted by key
  std::vector<uint32_t> name_order_;  // of tensors_, sorted by name
};

}  // namespace

std::shared_ptr<const GgufFile> GgufFile::open(const std::filesystem::path& path, const GgufOpenOptions& options) {
  auto file = std::make_shared<OpenFile>(options);
  file->open(path);
  return file;
}

std::shared_ptr<const GgufFile> GgufFile::parse(std::span<const std::byte> bytes, const std::string& name_for_errors) {
  auto file = std::make_shared<OpenFile>(GgufOpenOptions{});
  file->parse(bytes, name_for_errors);
  return file;
}

}  // namespace infer
