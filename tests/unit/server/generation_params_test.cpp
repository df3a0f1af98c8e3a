// The members of a request that control generation, in every form that clients send.
#include "src/server/generation_params.h"

#include "src/text/sampler_chain.h"

#include <doctest/doctest.h>

#include <cmath>

namespace infer {
namespace {

RequestContext byte_context() {
  RequestContext context;
  context.sampling.temperature = 0.5f;
  context.n_vocab = 100;
  // One token per byte: the byte modulo 100.
  context.tokenize = [](std::string_view text) {
    std::vector<TokenId> tokens;
    for (const char c : text) tokens.push_back(static_cast<unsigned char>(c) % 100);
    return tokens;
  };
  return context;
}

GenerationParams read(const char* text, int64_t least_tokens = 1) {
  const Json body = parse_json_object(text, {.depth = 64});
  return read_generation(JsonFields(body), byte_context(), least_tokens);
}

// The member for which a request is refused, or "".
std::string refused(const char* text) {
  try {
    read(text);
    return "";
  } catch (const ApiError& error) {
    CHECK(error.status() == 400);
    return error.param();
  }
}

using Bias = std::vector<std::pair<TokenId, float>>;
constexpr float kNever = -INFINITY;

TEST_CASE("generation: an answer without a limit may fill the context") {
  CHECK(read("{}").max_tokens == -1);
  CHECK(read(R"({"max_tokens": -1})").max_tokens == -1);
  CHECK(read(R"({"max_completion_tokens": 5})").max_tokens == 5);
  CHECK(read(R"({"n_predict": 7})").max_tokens == 7);
  CHECK(read(R"({"max_tokens": 3, "n_predict": -1})").max_tokens == -1);
  CHECK(read(R"({"max_tokens": 0})", 0).max_tokens == 0);
  CHECK(refused(R"({"max_tokens": 0})") == "max_tokens");
  CHECK(refused(R"({"n_predict": -2})") == "n_predict");
}

TEST_CASE("generation: whole numbers may be written as 3.0") {
  const GenerationParams g =
      read(R"({"max_tokens": 3.0, "n": 1.0, "top_k": 40.0, "seed": 5.0, "priority": -2.0, "stop_token_ids": [4.0],
               "logit_bias": [[5.0, 1]]})");
  CHECK(g.max_tokens == 3);
  CHECK(g.n == 1);
  CHECK(g.sampling.top_k == 40);
  CHECK(g.sampling.seed == 5u);
  CHECK(g.priority == -2);
  CHECK(g.stop_tokens == std::vector<TokenId>{4});
  CHECK(g.sampling.logit_bias == Bias{{5, 1.0f}});
  CHECK(!read(R"({"seed": -1.0})").sampling.seed);
  CHECK(refused(R"({"max_tokens": 3.5})") == "max_tokens");
  CHECK(refused(R"({"max_tokens": 1e300})") == "max_tokens");
  CHECK(refused(R"({"seed": 1e19})") == "seed");
}

TEST_CASE("generation: biases of tokens in all their forms") {
  const auto bias = [](const char* text) { return read(text).sampling.logit_bias; };
  CHECK(bias(R"({"logit_bias": {"5": -100, "99": 2.5}})") == Bias{{5, -100.0f}, {99, 2.5f}});
  CHECK(bias(R"({"logit_bias": [[5, -100], [99, false]]})") == Bias{{5, -100.0f}, {99, kNever}});
  CHECK(bias(R"({"logit_bias": {"5": false}})") == Bias{{5, kNever}});
  CHECK(bias(R"({"logit_bias": [["AB", -0.5], ["7", 1]]})") == Bias{{65, -0.5f}, {66, -0.5f}, {55, 1.0f}});
  CHECK(bias(R"({"logit_bias": {" 7": 1}})") == Bias{{32, 1.0f}, {55, 1.0f}});
  CHECK(bias(R"({"logit_bias": []})").empty());
  for (const char* wrong : {R"({"logit_bias": {"100": 1}})", R"({"logit_bias": {"-1": 1}})",
                            R"({"logit_bias": {"99999999999999999999": 1}})", R"({"logit_bias": {"1": true}})",
                            R"({"logit_bias": {"1": 101}})", R"({"logit_bias": {"": 1}})", R"({"logit_bias": [[1]]})",
                            R"({"logit_bias": [1]})", R"({"logit_bias": [[1.5, 1]]})", R"({"logit_bias": [[null, 1]]})",
                            R"({"logit_bias": "5"})"}) {
    CAPTURE(wrong);
    CHECK(refused(wrong) == "logit_bias");
  }
  const std::string long_text = R"({"logit_bias": [[")" + std::string(300, 'x') + R"(", 1]]})";
  CHECK(refused(long_text.c_str()) == "logit_bias");
  std::string many;  // 300 texts of 4 tokens are 1200 biases
  for (int i = 0; i < 300; ++i) many += R"(["abcd", 1],)";
  many = R"({"logit_bias": [)" + many + R"([1, 1]]})";
  CHECK(refused(many.c_str()) == "logit_bias");
}

TEST_CASE("generation: the named samplers apply in their order, others are off") {
  const char* all = R"({"samplers": ["penalties", "dry", "top_n_sigma", "top_k", "typ_p", "top_p", "min_p", "xtc",
      "temperature"], "top_k": 7, "temperature": 2, "top_p": 0.3, "dry_multiplier": 1, "xtc_probability": 1})";
  const SamplingParams whole = with_stages_off(read(all).sampling);
  CHECK(!whole.chain);
  CHECK(whole.top_k == 7);
  CHECK(whole.temperature == 2);
  CHECK(whole.dry_multiplier == 1);
  CHECK(whole.repeat_last_n == 64);
  const SamplingParams some =
      with_stages_off(read(R"({"samplers": ["top_k", "min_p"], "top_k": 7, "temperature": 2, "top_p": 0.3,
      "min_p": 0.2, "dynatemp_range": 0.5, "top_n_sigma": 1, "typical_p": 0.5, "dry_multiplier": 1,
      "xtc_probability": 1, "repeat_penalty": 2})")
                          .sampling);
  CHECK(some.top_k == 7);
  CHECK(some.min_p == 0.2f);
  CHECK(some.temperature == 1);
  CHECK(some.dynatemp_range == 0);
  CHECK(some.top_p == 1);
  CHECK(some.typical_p == 1);
  CHECK(some.top_n_sigma <= 0);
  CHECK(some.dry_multiplier == 0);
  CHECK(some.xtc_probability == 0);
  CHECK(!some.has_penalties());
  const SamplingParams letters = with_stages_off(read(R"({"samplers": "edskypmxt", "top_k": 7})").sampling);
  CHECK(letters.top_k == 7);
  CHECK(letters.temperature == 0.5f);
  CHECK(with_stages_off(read(R"({"samplers": "kt"})").sampling).top_p == 1);
  using Stage = SamplerStage;
  for (const char* reversed : {R"({"samplers": ["temperature", "top_k"]})", R"({"samplers": "tk"})"}) {
    const SamplingParams params = with_stages_off(read(reversed).sampling);
    CHECK(params.chain == std::vector<Stage>{Stage::kTemperature, Stage::kTopK});
    CHECK(params.top_p == 1);
  }
  for (const char* wrong :
       {R"({"samplers": ["infill"]})", R"({"samplers": "kz"})", R"({"samplers": [5]})", R"({"samplers": 5})"}) {
    CAPTURE(wrong);
    CHECK(refused(wrong) == "samplers");
  }
}

TEST_CASE("generation: names that other servers use") {
  const GenerationParams g = read(R"({"n_cmpl": 2, "cache_prompt": false, "stop_token_ids": [3, 9],
      "dry_sequence_breakers": ["\n", "."]})");
  CHECK(g.n == 2);
  CHECK(!g.reuse_prefix);
  CHECK(g.stop_tokens == std::vector<TokenId>{3, 9});
  CHECK(g.sampling.dry_sequence_breakers == std::vector<std::string>{"\n", "."});
  CHECK(read("{}").reuse_prefix);
  CHECK(refused(R"({"stop_token_ids": [100]})") == "stop_token_ids");
  CHECK(refused(R"({"stop_token_ids": 5})") == "stop_token_ids");
  CHECK(refused(R"({"cache_prompt": "no"})") == "cache_prompt");
  CHECK(refused(R"({"dry_sequence_breakers": [1]})") == "dry_sequence_breakers");
  const std::string long_breaker = R"({"dry_sequence_breakers": [")" + std::string(41, 'x') + R"("]})";
  CHECK(refused(long_breaker.c_str()) == "dry_sequence_breakers");
}

TEST_CASE("generation: 128 stop strings") {
  std::string stops;
  for (int i = 0; i < 128; ++i) stops += (i ? ",\"" : "\"") + std::to_string(i) + "\"";
  const std::string most = R"({"stop": [)" + stops + "]}", more = R"({"stop": ["x",)" + stops + "]}";
  CHECK(read(most.c_str()).stop.size() == 128);
  CHECK(refused(more.c_str()) == "stop");
}

}  // namespace
}  // namespace infer
