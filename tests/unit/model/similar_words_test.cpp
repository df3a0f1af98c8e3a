#include "src/model/similar_words.h"

#include <doctest/doctest.h>

#include <string>

using namespace infer;

TEST_CASE("similar words are the nearest, at most five") {
  using Words = std::vector<std::string_view>;
  const Words known = {"gemma", "gemma2", "gemma3", "gemma3n", "gpt2", "llama", "llama4", "qwen3", "qwen3next"};
  CHECK(similar_words("gemma4", known) == Words{"gemma", "gemma2", "gemma3", "gemma3n"});
  CHECK(similar_words("lama4", known) == Words{"llama4", "llama"});
  CHECK(similar_words("gemma3", known).front() == "gemma3");
  CHECK(similar_words("gpt-oss", known).empty());
  CHECK(similar_words("", known).empty());
  CHECK(similar_words(std::string(100000, 'a'), known).empty());
  const Words many = {"a12345", "a12346", "a12347", "a12348", "a12349", "a12340"};
  CHECK(similar_words("a1234", many).size() == 5);
}
