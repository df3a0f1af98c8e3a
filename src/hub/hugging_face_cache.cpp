// Models in the cache of Hugging Face's own programs:
//
//     models--ORG--REPO/refs/main                            the commit that was asked for last
//     models--ORG--REPO/snapshots/COMMIT/NAME-Q4_K_M.gguf    a link to blobs/SHA256
#include <algorithm>

#include "src/hub/cache.h"
#include "src/hub/part_file.h"
#include "src/hub/sha256.h"

namespace infer {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kRepoPrefix = "models--";

// "" for a folder of something else.
std::string repo_of(const std::string& folder) {
  if (!folder.starts_with(kRepoPrefix)) return "";
  std::string repo = folder.substr(kRepoPrefix.size());
  const size_t separator = repo.find("--");
  if (separator == std::string::npos) return "";
  repo.replace(separator, 2, "/");
  return parse_model_name("hf.co/" + repo) ? repo : "";
}

// The snapshot that refs/main names, else the one changed last; "" if there is none.
fs::path current_snapshot(const fs::path& repo) {
  std::error_code error;
  try {
    std::string commit = read_whole_file(repo / "refs" / "main");
    commit.erase(commit.find_last_not_of(" \r\n") + 1);
    const fs::path path = repo / "snapshots" / commit;
    if (is_safe_relative_path(commit) && commit.find('/') == std::string::npos && fs::is_directory(path, error)) {
      return path;
    }
  } catch (const std::exception&) {  // a folder that cannot be read has no models
  }
  fs::path newest;
  fs::file_time_type time;
  for (fs::directory_iterator it(repo / "snapshots", error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    const fs::file_time_type changed = fs::last_write_time(it->path(), ignored);
    if (!ignored && (newest.empty() || changed > time)) {
      newest = it->path();
      time = changed;
    }
  }
  return newest;
}

std::vector<RemoteFile> files_in(const fs::path& snapshot) {
  std::vector<RemoteFile> files;
  std::error_code error;
  for (fs::recursive_directory_iterator it(snapshot, error), end; !error && it != end; it.increment(error)) {
    std::error_code bad;
    const uint64_t size = fs::file_size(it->path(), bad);  // follows the link; fails for one to nowhere
    const std::string path = it->path().lexically_relative(snapshot).string();
    if (bad || !fs::is_regular_file(it->path(), bad) || !is_safe_relative_path(path)) continue;
    RemoteFile file;
    file.path = path;
    file.size = size;
    const std::string blob = fs::read_symlink(it->path(), bad).filename().string();
    if (!bad && is_sha256(blob)) file.sha256 = blob;
    files.push_back(std::move(file));
  }
  return files;
}

}  // namespace

std::vector<fs::path> hugging_face_caches(const Environment& environment) {
  std::vector<fs::path> candidates;
  const std::string own = environment("HF_HUB_CACHE"), older = environment("HUGGINGFACE_HUB_CACHE");
  const std::string hf_home = environment("HF_HOME"), cache = environment("XDG_CACHE_HOME"), home = environment("HOME");
  if (!own.empty()) candidates.emplace_back(own);
  else if (!older.empty()) candidates.emplace_back(older);
  else if (!hf_home.empty()) candidates.push_back(fs::path(hf_home) / "hub");
  else if (!cache.empty()) candidates.push_back(fs::path(cache) / "huggingface" / "hub");
  else if (!home.empty()) candidates.push_back(fs::path(home) / ".cache" / "huggingface" / "hub");
  std::error_code error;
  std::erase_if(candidates, [&](const fs::path& path) { return !fs::is_directory(path, error); });
  return candidates;
}

std::vector<CachedModel> hugging_face_cached_models(const fs::path& cache) {
  std::vector<CachedModel> all;
  std::error_code error;
  for (fs::directory_iterator it(cache, error), end; !error && it != end; it.increment(error)) {
    const std::string repo = repo_of(it->path().filename().string());
    if (repo.empty()) continue;
    const fs::path snapshot = current_snapshot(it->path());
    if (snapshot.empty()) continue;
    const ModelName name = *parse_model_name("hf.co/" + repo);
    const std::vector<Variant> variants = group_variants(files_in(snapshot));
    for (const Variant& variant : variants) {
      CachedModel model{
          variant_name(name.base(), variant, variants), name.base(), variant.label, variant.label, {}, {}, false};
      for (const RemoteFile& file : variant.files) {
        model.files.push_back({snapshot / file.path, file.size, file.sha256, ""});
      }
      all.push_back(std::move(model));
    }
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return all;
}

}  // namespace infer
