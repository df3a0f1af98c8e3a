// The list of endpoints, with a declaration and a row for each. Everything else is in the endpoint's own file.
#include "src/server/endpoint.h"

namespace infer {

Endpoint apply_template_endpoint();
Endpoint chat_completions_endpoint();
Endpoint completions_endpoint();
Endpoint detokenize_endpoint();
Endpoint embeddings_endpoint();
Endpoint health_endpoint();
Endpoint metrics_endpoint();
Endpoint model_endpoint();
Endpoint models_endpoint();
Endpoint stats_endpoint();
Endpoint tokenize_endpoint();
Endpoint version_endpoint();

std::span<const Endpoint> endpoints() {
  // One per line:
  // clang-format off
  static const Endpoint all[] = {
      apply_template_endpoint(),
      chat_completions_endpoint(),
      completions_endpoint(),
      detokenize_endpoint(),
      embeddings_endpoint(),
      health_endpoint(),
      metrics_endpoint(),
      model_endpoint(),
      models_endpoint(),
      stats_endpoint(),
      tokenize_endpoint(),
      version_endpoint(),
  };
  // clang-format on
  return all;
}

}  // namespace infer
