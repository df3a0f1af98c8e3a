// The folder of downloaded models. Each model's files lie under readable names, with a record next to the first one:
//
//     hf.co/ORG/REPO/NAME-Q4_K_M.gguf
//     hf.co/ORG/REPO/NAME-Q4_K_M.gguf.json      written last: a model without a record is not complete
//     ollama.com/library/NAME/TAG.gguf
//     url/HOST/PATH.gguf
//
// The time of the record's last change is the time of the model's last use. Several processes may use the folder.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "src/hub/model_name.h"
#include "src/hub/proxy.h"
#include "src/hub/variants.h"

namespace infer {

struct CachedFile {
  std::filesystem::path path;
  uint64_t size = 0;
  std::string sha256, etag;  // "": not known
};

struct CachedModel {
  std::string name;   // hf.co/ORG/REPO:Q4_K_M
  std::string base;   // the name without the tag
  std::string label;  // the quantization; for Ollama, the tag
  std::string quantization;
  std::vector<CachedFile> files;  // the first part first
  std::optional<std::chrono::system_clock::time_point> last_used;
  bool is_own = true;  // false: in Hugging Face's cache, which others manage

  uint64_t size() const;
  const std::filesystem::path& path() const { return files.front().path; }
};

// A download that was not finished.
struct PartialFile {
  std::string name;              // of the model; "" if not known
  std::filesystem::path target;  // the file that it would become
  uint64_t done = 0, size = 0;   // bytes
  bool active = false;           // a process is downloading it now
};

class ModelCache {
 public:
  explicit ModelCache(std::filesystem::path root) : root_(std::move(root)) {}

  const std::filesystem::path& root() const { return root_; }
  std::filesystem::path path_of(const ModelName& name, const RemoteFile& file) const;

  // All complete models, by name. Records that are damaged or lack a file are skipped.
  std::vector<CachedModel> models() const;
  std::vector<PartialFile> partial_files() const;

  // Writes the record of a model whose files are there. Throws Error(kIo).
  void add(const CachedModel& model) const;
  // Notes that the model is used now; a cache that cannot be written is no error.
  void touch(const CachedModel& model) const;
  // Removes record, files and folders that become empty. A file that another model has too stays. Throws Error(kIo).
  void remove(const CachedModel& model) const;
  void remove(const PartialFile& file) const;

 private:
  void remove_empty_folders(std::filesystem::path folder) const;

  const std::filesystem::path root_;
};

// $INFER_MODELS, $XDG_CACHE_HOME/infer or ~/.cache/infer. Throws Error(kInvalidArgument) if none of them is set.
std::filesystem::path default_cache_folder(const Environment& environment = process_environment);

// The folders of Hugging Face's own cache: $HF_HUB_CACHE, $HF_HOME/hub, or ~/.cache/huggingface/hub; those that exist.
std::vector<std::filesystem::path> hugging_face_caches(const Environment& environment = process_environment);
// Models in such a folder, of the snapshot that refs/main names or of the newest one.
std::vector<CachedModel> hugging_face_cached_models(const std::filesystem::path& cache);

}  // namespace infer
