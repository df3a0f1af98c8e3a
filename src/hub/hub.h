// Models by name: finds them in the caches, asks registries for them, downloads them. One thread; several processes may
// use the same cache.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "src/hub/cache.h"
#include "src/hub/download.h"
#include "src/hub/hugging_face.h"
#include "src/hub/model_name.h"

namespace infer {

struct HubOptions {
  std::filesystem::path cache;
  std::vector<std::filesystem::path> foreign_caches;  // Hugging Face's own
  HuggingFaceOptions hugging_face;
  std::string ollama;  // the registry's address
  bool offline = false;
  DownloadOptions download;
  // The quantization of a model file, for names that do not say it.
  std::function<std::string(const std::filesystem::path& file)> quantization;
};

// As the environment says: INFER_MODELS, HF_ENDPOINT, HF_TOKEN, HF_HUB_OFFLINE, ...
HubOptions hub_options(const Environment& environment = process_environment);

// What a server has for a name.
struct Listing {
  std::vector<Variant> all;
  std::vector<Variant> matching;  // the name's tag or file; the preferred one first
};

class Hub {
 public:
  Hub(HubOptions options, HubEvents events);

  const HubOptions& options() const { return options_; }
  const ModelCache& cache() const { return cache_; }

  // All complete models: those of the cache, then those of other caches.
  std::vector<CachedModel> models() const;
  // Those that a name means, the preferred one first. A model of the own cache hides others of that name.
  std::vector<CachedModel> find(const ModelName& name) const;

  // Asks the server. Throws Error(kIo) if there is no model of that name and, in offline mode, in any case.
  Listing list(const ModelName& name);
  // Whether the model in a cache is what the server has now.
  static bool is_current(const CachedModel& model, const Variant& variant);
  // Downloads what is missing.
  CachedModel pull(const ModelName& name, const Variant& variant, const Listing& listing);
  // The first bytes of a file on the server.
  std::string read_start(const RemoteFile& file, size_t bytes);

 private:
  void check_space(const ModelName& name, const Variant& variant) const;

  const HubOptions options_;
  const HubEvents events_;
  const ModelCache cache_;
  HttpClient client_;  // for lists
};

}  // namespace infer
