// DRY breakers are built once per list.
#include "src/text/dry_breaker_cache.h"

#include <doctest/doctest.h>

#include <thread>

using namespace infer;

namespace {

Tokenizer small_tokenizer() {
  Vocabulary v;
  v.model = TokenizerModel::kSentencePiece;
  v.tokens = {{"<unk>", 0, TokenType::kUnknown}, {"a", 0}, {"b", 0}, {":", 0}, {"a:", 0}, {"*", 0}};
  v.unk = 0;
  return Tokenizer(std::move(v));
}

std::vector<std::string> list(int i) { return {std::string(static_cast<size_t>(i) + 1, 'a')}; }

}  // namespace

TEST_CASE("breakers are built once per list") {
  const Tokenizer tokenizer = small_tokenizer();
  DryBreakerCache cache(tokenizer);
  const auto colon = cache.get({":"});
  CHECK(colon->is_single_token(3));
  CHECK(colon->is_single_token(4));
  CHECK_FALSE(colon->is_single_token(1));
  CHECK(cache.get({":"}) == colon);
  CHECK(cache.get({"*"}) != colon);
  CHECK(cache.builds() == 2);
}

TEST_CASE("lists requested by many threads at once are built once each") {
  const Tokenizer tokenizer = small_tokenizer();
  DryBreakerCache cache(tokenizer);
  std::vector<std::thread> threads;
  for (int i = 0; i < 12; ++i) {
    threads.emplace_back([&, i] {
      for (int k = 0; k < 200; ++k) cache.get(list((i + k) % 4));
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(cache.builds() == 4);
}

TEST_CASE("the lists least recently used are dropped, the default one is not") {
  const Tokenizer tokenizer = small_tokenizer();
  DryBreakerCache cache(tokenizer);
  const std::vector<std::string> standard = SamplingParams().dry_sequence_breakers;
  cache.get(standard);
  const int kept = static_cast<int>(DryBreakerCache::kKept);
  for (int i = 0; i < 3 * kept; ++i) {
    cache.get(list(i));
    cache.get(list(0));  // stays in use
  }
  CHECK(cache.builds() == 1 + 3 * kept);
  cache.get(standard);
  cache.get(list(0));
  for (int i = 2 * kept + 1; i < 3 * kept; ++i) cache.get(list(i));
  CHECK(cache.builds() == 1 + 3 * kept);
  cache.get(list(1));
  CHECK(cache.builds() == 2 + 3 * kept);
}
