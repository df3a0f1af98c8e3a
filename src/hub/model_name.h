// Names of models on the hubs: hf.co/ORG/REPO:Q4_K_M, ollama.com/library/NAME:TAG, a URL. Pure functions; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "src/hub/url.h"

namespace infer {

enum class HubSource { kHuggingFace, kOllama, kUrl };

struct ModelName {
  HubSource source = HubSource::kHuggingFace;
  std::string repo;  // ORG/REPO, NAMESPACE/NAME; for a URL, its host and path
  std::string tag;   // the quantization, or the tag of Ollama's registry; "": none given
  std::string file;  // Hugging Face: one file of the repository; "": chosen by the tag
  Url url;           // of kUrl

  // The name without the tag: hf.co/ORG/REPO, ollama.com/library/NAME, the URL without its query.
  std::string base() const;
  // The whole name; `tag` instead of the name's own.
  std::string text() const { return with_tag(tag); }
  std::string with_tag(const std::string& tag) const;
  // The folder below the cache.
  std::string folder() const;
};

// Nothing if the text cannot be the name of a model on a hub. `bare`: whether ORG/REPO (Hugging Face) and NAME[:TAG]
// (Ollama's library) without a host count, which could also be the path of a file.
std::optional<ModelName> parse_model_name(std::string_view text, bool bare = true);

// Whether a path from a server stays in its folder: no "..", no empty or hidden parts, no control characters, nothing
// that is too long for a file system.
bool is_safe_relative_path(std::string_view path);

}  // namespace infer
