// Ollama's registry: a manifest names the layers of a model by their SHA-256; one of them is the GGUF file.
#pragma once

#include "src/hub/fetch.h"
#include "src/hub/model_name.h"
#include "src/hub/proxy.h"
#include "src/hub/variants.h"

namespace infer {

// $INFER_OLLAMA_REGISTRY, or else https://registry.ollama.ai.
std::string ollama_endpoint(const Environment& environment = process_environment);

// The GGUF file of a tag. Throws what fetch_document() throws, Error(kInvalidFile) for a manifest that is not what the
// registry promises, and Error(kUnsupported) for a model with adapters.
RemoteFile find_ollama(HttpClient& client, const ModelName& name, const std::string& endpoint,
                       const FetchOptions& fetch, const HubEvents& events);

}  // namespace infer
