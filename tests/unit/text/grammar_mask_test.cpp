// Masks: the tokens found by walking the trie are those that brute force finds, on real vocabularies and in many
// states.
#include <doctest/doctest.h>

#include <random>
#include <thread>

#include "ggml-like/gguf.h"
#include "src/model/vocabulary_loader.h"
#include "src/text/grammar/grammar_mask.h"
#include "tests/support/skip.h"
#include "tests/unit/text/grammar_support.h"

namespace infer {
namespace {

using grammar::GrammarMask;
using grammar::GrammarVocabulary;
using grammar::MaskCache;

std::shared_ptr<const GrammarVocabulary> load(const std::string& path) {
  GgufOpenOptions options;
  options.map_data = false;
  return GrammarVocabulary::of(Tokenizer(load_vocabulary(*GgufFile::open(path, options))));
}

std::shared_ptr<const GrammarVocabulary> demo() {
  static const auto vocabulary = load(INFER_SOURCE_DIR "/models/infer-demo-5m-q8_0.gguf");
  return vocabulary;
}

// A token for each byte, and one that ends.
std::shared_ptr<const GrammarVocabulary> bytes() {
  std::vector<std::string> texts;
  for (int byte = 0; byte < 256; ++byte) texts.emplace_back(1, static_cast<char>(byte));
  texts.emplace_back("");
  return std::make_shared<const GrammarVocabulary>(std::move(texts), std::vector<TokenId>{256});
}

bool has(AllowedTokens mask, TokenId token) { return mask[static_cast<size_t>(token) / 64] >> (token % 64) & 1; }

std::vector<TokenId> tokens_of(AllowedTokens mask, size_t n) {
  std::vector<TokenId> out;
  for (size_t token = 0; token < n; ++token) {
    if (has(mask, static_cast<TokenId>(token))) out.push_back(static_cast<TokenId>(token));
  }
  return out;
}

// The allowed tokens by trying each.
std::vector<TokenId> brute_force(const grammar::Grammar& grammar, const GrammarVocabulary& vocabulary,
                                 const grammar::MatchState& state) {
  std::vector<TokenId> out;
  for (TokenId token = 0; token < static_cast<TokenId>(vocabulary.n_tokens()); ++token) {
    const std::string_view text = vocabulary.text(token);
    const bool allowed =
        vocabulary.is_end(token) ? state.can_end() : !text.empty() && !grammar.after(state, text).is_dead();
    if (allowed) out.push_back(token);
  }
  return out;
}

const char* const kGrammars[] = {
    "root ::= \"(\" root \")\" | [a-z]+ | \"\\\"\" [^\"]* \"\\\"\"",
    "root ::= line (\"\\n\" line)*\nline ::= field (\",\" field)*\nfield ::= [^,\\n]{0,30}",
    "root ::= ([a-z]{2,9} \" \"){3,40} \".\"",
    "root ::= (\"a\" | \"aa\" | [ab]){5,50} \" \" root | \"end\"",
    "root ::= s\ns ::= \"[\" a \"]\" | \"[\" b \"]\" | [ \\n]+ s\na ::= s | s \",\" s | \"x\"\nb ::= s",
    "root ::= .{0,200}",
    "root ::= word (\" \" word)*\nword ::= \"the\" | \"The\" | [a-z] [a-z]{0,3} | [^a-z ]+",
};

const char* const kSchemas[] = {
    "{}",
    R"({"type": "object", "properties": {"name": {"type": "string", "maxLength": 30}, "n": {"type": "integer", "minimum": -3, "maximum": 200},
        "tags": {"type": "array", "items": {"enum": ["the", "then", "a"]}, "minItems": 1, "maxItems": 20}}, "required": ["name"]})",
    R"({"type": "array", "items": {"anyOf": [{"type": "string", "pattern": "^[A-Z][a-z ]*$"}, {"$ref": "#"}, {"type": "null"}]}})",
    R"({"type": "string", "format": "date-time"})",
};

// Follows random allowed tokens, and compares the mask with brute force on the way.
void compare(const std::shared_ptr<const grammar::Grammar>& grammar,
             const std::shared_ptr<const GrammarVocabulary>& vocabulary, int n_texts, int every) {
  const auto cache = std::make_shared<MaskCache>(grammar, vocabulary);
  std::mt19937 random(7);
  for (int text = 0; text < n_texts; ++text) {
    GrammarMask mask(cache);
    for (int i = 0; i < 60; ++i) {
      const std::vector<TokenId> allowed = tokens_of(mask.allowed(), vocabulary->n_tokens());
      REQUIRE(!allowed.empty());
      if (i % every == text % every) {
        REQUIRE(allowed == brute_force(*grammar, *vocabulary, mask.state()));
        std::vector<TokenId> one_by_one;
        for (TokenId t = 0; t < static_cast<TokenId>(vocabulary->n_tokens()); ++t) {
          if (mask.allows(t)) one_by_one.push_back(t);
        }
        REQUIRE(one_by_one == allowed);
      }
      const TokenId token = allowed[random() % allowed.size()];
      if (vocabulary->is_end(token)) break;
      mask.accept(token);
    }
  }
}

}  // namespace

TEST_CASE("mask: what the trie finds is what brute force finds") {
  for (const char* source : kGrammars) {
    CAPTURE(source);
    compare(grammar::parse_gbnf(source), demo(), 8, 2);
  }
  for (const char* schema : kSchemas) {
    CAPTURE(schema);
    compare(grammar::parse_json_schema(schema), demo(), 8, 2);
  }
}

TEST_CASE("mask: the same on a large vocabulary") {
  const auto shared = test::shared_dir("masks of a large vocabulary");
  if (!shared) return;
  const auto vocabulary = load((*shared / "goldens" / "tokenizer" / "vocab" / "llama-3.2.gguf").string());
  compare(grammar::parse_gbnf(kGrammars[1]), vocabulary, 2, 20);
  compare(grammar::parse_json_schema(kSchemas[1]), vocabulary, 2, 20);
}

TEST_CASE("mask: generation may end exactly where the grammar can") {
  const auto cache = std::make_shared<MaskCache>(grammar::parse_gbnf("root ::= \"a\" \"b\"?"), demo());
  const auto ends = [](GrammarMask& mask) {
    const AllowedTokens allowed = mask.allowed();
    REQUIRE(!demo()->end_tokens().empty());
    for (const TokenId token : demo()->end_tokens()) CHECK(has(allowed, token) == mask.can_end());
    return mask.can_end();
  };
  GrammarMask mask(cache);
  CHECK(!ends(mask));
  for (const TokenId token : tokens_of(mask.allowed(), demo()->n_tokens())) {
    GrammarMask next = mask;
    next.accept(token);
    CHECK(ends(next));
  }
}

TEST_CASE("mask: roll-back and copies") {
  const auto cache = std::make_shared<MaskCache>(grammar::parse_json_schema("{}"), demo());
  GrammarMask mask(cache);
  std::mt19937 random(3);
  std::vector<std::vector<TokenId>> seen;
  std::vector<TokenId> path;
  for (int i = 0; i < 40; ++i) {
    seen.push_back(tokens_of(mask.allowed(), demo()->n_tokens()));
    const TokenId token = seen.back()[random() % seen.back().size()];
    if (demo()->is_end(token)) break;
    path.push_back(token);
    mask.accept(token);
  }
  REQUIRE(path.size() > 2);
  const auto copy = mask.clone();
  for (size_t n = path.size(); n > 0; n = n / 2) {
    mask.rollback(static_cast<int64_t>(n - n / 2));
    CHECK(tokens_of(mask.allowed(), demo()->n_tokens()) == seen[n / 2]);
  }
  for (const TokenId token : path) mask.accept(token);
  CHECK(tokens_of(copy->allowed(), demo()->n_tokens()) == tokens_of(mask.allowed(), demo()->n_tokens()));
}

TEST_CASE("mask: tokens that the grammar names") {
  GrammarVocabulary vocabulary({"a", "b", "", "ab", ""}, {4});
  const auto shared = std::make_shared<const GrammarVocabulary>(vocabulary);
  GrammarMask named(std::make_shared<MaskCache>(grammar::parse_gbnf("root ::= \"a\" (<[2]> | !<[1]> \"b\")"), shared));
  CHECK(tokens_of(named.allowed(), 5) == std::vector<TokenId>{0});
  named.accept(0);
  CHECK(tokens_of(named.allowed(), 5) == std::vector<TokenId>{0, 2, 3});
  GrammarMask other = named;
  named.accept(2);  // both: the sentence may end, or "b" follows
  CHECK(tokens_of(named.allowed(), 5) == std::vector<TokenId>{1, 4});
  other.accept(3);
  CHECK(tokens_of(other.allowed(), 5) == std::vector<TokenId>{1});
}

TEST_CASE("mask: the text that must follow, with white space guessed") {
  const auto forced = [](const std::string& schema, const std::string& before, size_t limit = 100) {
    GrammarMask mask(std::make_shared<MaskCache>(grammar::parse_json_schema(schema), bytes()));
    for (const char c : before) mask.accept(static_cast<TokenId>(static_cast<uint8_t>(c)));
    const ForcedText text = mask.forced(limit);
    CHECK(text.token == kNoToken);
    return text.bytes;
  };
  const std::string schema =
      R"({"type": "object", "properties": {"name": {"type": "string"}, "born": {"const": "x"}}, "required": ["name", "born"]})";
  CHECK(forced(schema, "") == "{\"name\": \"");
  CHECK(forced(schema, "", 4) == "{\"na");
  CHECK(forced(schema, "{") == "\"name\": \"");
  CHECK(forced(schema, "{\"na") == "me\": \"");
  CHECK(forced(schema, "{\"name\":") == " \"");
  CHECK(forced(schema, "{\"name\": ") == "\"");
  CHECK(forced(schema, "{\"name\":\n") == "");  // indentation, or the string
  CHECK(forced(schema, "{\"name\": \"") == "");
  CHECK(forced(schema, "{\"name\": \"a\",") == " \"born\": \"x\"");
  CHECK(forced(R"({"type": "array", "items": {"type": "integer"}, "minItems": 1})", "") == "[");
  CHECK(forced(R"({"type": "object", "properties": {"n": {"type": "number"}}, "required": ["n"]})", "{") == "\"n\":");
}

TEST_CASE("mask: the token that must follow") {
  const auto vocabulary =
      std::make_shared<const GrammarVocabulary>(std::vector<std::string>{"a", "b", "", ""}, std::vector<TokenId>{3});
  GrammarMask mask(
      std::make_shared<MaskCache>(grammar::parse_gbnf("root ::= <[2]> \"ab\" (<[2]> | \"a\")"), vocabulary));
  CHECK(mask.forced(9).token == 2);
  CHECK(mask.forced(9).bytes == "ab");
  for (const TokenId token : {2, 0}) mask.accept(token);
  CHECK(mask.forced(9).token == kNoToken);
  CHECK(mask.forced(9).bytes == "b");
  mask.accept(1);
  CHECK(mask.forced(9).token == kNoToken);
  CHECK(mask.forced(9).bytes == "");
}

TEST_CASE("mask: long tokens that run through counted repetitions") {
  std::vector<std::string> texts;
  for (size_t n = 1; n <= 60; ++n) texts.push_back(test::repeated("x", n));
  texts.push_back("!");
  texts.push_back("");
  for (size_t n = 1; n <= 60; ++n) texts.push_back(test::repeated("x", n) + "!");
  const auto vocabulary = std::make_shared<const GrammarVocabulary>(texts, std::vector<TokenId>{61});
  const auto grammar = grammar::parse_gbnf("root ::= [x]{90,200} \"!\"");
  const auto cache = std::make_shared<MaskCache>(grammar, vocabulary);
  for (const int n_before : {0, 29, 30, 31, 40, 70, 75, 80, 89, 90, 130, 139, 140, 141, 150, 170, 199, 200}) {
    CAPTURE(n_before);
    GrammarMask mask(cache);
    for (int i = 0; i < n_before; ++i) mask.accept(0);
    CHECK(tokens_of(mask.allowed(), vocabulary->n_tokens()) == brute_force(*grammar, *vocabulary, mask.state()));
  }
}

TEST_CASE("mask: threads share a cache") {
  const auto cache = std::make_shared<MaskCache>(grammar::parse_json_schema(kSchemas[1]), demo());
  std::vector<std::vector<TokenId>> results(4);
  std::vector<std::thread> threads;
  for (auto& result : results) {
    threads.emplace_back([&] {
      GrammarMask mask(cache);
      std::mt19937 random(11);
      for (int i = 0; i < 50; ++i) {
        const std::vector<TokenId> allowed = tokens_of(mask.allowed(), demo()->n_tokens());
        const TokenId token = allowed[random() % allowed.size()];
        result.push_back(token);
        if (demo()->is_end(token)) break;
        mask.accept(token);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& result : results) CHECK(result == results[0]);
}

}  // namespace infer
