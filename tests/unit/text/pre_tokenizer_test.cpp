// The table of pre-tokenizer patterns: every entry compiles, splits without gaps and in linear time, and rules that are
// written differently here than in the models' own files split like those.
#include "src/text/pre_tokenizer.h"

#include <doctest/doctest.h>

#include <set>
#include <string>
#include <vector>

namespace infer {
namespace {

using Words = std::vector<std::string>;

Words cut(std::string_view name, const std::string& text) {
  const PreTokenizerEntry* entry = find_pre_tokenizer(name);
  REQUIRE(entry != nullptr);
  Words words;
  for (const auto& [begin, end] : PreTokenizer(*entry->rule).split(text))
    words.push_back(text.substr(begin, end - begin));
  return words;
}

}  // namespace

TEST_CASE("every pattern compiles and splits any text without gaps") {
  const std::string texts[] = {
      "",
      "Hello, World's  end 1234567 \t\r\n\n x",
      "\xE6\xBC\xA2\xE5\xAD\x97\xE3\x81\x8B\xE3\x81\xAA \xD0\x9F\xD1\x80\xD0\xB8 \xE0\xA4\xA8\xE0\xA4\xAE\xE0\xA5\x8D "
      "\xF0\x9F\x98\x80",
      "a\xFF\xFE b\xC3 \xED\xA0\x80",
  };
  std::set<std::string_view> names;
  for (const PreTokenizerEntry& entry : pre_tokenizer_table()) {
    CAPTURE(std::string(entry.name));
    CHECK(names.insert(entry.name).second);
    CHECK(find_pre_tokenizer(entry.name) == &entry);
    const PreTokenizer pre_tokenizer(*entry.rule);
    for (const std::string& text : texts) {
      size_t done = 0;
      for (const auto& [begin, end] : pre_tokenizer.split(text)) {
        CHECK(begin == done);
        CHECK(end > begin);
        done = end;
      }
      CHECK(done == text.size());
    }
  }
}

// Quadratic patterns would take minutes here.
TEST_CASE("every rule splits long runs in linear time") {
  std::set<const PreTokenizerRule*> rules;
  for (const PreTokenizerEntry& entry : pre_tokenizer_table()) rules.insert(entry.rule);
  for (const PreTokenizerRule* rule : rules) {
    const PreTokenizer pre_tokenizer(*rule);
    for (const char* unit : {" ", "\n", "A", "a", "7", "\xE6\xBC\xA2", "\xCC\x81", "!", "a ", "\t ", "'"}) {
      std::string text;
      while (text.size() < 60'000) text += unit;
      CHECK_NOTHROW(pre_tokenizer.split(text));
      CHECK_NOTHROW(pre_tokenizer.split(text + "x"));
    }
  }
}

TEST_CASE("names that are not in the table") {
  CHECK(find_pre_tokenizer("no-such-name") == nullptr);
  CHECK(find_pre_tokenizer("") == find_pre_tokenizer("default"));
}

TEST_CASE("words of the common patterns") {
  CHECK(cut("gpt-2", "I'll  go12!\n\n x") == Words{"I", "'ll", " ", " go", "12", "!", "\n\n", " x"});
  CHECK(cut("llama3", "I'LL  go1234!\n x") == Words{"I", "'LL", " ", " go", "123", "4", "!\n", " x"});
  CHECK(cut("qwen2", "go12 .\r\n") == Words{"go", "1", "2", " .\r\n"});
  CHECK(cut("qwen35", "\xE0\xA4\xA8\xE0\xA5\x87 a") == Words{"\xE0\xA4\xA8\xE0\xA5\x87", " a"});
  CHECK(cut("gpt-4o", "CamelCase's HTMLPage") == Words{"Camel", "Case's", " HTMLPage"});
  CHECK(cut("tekken", "CamelCase's") == Words{"Camel", "Case", "'s"});
  CHECK(cut("falcon", "a1234$") == Words{"a", "123", "4", "$"});
  CHECK(cut("starcoder", "a12") == Words{"a", "1", "2"});
  CHECK(cut("deepseek-v3", "x1234\xE6\xBC\xA2#tag") == Words{"x", "123", "4", "\xE6\xBC\xA2", "#tag"});
  CHECK(cut("deepseek-llm", "a  b  ") == Words{"a", " ", " b", "  "});
  CHECK(cut("gemma4", "a b\n\nc") == Words{"a b", "\n\n", "c"});
  CHECK(cut("chameleon", "IMGIMGABZx") == Words{"IMGIMGABZ", "x"});
}

TEST_CASE("digits are grouped from the right") {
  CHECK(cut("superbpe", "n=1234567.") == Words{"n=", "1", "234", "567", "."});
  CHECK(cut("afmoe", "12345 6") == Words{"12", "345", " ", "6"});
  CHECK(cut("tiny_aya", "1234 5") == Words{"1", "234", " ", "5"});
  CHECK(cut("tiny_aya", "1234a") == Words{"123", "4", "a"});  // part of another word: from the left
}

TEST_CASE("Han is kept apart from other letters") {
  CHECK(cut("kimi-k2",
            "ab\xE6\xBC\xA2\xE5\xAD\x97"
            "c's 1234") == Words{"ab", "\xE6\xBC\xA2\xE5\xAD\x97", "c's", " ", "123", "4"});
}

TEST_CASE("white space is Unicode's") {
  CHECK(cut("gpt-2", "a\xC2\x85") == Words{"a", "\xC2\x85"});
  CHECK(cut("gpt-2", "!\xE2\x80\x83!") == Words{"!", "\xE2\x80\x83", "!"});
  CHECK(cut("gpt-2", "!\xE1\xA0\x8E!") == Words{"!\xE1\xA0\x8E!"});  // U+180E is not white space
}

TEST_CASE("spaces in descending powers of two") {
  CHECK(cut("jais-2", std::string(7, ' ') + "x") == Words{"    ", "  ", " x"});
  CHECK(cut("jais-2", std::string(3, ' ') + "\n " + "x") == Words{"   \n", " x"});
}

TEST_CASE("Korean words continue across single blanks") {
  CHECK(cut("exaone-moe", "ab cd  e") == Words{"ab cd", " ", " e"});
}

}  // namespace infer
