// What load_model accepts and refuses, and what a Model reports about itself.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "ggml-like/error.h"
#include "ggml-like/ref/ref_device.h"
#include "src/model/arch/architecture.h"
#include "tests/unit/model/run_model.h"
#include "tests/unit/model/tiny_model.h"

using namespace infer;
using infer::test::run_model;
using infer::test::TinyModel;

namespace {

GgufValue real(float value) { return GgufValue::of_float32(value); }

const std::vector<int32_t> kTokens = {1, 3, 5, 4, 11, 0, 7};

std::unique_ptr<Model> load(const TinyModel& tiny) { return load_model(tiny.file()); }

std::vector<float> logits(const TinyModel& tiny) {
  const auto device = create_ref_device();
  return run_model(*load(tiny), kTokens, {{device.get()}}).logits;
}

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(a[i] - b[i]);
    if (!(difference <= largest)) largest = difference;
  }
  return largest;
}

void check_refused(const TinyModel& tiny, ErrorCode code, const std::string& message) {
  try {
    load_model(tiny.file());
    FAIL_CHECK("loaded, expected: " << message);
  } catch (const Error& error) {
    CHECK(std::string(error.what()) == message);
    CHECK(error.code() == code);
  }
}

void check_refused(const std::string& key, GgufValue value, ErrorCode code, const std::string& message) {
  TinyModel tiny;
  tiny.set(key, std::move(value));
  check_refused(tiny, code, message);
}

// The tiny model with four experts in place of the dense feed-forward network.
TinyModel tiny_mixtral() {
  TinyModel tiny;
  tiny.set("llama.expert_count", test::int64_value(4));
  tiny.set("llama.expert_used_count", test::int64_value(2));
  for (const std::string block : {"blk.0.", "blk.1."}) {
    for (const char* part : {"gate", "up", "down"}) tiny.remove(block + "ffn_" + part + ".weight");
    tiny.add(block + "ffn_gate_inp.weight", {4, 16});
    tiny.add(block + "ffn_gate_exps.weight", {4, 24, 16});
    tiny.add(block + "ffn_up_exps.weight", {4, 24, 16});
    tiny.add(block + "ffn_down_exps.weight", {4, 16, 24});
  }
  return tiny;
}

}  // namespace

TEST_CASE("a model describes itself") {
  TinyModel tiny;
  tiny.set("tokenizer.chat_template", GgufValue::of_string("{{ messages }}"));
  const auto model = load(tiny);
  CHECK(model->architecture() == "llama");
  CHECK(model->name() == "tiny");
  CHECK(model->context_length() == 64);
  CHECK(model->n_layer() == 2);
  CHECK(model->n_embd() == 16);
  CHECK(model->n_vocab() == 12);
  CHECK(model->vocabulary().tokens[3].text == "a");
  CHECK(model->chat_template() == "{{ messages }}");
  const int64_t n = 2 * 12 * 16 + 16 + 2 * (2 * 16 + 2 * 16 * 16 + 2 * 8 * 16 + 3 * 24 * 16);
  CHECK(model->parameter_count() == n);
  CHECK(model->weight_bytes() == 4 * static_cast<uint64_t>(n));
  REQUIRE(model->cache_groups().size() == 1);
  CHECK(model->cache_groups()[0].kind == CacheKind::kFull);
  CHECK(model->cache_groups()[0].layers == std::vector<int32_t>{0, 1});
  const CacheDesc cache = model->cache_desc(1, {DataType::kF32, DataType::kQ8_0});
  CHECK(cache.layer == 1);
  CHECK(cache.group == 0);
  CHECK(cache.n_kv_head == 2);
  CHECK(cache.key_dim == 4);
  CHECK(cache.value_dim == 4);
  CHECK(cache.key_type == DataType::kF32);
  CHECK(cache.value_type == DataType::kQ8_0);
  CHECK(model->weights_of_layer(kInputLayer).size() == 1);
  CHECK(model->weights_of_layer(0).size() == 9);
  CHECK(model->weights_of_layer(1).size() == 9);
  CHECK(model->weights_of_layer(2).empty());
  CHECK(model->weights_of_layer(kOutputLayer).size() == 2);
}

TEST_CASE("a tied head is a weight of its own with the same data, counted once") {
  TinyModel tiny;
  const int64_t before = load(tiny)->parameter_count();
  tiny.remove("output.weight");
  const auto model = load(tiny);
  CHECK(model->parameter_count() == before - 12 * 16);
  const Weight* embedding = model->weights_of_layer(kInputLayer)[0];
  const Weight* head = model->weights_of_layer(kOutputLayer)[1];
  CHECK(head != embedding);
  CHECK(head->host == embedding->host);
}

TEST_CASE("a file opened without data loads for planning") {
  GgufOpenOptions options;
  options.map_data = false;
  TinyModel tiny;
  tiny.tensor("output_norm.weight").type = DataType::kF16;
  const auto model = load_model(tiny.file(options));
  Graph graph(8, 1);
  model->build(graph, {});
  CHECK(graph.nodes().size() > 20);
  CHECK(model->weights_of_layer(kOutputLayer)[0]->host == nullptr);
}

TEST_CASE("cache types that do not fit the heads are refused") {
  const auto model = load(TinyModel());
  try {
    model->check_cache_types({DataType::kF16, DataType::kQ8_0});
    FAIL_CHECK("accepted");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kInvalidArgument);
    CHECK(std::string(error.what()) ==
          "[model] cache type of values: expected one that stores heads of 4, found Q8_0 with blocks of 32");
  }
}

TEST_CASE("the list of architectures is complete and in order") {
  std::vector<std::string> names;
  for (const ArchitectureEntry& entry : all_architectures()) {
    names.emplace_back(entry.name);
    CHECK_MESSAGE(!entry.models.empty(), entry.name);
    CHECK(entry.create() != nullptr);
  }
  CHECK(std::is_sorted(names.begin(), names.end()));
  CHECK(std::adjacent_find(names.begin(), names.end()) == names.end());
}

TEST_CASE("architectures that are not implemented are refused") {
  check_refused("general.architecture", GgufValue::of_string("gp\x01tneo"), ErrorCode::kUnsupported,
                "[model] general.architecture: \"gp\\x01tneo\" is not implemented (similar: gptneox; all names: infer "
                "inspect --architectures)");
  check_refused("general.architecture", GgufValue::of_string(""), ErrorCode::kUnsupported,
                "[model] general.architecture: \"\" is not implemented (all names: infer inspect --architectures)");
  TinyModel tiny;
  tiny.erase("general.architecture");
  check_refused(tiny, ErrorCode::kInvalidFile,
                "[model] key general.architecture: expected the name of an architecture, found none");
}

TEST_CASE("keys that are not implemented are refused") {
  const auto unsupported = ErrorCode::kUnsupported;
  check_refused("llama.foo.bar", test::int64_value(3), unsupported,
                "[model] key llama.foo.bar = 3 is not supported and may change the result");
  check_refused("llama.attention.scale", real(0.5f), unsupported,
                "[model] key llama.attention.scale = 0.5 is not supported and may change the result");
  check_refused("llama.logit_scale", real(2), unsupported,
                "[model] key llama.logit_scale = 2 is not supported and may change the result");
  check_refused("llama.attention.causal", GgufValue::of_bool(false), unsupported,
                "[model] key llama.attention.causal = false is not supported and changes the result");
  check_refused("llama.attention.sliding_window", test::int64_value(63), unsupported,
                "[model] key llama.attention.sliding_window = 63 is not supported and changes the result");
  check_refused("llama.rope.scaling.type", GgufValue::of_string("dynamic"), unsupported,
                "[model] key llama.rope.scaling.type = \"dynamic\" is not supported "
                "(none, linear, longrope and yarn are)");
  check_refused("llama.rope.scaling.yarn_log_multiplier", real(0.1f), unsupported,
                "[model] key llama.rope.scaling.yarn_log_multiplier = 0.1 is not supported and may change the result");
  check_refused("llama.expert_gating_func", test::int64_value(2), unsupported,
                "[model] key llama.expert_gating_func = 2 is not supported and changes the result");
}

TEST_CASE("keys without effect are accepted") {
  TinyModel tiny;
  const std::vector<float> before = logits(tiny);
  tiny.set("llama.vocab_size", test::int64_value(32000));
  tiny.set("llama.rope.scaling.finetuned", GgufValue::of_bool(true));
  tiny.set("llama.rope.scaling.original_context_length", test::int64_value(32));  // used by YaRN only
  tiny.set("llama.attention.causal", GgufValue::of_bool(true));
  tiny.set("llama.attention.sliding_window", test::int64_value(64));  // the whole context
  tiny.set("llama.attention.key_length", test::int64_value(4));
  tiny.set("llama.attention.value_length", test::int64_value(4));
  tiny.set("llama.expert_count", test::int64_value(0));
  tiny.set("llamas.foo", test::int64_value(1));  // of another architecture
  tiny.add("blk.1.attn_rot_embd.weight", {2});
  CHECK(logits(tiny) == before);
}

TEST_CASE("numbers out of range are refused") {
  const auto invalid = ErrorCode::kInvalidFile;
  check_refused("llama.attention.head_count", test::int64_value(0), invalid,
                "[model] key llama.attention.head_count: expected 1 to 16384, found 0");
  check_refused("llama.attention.head_count_kv", test::int64_value(3), invalid,
                "[model] key llama.attention.head_count: expected a multiple of the 3 key and value heads, found 4");
  check_refused("llama.attention.head_count", test::int64_value(3), invalid,
                "[model] key llama.attention.head_count: expected a multiple of the 2 key and value heads, found 3");
  check_refused("llama.block_count", test::int64_value(0), invalid,
                "[model] key llama.block_count: expected 1 to 4096, found 0");
  check_refused("llama.block_count", test::int64_value(1 << 30), invalid,
                "[model] key llama.block_count: expected 1 to 4096, found 1073741824");
  check_refused("llama.embedding_length", test::int64_value(-1), invalid,
                "[model] key llama.embedding_length: expected 1 to 4194304, found -1");
  check_refused("llama.embedding_length", test::int64_value(int64_t{1} << 62), invalid,
                "[model] key llama.embedding_length: expected 1 to 4194304, found 4611686018427387904");
  check_refused("llama.rope.dimension_count", test::int64_value(3), invalid,
                "[model] key llama.rope.dimension_count: expected an even number, found 3");
  check_refused("llama.rope.dimension_count", test::int64_value(6), invalid,
                "[model] key llama.rope.dimension_count: expected 2 to 4, found 6");
  check_refused("llama.attention.layer_norm_rms_epsilon", real(0), invalid,
                "[model] key llama.attention.layer_norm_rms_epsilon: expected 1e-20 to 1, found 0");
  check_refused("llama.attention.layer_norm_rms_epsilon", real(std::numeric_limits<float>::quiet_NaN()), invalid,
                "[model] key llama.attention.layer_norm_rms_epsilon: expected 1e-20 to 1, found nan");
  check_refused("llama.rope.freq_base", real(std::numeric_limits<float>::infinity()), invalid,
                "[model] key llama.rope.freq_base: expected 1.001 to 1e+15, found inf");
  check_refused("llama.rope.scaling.factor", real(1e-9f), invalid,
                "[model] key llama.rope.scaling.factor: expected 0 or 0.001 to 1e6, found 1e-09");
  check_refused("llama.feed_forward_length", GgufValue::of_ints(GgufType::kUint32, {24, 24, 24}), invalid,
                "[model] key llama.feed_forward_length: expected one number, or one for each of 2 layers, found 3");
  TinyModel tiny = tiny_mixtral();
  tiny.set("llama.expert_used_count", test::int64_value(5));
  check_refused(tiny, invalid, "[model] key llama.expert_used_count: expected 1 to 4, found 5");
  tiny.set("llama.expert_used_count", test::int64_value(0));
  check_refused(tiny, invalid, "[model] key llama.expert_used_count: expected 1 to 4, found 0");
}

TEST_CASE("required keys that are missing are named") {
  for (const char* key :
       {"llama.context_length", "llama.embedding_length", "llama.block_count", "llama.feed_forward_length",
        "llama.attention.head_count", "llama.attention.layer_norm_rms_epsilon"}) {
    TinyModel tiny;
    tiny.erase(key);
    check_refused(tiny, ErrorCode::kInvalidFile, std::string("[model] key ") + key + ": expected a number, found none");
  }
  // A head size that cannot be derived has to be given.
  TinyModel tiny;
  tiny.set("llama.attention.head_count", test::int64_value(6));
  check_refused(tiny, ErrorCode::kInvalidFile, "[model] key llama.attention.key_length: expected a number, found none");
}

TEST_CASE("tensors that do not fit are refused") {
  TinyModel missing;
  missing.remove("blk.1.ffn_up.weight");
  check_refused(missing, ErrorCode::kInvalidFile, "[model] tensor blk.1.ffn_up.weight: expected [24, 16], found none");

  TinyModel shape;
  shape.remove("blk.0.attn_k.weight");
  shape.add("blk.0.attn_k.weight", {16, 16});
  check_refused(shape, ErrorCode::kInvalidFile, "[model] tensor blk.0.attn_k.weight: expected [8, 16], found [16, 16]");

  TinyModel turned;
  turned.tensor("blk.0.ffn_down.weight").shape = {24, 16};
  check_refused(turned, ErrorCode::kInvalidFile,
                "[model] tensor blk.0.ffn_down.weight: expected [16, 24], found [24, 16]");

  TinyModel unused;
  unused.add("blk.2.attn_norm.weight", {16});
  check_refused(unused, ErrorCode::kUnsupported,
                "[model] tensor blk.2.attn_norm.weight [16] is not used by this architecture");

  TinyModel norm;
  norm.add("blk.0.attn_q_norm.weight", {4});
  check_refused(norm, ErrorCode::kUnsupported,
                "[model] tensor blk.0.attn_q_norm.weight [4] is not used by this architecture");

  TinyModel vocabulary;
  vocabulary.remove("token_embd.weight");
  vocabulary.add("token_embd.weight", {13, 16});
  check_refused(vocabulary, ErrorCode::kInvalidFile,
                "[model] tensor token_embd.weight: expected a row for each of the 12 tokens, found [13, 16]");

  TinyModel no_embedding;
  no_embedding.remove("token_embd.weight");
  check_refused(no_embedding, ErrorCode::kInvalidFile,
                "[model] tensor token_embd.weight: expected the embedding, found none");

  TinyModel old = tiny_mixtral();
  old.remove("blk.0.ffn_gate_exps.weight");
  old.add("blk.0.ffn_gate.0.weight", {24, 16});
  check_refused(
      old, ErrorCode::kUnsupported,
      "[model] tensor blk.0.ffn_gate.0.weight: expected one tensor blk.0.ffn_gate_exps.weight for all experts, "
      "found the old format with one tensor per expert; convert the model again");
}

// Sets every number of the file to every absurd value: the result is an Error, or a model whose graph can be built.
TEST_CASE("absurd metadata gives an error or a model whose graph can be built") {
  const std::vector<GgufValue> absurd = {test::int64_value(0),
                                         test::int64_value(1),
                                         test::int64_value(-1),
                                         test::int64_value(2),
                                         test::int64_value(3),
                                         test::int64_value(INT32_MAX),
                                         test::int64_value(INT64_MAX),
                                         test::int64_value(INT64_MIN),
                                         real(0),
                                         real(-1),
                                         real(1e38f),
                                         real(1e-38f),
                                         real(std::numeric_limits<float>::quiet_NaN()),
                                         GgufValue::of_bool(true),
                                         GgufValue::of_string("x"),
                                         GgufValue::of_ints(GgufType::kInt32, {4, -4}),
                                         GgufValue::of_ints(GgufType::kInt32, {}),
                                         GgufValue::of_strings({"a", "b"})};
  std::vector<std::string> keys = {"llama.rope.scaling.factor",
                                   "llama.rope.scaling.type",
                                   "llama.expert_used_count",
                                   "llama.expert_count",
                                   "llama.rope.scaling.yarn_beta_fast",
                                   "llama.attention.key_length",
                                   "llama.rope.scaling.original_context_length",
                                   "llama.expert_group_count"};
  for (const auto& [key, value] : TinyModel().metadata) keys.push_back(key);
  int loaded = 0, refused = 0;
  for (const bool with_experts : {false, true}) {
    for (const std::string& key : keys) {
      for (const GgufValue& value : absurd) {
        TinyModel tiny = with_experts ? tiny_mixtral() : TinyModel();
        tiny.set(key, value);
        try {
          const auto model = load_model(tiny.file());
          Graph graph(4, 2);
          model->build(graph, {});
          ++loaded;
        } catch (const Error&) {
          ++refused;
        }
      }
    }
  }
  CHECK(loaded > 50);
  CHECK(refused > 400);
}

TEST_CASE("an array of equal numbers means the same as one number") {
  TinyModel tiny;
  const std::vector<float> before = logits(tiny);
  tiny.set("llama.attention.head_count", GgufValue::of_ints(GgufType::kUint32, {4, 4}));
  tiny.set("llama.attention.head_count_kv", GgufValue::of_ints(GgufType::kInt32, {2, 2}));
  tiny.set("llama.feed_forward_length", GgufValue::of_ints(GgufType::kUint64, {24, 24}));
  CHECK(logits(tiny) == before);
}

TEST_CASE("layers may differ in heads and width") {
  TinyModel tiny;
  const std::vector<float> before = logits(tiny);
  // The second layer gets more of both, which changes no result because the output weights of the new parts are zero.
  const auto widen = [&](const std::string& name, std::vector<int64_t> shape) {
    const TinyModel::Tensor old = tiny.tensor(name);
    tiny.remove(name);
    tiny.add(name, shape);
    TinyModel::Tensor& wide = tiny.tensor(name);
    const bool columns = shape[1] != old.shape[1];
    for (int64_t r = 0; r < shape[0]; ++r) {
      for (int64_t c = 0; c < shape[1]; ++c) {
        float& value = wide.values[r * shape[1] + c];
        if (r < old.shape[0] && c < old.shape[1]) value = old.values[r * old.shape[1] + c];
        else if (columns) value = 0;
      }
    }
  };
  tiny.set("llama.feed_forward_length", GgufValue::of_ints(GgufType::kUint32, {24, 40}));
  widen("blk.1.ffn_gate.weight", {40, 16});
  widen("blk.1.ffn_up.weight", {40, 16});
  widen("blk.1.ffn_down.weight", {16, 40});
  tiny.set("llama.attention.head_count", GgufValue::of_ints(GgufType::kUint32, {4, 6}));
  tiny.set("llama.attention.head_count_kv", GgufValue::of_ints(GgufType::kUint32, {2, 3}));
  widen("blk.1.attn_q.weight", {24, 16});
  widen("blk.1.attn_k.weight", {12, 16});
  widen("blk.1.attn_v.weight", {12, 16});
  widen("blk.1.attn_output.weight", {16, 24});
  CHECK(load(tiny)->cache_desc(1, {}).n_kv_head == 3);
  CHECK(largest_difference(logits(tiny), before) <= 1e-5);
}

TEST_CASE("vectors in half precision are widened") {
  TinyModel tiny;
  for (const char* name : {"output_norm.weight", "blk.0.ffn_norm.weight"}) {
    for (float& v : tiny.tensor(name).values) v = std::round(v * 64) / 64;  // exact in F16
  }
  const std::vector<float> before = logits(tiny);
  tiny.tensor("output_norm.weight").type = DataType::kF16;
  tiny.tensor("blk.0.ffn_norm.weight").type = DataType::kBF16;
  CHECK(logits(tiny) == before);
}

TEST_CASE("a head bias is added") {
  TinyModel tiny;
  const std::vector<float> before = logits(tiny);
  tiny.add("output.bias", {12});
  std::vector<float> expected = before;
  for (size_t i = 0; i < expected.size(); ++i) expected[i] += tiny.tensor("output.bias").values[i % 12];
  CHECK(largest_difference(logits(tiny), expected) <= 1e-5);
}

TEST_CASE("only the requested rows are computed, with the same values") {
  const auto device = create_ref_device();
  for (const bool with_experts : {false, true}) {
    CAPTURE(with_experts);
    const auto model = load(with_experts ? tiny_mixtral() : TinyModel());
    const auto n_vocab = static_cast<size_t>(model->n_vocab());
    const test::RunResult all = run_model(*model, kTokens, {{device.get()}});
    test::RunSetup setup{{device.get()}};
    setup.is_output = [](int position) { return position == 4 || position == 6; };
    const int chunks[] = {4, 3};  // none in the first
    const test::RunResult some = run_model(*model, kTokens, setup, chunks);
    std::vector<float> expected;
    for (const size_t row : {4, 6}) {
      expected.insert(expected.end(), all.logits.begin() + row * n_vocab, all.logits.begin() + (row + 1) * n_vocab);
    }
    CHECK(largest_difference(some.logits, expected) <= 1e-6);
    CHECK(some.hidden.size() == 2 * static_cast<size_t>(model->n_embd()));
  }
}

TEST_CASE("position scaling: old key, type none, magnitude of short contexts") {
  TinyModel tiny;
  tiny.set("llama.rope.scale_linear", real(4));
  CHECK(load(tiny)->config().rope.freq_scale == 0.25f);
  tiny.set("llama.rope.scaling.factor", real(2));
  CHECK(load(tiny)->config().rope.freq_scale == 0.5f);
  tiny.set("llama.rope.scaling.type", GgufValue::of_string("yarn"));
  CHECK(load(tiny)->config().rope.ext_factor == 1);
  CHECK(load(tiny)->config().rope.attn_factor == 1);
  CHECK(load(tiny)->config().rope.original_context == 64);
  tiny.set("llama.rope.scaling.factor", real(0.5f));
  const RopeTableParams rope = load(tiny)->config().rope;
  CHECK(rope.attn_factor * (1 + 0.1 * std::log(1 / rope.freq_scale)) == doctest::Approx(1));
  tiny.set("llama.rope.scaling.type", GgufValue::of_string("none"));
  CHECK(load(tiny)->config().rope.freq_scale == 1);
  CHECK(load(tiny)->config().rope.ext_factor == 0);
}
