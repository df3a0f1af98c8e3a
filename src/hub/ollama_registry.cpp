#include "src/hub/ollama_registry.h"

#include "ggml-like/message.h"
#include "ggml-like/printable.h"
#include "src/hub/json.h"
#include "src/hub/sha256.h"

namespace infer {
namespace {

constexpr size_t kManifestBytes = size_t{4} << 20;
constexpr const char* kModelLayer = "application/vnd.ollama.image.model";
constexpr const char* kAdapterLayer = "application/vnd.ollama.image.adapter";

}  // namespace

std::string ollama_endpoint(const Environment& environment) {
  const std::string own = environment("INFER_OLLAMA_REGISTRY");
  return own.empty() ? "https://registry.ollama.ai" : own;
}

RemoteFile find_ollama(HttpClient& client, const ModelName& name, const std::string& endpoint,
                       const FetchOptions& fetch, const HubEvents& events) {
  const std::optional<Url> base = parse_url(endpoint);
  if (!base || base->target != "/") {
    throw Error(ErrorCode::kInvalidArgument,
                concat("INFER_OLLAMA_REGISTRY is not a server: ", printable(endpoint, 100), ". Write https://HOST."));
  }
  const std::string what = name.text();
  FetchRequest request{*base, {{"Accept", "application/vnd.docker.distribution.manifest.v2+json"}}, ""};
  request.url.target = concat("/v2/", name.repo, "/manifests/", name.tag);
  const Document document = fetch_document(client, request, kManifestBytes, what, fetch, events);
  const nlohmann::json manifest = parse_hub_json(document.text, base->host);
  const nlohmann::json& layers = json_member(manifest, "layers", base->host);
  if (!layers.is_array()) {
    throw Error(ErrorCode::kInvalidFile, expected_found(base->host, "layers", "an array", layers.type_name()));
  }
  RemoteFile file;
  int models = 0;
  for (const nlohmann::json& layer : layers) {
    const std::string type = json_string(layer, "mediaType", base->host);
    if (type == kAdapterLayer) {
      throw Error(ErrorCode::kUnsupported, concat(what, " is an adapter on another model, which is not implemented."));
    }
    if (type != kModelLayer) continue;  // templates, parameters, licenses; projectors for images
    ++models;
    const std::string digest = json_string(layer, "digest", base->host);
    if (!digest.starts_with("sha256:") || !is_sha256(digest.substr(7))) {
      throw Error(ErrorCode::kInvalidFile,
                  expected_found(base->host, "digest", "sha256: and 64 hex digits", printable(digest, 100)));
    }
    file.sha256 = digest.substr(7);
    file.size = json_size(layer, "size", base->host);
    file.url = *base;
    file.url.target = concat("/v2/", name.repo, "/blobs/", digest);
  }
  if (models != 1 || file.size == 0) {
    throw Error(ErrorCode::kInvalidFile, expected_found(base->host, printable(what), "one layer with a model", models));
  }
  file.path = name.tag + ".gguf";
  return file;
}

}  // namespace infer
