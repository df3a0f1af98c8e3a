#include "src/hub/cache.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "ggml-like/error.h"
#include "ggml-like/printable.h"
#include "src/hub/json.h"
#include "src/hub/part_file.h"
#include "src/hub/sha256.h"

namespace infer {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRecordSuffix = ".gguf.json";
constexpr const char* kPartSuffix = ".gguf.part";

fs::path record_path(const fs::path& first_file) { return first_file.string() + ".json"; }

// Regular files below `root` whose names end with `suffix`; what cannot be read is left out.
std::vector<fs::path> files_below(const fs::path& root, std::string_view suffix) {
  std::vector<fs::path> found;
  std::error_code error;
  fs::recursive_directory_iterator it(root, fs::directory_options::skip_permission_denied, error), end;
  for (; !error && it != end; it.increment(error)) {
    if (it.depth() > 64) it.disable_recursion_pending();
    std::error_code ignored;
    if (it->path().filename().string().ends_with(suffix) && it->is_regular_file(ignored)) found.push_back(it->path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::optional<std::chrono::system_clock::time_point> changed_at(const fs::path& path) {
  struct stat info = {};
  if (stat(path.c_str(), &info) != 0) return std::nullopt;
  return std::chrono::system_clock::from_time_t(info.st_mtime);
}

// The files are named by their path from the record's folder, so that the cache can be moved.
std::optional<CachedModel> read_record(const fs::path& path) {
  const std::string where = path.string();
  try {
    const nlohmann::json json = parse_hub_json(read_whole_file(path), where);
    CachedModel model;
    model.name = json_string(json, "name", where);
    model.base = json_string(json, "base", where);
    model.label = json_string(json, "label", where);
    model.quantization = json_string(json, "quantization", where);
    const nlohmann::json& files = json_member(json, "files", where);
    if (!files.is_array() || files.empty()) return std::nullopt;
    for (const nlohmann::json& entry : files) {
      const std::string name = json_string(entry, "name", where);
      if (!is_safe_relative_path(name)) return std::nullopt;
      CachedFile file{path.parent_path() / name, json_size(entry, "size", where), json_optional_string(entry, "sha256"),
                      json_optional_string(entry, "etag")};
      std::error_code error;
      if (fs::file_size(file.path, error) != file.size || error) return std::nullopt;
      model.files.push_back(std::move(file));
    }
    model.last_used = changed_at(path);
    return model;
  } catch (const Error&) {
    return std::nullopt;
  }
}

void remove_file(const fs::path& path) {
  std::error_code error;
  fs::remove(path, error);
  if (error) {
    throw Error(ErrorCode::kIo, concat("Cannot remove ", printable_path(path), ": ", error.message(), "."));
  }
}

}  // namespace

uint64_t CachedModel::size() const {
  uint64_t sum = 0;
  for (const CachedFile& file : files) sum += file.size;
  return sum;
}

fs::path ModelCache::path_of(const ModelName& name, const RemoteFile& file) const {
  CHECK_INTERNAL(is_safe_relative_path(file.path));
  return root_ / name.folder() / file.path;
}

std::vector<CachedModel> ModelCache::models() const {
  std::vector<CachedModel> all;
  for (const fs::path& path : files_below(root_, kRecordSuffix)) {
    if (std::optional<CachedModel> model = read_record(path)) all.push_back(std::move(*model));
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return all;
}

std::vector<PartialFile> ModelCache::partial_files() const {
  std::vector<PartialFile> all;
  for (const fs::path& path : files_below(root_, kPartSuffix)) {
    PartialFile file;
    file.target = path.string().substr(0, path.string().size() - std::strlen(".part"));
    if (const std::optional<PartState> state = load_part_state(file.target)) {
      file.name = state->name;
      file.size = state->size;
      file.done = state->total_done();
    }
    file.active = is_being_downloaded(file.target);
    all.push_back(std::move(file));
  }
  return all;
}

void ModelCache::add(const CachedModel& model) const {
  const fs::path folder = model.path().parent_path();
  nlohmann::json files = nlohmann::json::array();
  for (const CachedFile& file : model.files) {
    const std::string name = file.path.lexically_relative(folder).string();
    files.push_back({{"name", name}, {"size", file.size}, {"sha256", file.sha256}, {"etag", file.etag}});
  }
  const nlohmann::json json = {{"name", model.name},
                               {"base", model.base},
                               {"label", model.label},
                               {"quantization", model.quantization},
                               {"files", files}};
  write_whole_file(record_path(model.path()), json.dump(2, ' ', true, nlohmann::json::error_handler_t::replace) + "\n");
  sync_folder(folder);
}

void ModelCache::touch(const CachedModel& model) const {
  if (model.is_own) utimensat(AT_FDCWD, record_path(model.path()).c_str(), nullptr, 0);
}

void ModelCache::remove(const CachedModel& model) const {
  remove_file(record_path(model.path()));
  std::vector<fs::path> kept;
  for (const CachedModel& other : models()) {
    for (const CachedFile& file : other.files) kept.push_back(file.path);
  }
  for (const CachedFile& file : model.files) {
    if (std::find(kept.begin(), kept.end(), file.path) == kept.end()) remove_file(file.path);
  }
  remove_empty_folders(model.path().parent_path());
}

void ModelCache::remove(const PartialFile& file) const {
  remove_file(part_state_path(file.target));
  remove_file(part_path(file.target));
  remove_empty_folders(file.target.parent_path());
}

void ModelCache::remove_empty_folders(fs::path folder) const {
  std::error_code error;
  // Fails at the first folder that is not empty.
  while (folder != root_ && folder.has_relative_path() && fs::remove(folder, error) && !error) {
    folder = folder.parent_path();
  }
}

fs::path default_cache_folder(const Environment& environment) {
  if (const std::string own = environment("INFER_MODELS"); !own.empty()) return fs::absolute(own);
  if (const std::string cache = environment("XDG_CACHE_HOME"); !cache.empty()) return fs::path(cache) / "infer";
  if (const std::string home = environment("HOME"); !home.empty()) return fs::path(home) / ".cache" / "infer";
  throw Error(ErrorCode::kInvalidArgument,
              "There is no folder for models: HOME is not set. Name one with INFER_MODELS.");
}

}  // namespace infer
