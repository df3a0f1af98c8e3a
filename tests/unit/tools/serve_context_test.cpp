// The context that a server chooses if its flags do not set one.
#include "tools/serve/serve_context.h"

#include <doctest/doctest.h>

#include "tools/plan/shape_file.h"

namespace infer {
namespace {

std::shared_ptr<Model> shape(const char* name) { return load_model(open_shape(name, "Q4_0", RandomWeights::kEmpty)); }

EngineOptions server(int parallel) {
  EngineOptions options;
  options.max_sequences = parallel;
  options.embeddings = true;
  return options;
}

TEST_CASE("serve context: what the model was trained with, if it fits in memory") {
  const std::shared_ptr<Model> model = shape("tiny");  // 8192, more than other commands use
  const ServeContext many = choose_serve_context(model, server(8));
  CHECK(many.context == 8192);
  CHECK(many.cache_tokens == 4 * 8192);
  CHECK(many.limit == "training");
  CHECK(choose_serve_context(model, server(2)).cache_tokens == 2 * 8192);
}

TEST_CASE("serve context: flags come first") {
  const std::shared_ptr<Model> model = shape("tiny");
  EngineOptions options = server(8);
  options.context = 100;
  const ServeContext asked = choose_serve_context(model, options);
  CHECK(asked.context == 100);
  CHECK(asked.cache_tokens == 4 * 128);
  CHECK(asked.limit == "-c");
  options.cache_tokens = 3000;
  CHECK(choose_serve_context(model, options).cache_tokens == 3000);
  options.context = 0;
  const ServeContext small = choose_serve_context(model, options);
  CHECK(small.context == 3000);
  CHECK(small.limit == "--kv-tokens");
  options.cache_tokens = 1 << 20;
  CHECK(choose_serve_context(model, options).context == 8192);
}

TEST_CASE("serve context: the largest that leaves memory free") {
  const std::shared_ptr<Model> model = shape("llama-3.1-8b");
  EngineOptions options = server(512);
  options.key_type = options.value_type = DataType::kF32;  // 64 GiB of cache for four contexts
  const ServeContext chosen = choose_serve_context(model, options);
  const auto needed = [&](int64_t tokens) {
    options.context = std::min<int64_t>(tokens, 131072);
    options.cache_tokens = tokens;
    return plan_memory(model, options).front();
  };
  const DeviceUse use = needed(chosen.cache_tokens), more = needed(chosen.cache_tokens + kBlockTokens);
  CHECK(chosen.context == std::min<int64_t>(chosen.cache_tokens, 131072));
  CHECK(chosen.cache_tokens <= 4 * 131072);
  const bool smallest = chosen.context == kDefaultContext;
  CHECK((smallest || use.needed() <= usable_host_memory(use.memory.free) + (uint64_t{256} << 20)));
  // Free memory changes a little between two queries.
  const bool largest = chosen.cache_tokens == 4 * 131072;
  CHECK((largest || more.needed() + (uint64_t{256} << 20) > usable_host_memory(more.memory.free)));
  CHECK(usable_host_memory(1000) == 750);
}

}  // namespace
}  // namespace infer
