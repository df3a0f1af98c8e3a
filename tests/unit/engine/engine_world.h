// Engines on a tiny model with random K-quantized weights, and the texts they generate.
#pragma once

#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>

#include "src/engine/engine.h"
#include "src/model/random_model.h"

namespace infer::test {

// INFER_TEST_FULL=1: every combination instead of a representative part.
inline bool full() {
  const char* value = std::getenv("INFER_TEST_FULL");
  return value && std::string(value) == "1";
}

// One file per type of weights, written when first asked for and deleted when the program ends.
class ModelFiles {
 public:
  ModelFiles() : folder_(std::filesystem::temp_directory_path() / ("infer_engine_world_" + std::to_string(getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~ModelFiles() { std::filesystem::remove_all(folder_); }
  std::string path(const std::string& type) const {
    const std::filesystem::path path = folder_ / (type + ".gguf");
    if (!std::filesystem::exists(path)) write_random_model("tiny", type, path.string());
    return path.string();
  }

 private:
  std::filesystem::path folder_;
};

inline std::shared_ptr<const GgufFile> open_file(const std::string& type) {
  static const ModelFiles files;
  return GgufFile::open(files.path(type));
}

inline std::shared_ptr<Model> open_model(const std::string& type) { return load_model(open_file(type)); }

inline EngineOptions small_options() {
  EngineOptions options;
  options.context = 512;
  options.n_threads = 1;
  return options;
}

inline Request make_request(RequestId id, int prompt_length, int n_new, int first_token = 10) {
  Request request;
  request.id = id;
  for (int i = 0; i < prompt_length; ++i) request.prompt.push_back(3 + (first_token * 37 + i * i * 11 + i) % 500);
  request.max_new_tokens = n_new;
  request.ignore_eog = true;
  request.sampling.seed = 1234 + id;
  return request;
}

struct Answer {
  std::vector<TokenId> tokens;
  std::map<int64_t, std::vector<float>> logits;  // by position
};

// Runs requests side by side; each starts after the given number of steps.
inline std::map<RequestId, Answer> run_all(Engine& engine, std::vector<std::pair<int, Request>> requests) {
  std::map<RequestId, Answer> answers;
  engine.on_logits([&](RequestId id, int64_t position, std::span<const float> logits) {
    answers[id].logits[position].assign(logits.begin(), logits.end());
  });
  size_t started = 0;
  for (int step = 0; started < requests.size() || !engine.idle(); ++step) {
    REQUIRE(step < 10000);
    while (started < requests.size() && requests[started].first <= step) {
      Request& request = requests[started++].second;
      request.report_logits = true;
      REQUIRE(engine.submit(request));
    }
    for (const Progress& p : engine.step()) {
      answers[p.id].tokens.insert(answers[p.id].tokens.end(), p.tokens.begin(), p.tokens.end());
    }
  }
  return answers;
}

inline Answer run_alone(const std::string& type, const Request& request, const EngineOptions& options) {
  Engine engine(open_model(type), options);
  return run_all(engine, {{0, request}})[request.id];
}

inline void check_same(const Answer& a, const Answer& b) {
  CHECK(a.tokens == b.tokens);
  for (const auto& [position, logits] : a.logits) {
    const auto other = b.logits.find(position);
    if (other == b.logits.end()) continue;
    REQUIRE(other->second.size() == logits.size());
    CHECK(std::memcmp(other->second.data(), logits.data(), logits.size() * sizeof(float)) == 0);
  }
}

}  // namespace infer::test
