// A service with a small random model, for tests of the server.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>

#include "src/model/random_model.h"
#include "src/server/api_service.h"

namespace infer::test {

inline std::unique_ptr<ServedModel> random_served_model(Metrics& metrics) {
  const auto path = std::filesystem::temp_directory_path() / ("infer_service_" + std::to_string(getpid()) + ".gguf");
  write_random_model("tiny", "Q8_0", path.string());
  EngineOptions options;
  options.context = 256;
  options.n_threads = 1;
  options.max_sequences = 8;
  options.embeddings = true;
  auto served = std::make_unique<ServedModel>();
  std::shared_ptr<Model> model = load_model(GgufFile::open(path.string()));
  std::filesystem::remove(path);
  served->name = "tiny";
  served->fingerprint = model_fingerprint(model->file());
  served->quantization = model_quantization(model->file());
  served->engine =
      std::make_unique<EngineThread>(std::make_unique<Engine>(model, options), metrics, [](const std::string&) {});
  return served;
}

}  // namespace infer::test
