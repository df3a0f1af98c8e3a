// The models of ../shared/goldens/arch on the ref device, against what llama.cpp computed for them; and properties of
// all models, checked on models of the project.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "ggml-like/ref/ref_device.h"
#include "src/model/arch/architecture.h"
#include "tests/support/skip.h"
#include "tests/unit/model/run_model.h"

using namespace infer;
using infer::test::run_model;
using infer::test::RunResult;

namespace {

constexpr double kTolerance = 1e-3;  // a correct implementation is near 1e-5
constexpr double kVectorTolerance = 0.01;

// llama.cpp looks up the tanh GELU in a table of half precision, and computes attention in half precision in those
// layers of minimax-m3 that see all positions (its flash attention, whatever the type of the cache).
double tolerance(std::string_view architecture) {
  if (architecture == "minimax-m3") return 0.02;
  constexpr std::string_view kTanhGelu[] = {"bloom",  "codeshell", "falcon", "gemma",     "gemma2",
                                            "gemma3", "gemma3n",   "gemma4", "gpt2",      "gptneox",
                                            "grok",   "mpt",       "phi2",   "starcoder", "starcoder2"};
  return std::ranges::find(kTanhGelu, architecture) != std::end(kTanhGelu) ? 0.01 : kTolerance;
}

struct Golden {
  std::unique_ptr<Model> model;
  nlohmann::json reference;
  std::vector<int32_t> tokens;
};

Golden load(const std::filesystem::path& folder, const std::string& name) {
  Golden golden;
  golden.model = load_model(GgufFile::open(folder / (name + ".gguf")));
  golden.reference = nlohmann::json::parse(std::ifstream(folder / (name + ".json")));
  golden.tokens = golden.reference["tokens"].get<std::vector<int32_t>>();
  return golden;
}

// A model of tests/data/arch or models/ and 48 tokens for it.
Golden load_own(const std::string& path) {
  Golden own;
  own.model = load_model(GgufFile::open(std::filesystem::path(INFER_SOURCE_DIR) / (path + ".gguf")));
  for (int i = 0; i < 48; ++i) own.tokens.push_back((7 * i * i + 3 * i + 1) % std::min(own.model->n_vocab(), 300));
  return own;
}

// Largest |log p - log p of the reference| over all positions and listed tokens.
double largest_difference(const Golden& golden, const RunResult& result, const char* positions) {
  const auto n_vocab = static_cast<size_t>(golden.model->n_vocab());
  const nlohmann::json& reference = golden.reference[positions];
  REQUIRE(reference.size() == golden.tokens.size());
  REQUIRE(result.logits.size() == golden.tokens.size() * n_vocab);
  double largest = 0;
  for (size_t p = 0; p < reference.size(); ++p) {
    const std::vector<double> found = test::log_softmax({result.logits.data() + p * n_vocab, n_vocab});
    if (reference[p].is_null()) continue;  // the reference selects otherwise here
    REQUIRE(!reference[p].empty());
    for (const auto& [token, expected] : reference[p].get<std::vector<std::pair<size_t, double>>>()) {
      const double difference = std::abs(found.at(token) - expected);
      if (!(difference <= largest)) largest = difference;
    }
  }
  return largest;
}

// Largest difference from an encoder's recorded vector.
double largest_vector_difference(const Golden& golden, const RunResult& result) {
  const auto expected = golden.reference["embedding"].get<std::vector<double>>();
  const size_t width = expected.size(), n = golden.tokens.size();
  REQUIRE(result.hidden.size() == n * width);
  REQUIRE(result.logits.empty());
  const Pooling pooling = golden.model->config().pooling;
  REQUIRE((pooling == Pooling::kMean || pooling == Pooling::kCls));
  double largest = 0;
  for (size_t i = 0; i < width; ++i) {
    double pooled = 0;
    for (size_t t = 0; t < (pooling == Pooling::kMean ? n : 1); ++t) pooled += result.hidden[t * width + i];
    if (pooling == Pooling::kMean) pooled /= static_cast<double>(n);
    const double difference = std::abs(pooled - expected[i]);
    if (!(difference <= largest)) largest = difference;
  }
  return largest;
}

// By architecture, the models of a folder whose matrices are all F32; without ".gguf". A table that is only used for
// look-ups may have another type.
std::map<std::string, std::vector<std::string>> float_models(const std::filesystem::path& folder) {
  GgufOpenOptions options;
  options.map_data = false;
  std::map<std::string, std::vector<std::string>> models;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".gguf") continue;
    const auto file = GgufFile::open(entry.path(), options);
    const auto is_f32 = [](const GgufTensor& tensor) {
      return tensor.type == DataType::kF32 || tensor.type == DataType::kI32 ||
             tensor.name == "per_layer_token_embd.weight";
    };
    if (!std::all_of(file->tensors().begin(), file->tensors().end(), is_f32)) continue;
    models[file->get_string("general.architecture").value()].push_back(entry.path().stem());
  }
  return models;
}

// The role of a tensor by the naming scheme of GGUF: that of the first listed part of the name.
WeightRole role_by_name(const std::string& name) {
  constexpr std::pair<std::string_view, WeightRole> kParts[] = {
      {"res_score", WeightRole::kResidual},
      {"hc_norm", WeightRole::kNorm},
      {"hc_attn_norm", WeightRole::kNorm},
      {"hc_ffn_norm", WeightRole::kNorm},
      {"ple_norm", WeightRole::kNorm},
      {"ple_conv1d", WeightRole::kRecurrent},
      {"ple_", WeightRole::kResidual},
      {"hc_", WeightRole::kResidual},
      {"tid2eid", WeightRole::kRouter},
      {"layer_output_scale", WeightRole::kResidual},
      {"altup_router_norm", WeightRole::kNorm},
      {"altup_", WeightRole::kResidual},
      {"laurel_post_norm", WeightRole::kNorm},
      {"laurel_", WeightRole::kResidual},
      {"per_layer_token", WeightRole::kEmbedding},
      {"position_embd", WeightRole::kEmbedding},
      {"per_layer_model", WeightRole::kResidual},
      {"inp_gate", WeightRole::kResidual},
      {"norm", WeightRole::kNorm},
      {"indexer", WeightRole::kAttention},
      {"_shexp", WeightRole::kSharedExpert},
      {"_exps", WeightRole::kExpert},
      {"ffn_gate_inp", WeightRole::kRouter},
      {"ffn_", WeightRole::kFeedForward},
      {"attn_", WeightRole::kAttention},
      {"ssm_", WeightRole::kRecurrent},
      {"shortconv", WeightRole::kRecurrent},
      {"_mix_", WeightRole::kRecurrent},
      {"rope_", WeightRole::kRope},
      {"token_embd", WeightRole::kEmbedding},
      {"output", WeightRole::kOutput},
      {"exp_probs_b", WeightRole::kRouter},
      {"proj.", WeightRole::kResidual},
      {"token_types", WeightRole::kEmbedding},
      {"dense_", WeightRole::kOutput},
      {"cls", WeightRole::kOutput},
  };
  if (name.find("time_mix_ln") != std::string::npos) return WeightRole::kNorm;
  if (name.find("exp_probs_b") != std::string::npos) return WeightRole::kRouter;
  for (const auto& [part, role] : kParts) {
    if (name.find(part) != std::string::npos) return role;
  }
  FAIL("no role is known for ", name);
  return {};
}

}  // namespace

TEST_CASE("every architecture agrees with the reference") {
  const auto shared = test::shared_dir("every architecture agrees with the reference");
  if (!shared) return;
  const auto device = create_ref_device();
  static const auto models = float_models(*shared / "goldens/arch");
  for (const ArchitectureEntry& entry : all_architectures()) {
    const auto at = models.find(std::string(entry.name));
    INFO(entry.name, " needs a model with F32 weights in goldens/arch");
    REQUIRE(at != models.end());
    for (const std::string& name : at->second) {
      SUBCASE(name.c_str()) {
        const Golden golden = load(*shared / "goldens/arch", name);
        const RunResult result = run_model(*golden.model, golden.tokens, {{device.get()}});
        const bool is_encoder = golden.reference.contains("embedding");
        CHECK(is_encoder == !golden.model->config().causal);
        const double difference =
            is_encoder ? largest_vector_difference(golden, result) : largest_difference(golden, result, "positions");
        INFO(name, " differs by ", difference);
        CHECK(difference <= (is_encoder ? kVectorTolerance : tolerance(entry.name)));
      }
    }
  }
}

TEST_CASE("attention to selected blocks agrees with the reference") {
  // All attention of these models is sparse, so that the reference computed it in single precision.
  const char* name = nullptr;
  SUBCASE("blocks by their best position") { name = "minimax-m3-sparse"; }
  SUBCASE("blocks by the mean of their keys") { name = "qwen4exp-means"; }
  const auto device = create_ref_device();
  const auto folder = std::filesystem::path(INFER_SOURCE_DIR) / "tests/data/sparse";
  const Golden golden = load(folder, name);
  const RunResult result = run_model(*golden.model, golden.tokens, {{device.get()}});
  CHECK(largest_difference(golden, result, "positions") <= 1e-4);
}

TEST_CASE("every weight has the role given by its name") {
  const auto shared = test::shared_dir("every weight has the role given by its name");
  if (!shared) return;
  static const auto models = float_models(*shared / "goldens/arch");
  for (const ArchitectureEntry& entry : all_architectures()) {
    for (const std::string& name : models.at(std::string(entry.name))) {
      const auto model = load_model(GgufFile::open(*shared / "goldens/arch" / (name + ".gguf")));
      std::vector<int> layers = {kInputLayer, kOutputLayer};
      for (int l = 0; l < model->n_layer(); ++l) layers.push_back(l);
      for (const int l : layers) {
        for (const ModelWeight* weight : model->weights_of_layer(l)) {
          CAPTURE(name);
          CAPTURE(weight->name);
          const bool tied = l == kOutputLayer && weight->name == "token_embd.weight";
          CHECK(weight->role == (tied ? WeightRole::kOutput : role_by_name(weight->name)));
        }
      }
    }
  }
}

TEST_CASE("models of every type agree with their expansion to F32") {
  const auto shared = test::shared_dir("models of every type agree with their expansion to F32");
  if (!shared) return;
  const auto device = create_ref_device();
  for (const TypeTraits& type : all_types()) {
    std::string name = "quant-";
    for (const char c : type.name) name += static_cast<char>(std::tolower(c));
    if (!type.dot || !std::filesystem::exists(*shared / "goldens/arch" / (name + ".gguf"))) continue;
    SUBCASE(name.c_str()) {
      const Golden golden = load(*shared / "goldens/arch", name);
      const double difference =
          largest_difference(golden, run_model(*golden.model, golden.tokens, {{device.get()}}), "positions_f32");
      INFO(name, " differs by ", difference);
      CHECK(difference <= kTolerance);
    }
  }
}

TEST_CASE("a prompt in chunks gives the results of the whole prompt") {
  const auto device = create_ref_device();
  for (const char* name :
       {"tests/data/arch/llama-gqa", "tests/data/arch/qwen3moe", "tests/data/arch/gemma4", "tests/data/arch/glm-dsa",
        "tests/data/arch/minimax-m3", "tests/data/arch/deepseek4", "models/infer-demo-draft-f16"}) {
    CAPTURE(name);
    const Golden golden = load_own(name);
    const RunResult whole = run_model(*golden.model, golden.tokens, {{device.get()}});
    const int chunks[] = {7, 1, 40};
    const RunResult pieces = run_model(*golden.model, golden.tokens, {{device.get()}}, chunks);
    double largest = 0;
    for (size_t i = 0; i < whole.logits.size(); ++i) {
      const double difference = std::abs(whole.logits[i] - pieces.logits[i]);
      if (!(difference <= largest)) largest = difference;
    }
    CHECK(largest <= 1e-5);
  }
}

TEST_CASE("layers split between two devices give the results of one") {
  const auto first = create_ref_device(), second = create_ref_device();
  // In gemma4, layer 3 reads the keys and values of layer 1.
  for (const char* name : {"tests/data/arch/qwen2-tied", "tests/data/arch/qwen3moe", "tests/data/arch/gemma4",
                           "models/infer-demo-draft-q8_0"}) {
    CAPTURE(name);
    const Golden golden = load_own(name);
    const RunResult one = run_model(*golden.model, golden.tokens, {{first.get()}});
    CHECK(one.n_copies == 0);
    // The embedding stays on the first device, and so does the second layer, so that values cross back and forth.
    const auto place = [](int layer) { return layer == kInputLayer || layer == 1 ? 0 : 1; };
    const RunResult split = run_model(*golden.model, golden.tokens, {{first.get(), second.get()}, place});
    // The embedding and the rope table cross; with a second layer also the residual, back, and the last rows.
    CHECK(split.n_copies >= (golden.model->n_layer() > 1 ? 4 : 2));
    CHECK(split.logits == one.logits);
    CHECK(split.hidden == one.hidden);
  }
}

TEST_CASE("a layer without heads and without a state caches nothing") {
  const Golden golden = load_own("tests/data/arch/nemotron_h");
  int n_without = 0;
  for (int l = 0; l < golden.model->n_layer(); ++l) {
    const LayerConfig& layer = golden.model->config().layers[l];
    const bool caches = layer.n_kv_head > 0 || layer.state_values > 0;
    CHECK(golden.model->caches(l, {}).empty() == !caches);
    n_without += !caches;
  }
  CHECK(n_without > 0);
}

TEST_CASE("observers see the named values of every layer") {
  const auto device = create_ref_device();
  const Golden golden = load_own("tests/data/arch/qwen3moe");
  const Model& model = *golden.model;
  std::vector<std::string> names = {"embedding", "result_norm", "logits"};
  for (int l = 0; l < model.n_layer(); ++l) {
    for (const char* part : {"attn_norm", "attn_heads", "attn_out", "ffn_norm", "ffn_out", "out"}) {
      names.push_back("blk." + std::to_string(l) + "." + part);
    }
  }
  std::map<std::string, int64_t> seen;
  test::RunSetup setup{{device.get()}};
  std::vector<float> logits;
  for (const std::string& name : names) {
    setup.observers.push_back({name, [&, name](const TensorDesc&, const float* data, int64_t rows, const StepView&) {
                                 seen[name] += rows;
                                 if (name == "logits") logits.assign(data, data + rows * model.n_vocab());
                               }});
  }
  const RunResult result = run_model(model, golden.tokens, setup);
  for (const std::string& name : names) {
    CAPTURE(name);
    CHECK(seen[name] == static_cast<int64_t>(golden.tokens.size()));
  }
  CHECK(logits == result.logits);
}
