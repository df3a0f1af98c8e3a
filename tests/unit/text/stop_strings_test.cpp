// Stop strings and reasoning tags, for every way of splitting a text into tokens.
#include "src/text/stop_strings.h"

#include <doctest/doctest.h>

#include "src/text/reasoning.h"

using namespace infer;

namespace {

// All ways to split a text into pieces if it is short; else pieces of 1, 2, 3, ... bytes.
std::vector<std::vector<std::string>> cuts(const std::string& text) {
  std::vector<std::vector<std::string>> all;
  if (text.size() <= 12) {
    for (unsigned mask = 0; mask < 1u << (text.size() - 1); ++mask) {
      std::vector<std::string> pieces(1);
      for (size_t i = 0; i < text.size(); ++i) {
        pieces.back() += text[i];
        if (mask >> i & 1) pieces.emplace_back();
      }
      all.push_back(pieces);
    }
  } else {
    for (size_t n = 1; n <= text.size(); ++n) {
      std::vector<std::string> pieces;
      for (size_t i = 0; i < text.size(); i += n) pieces.push_back(text.substr(i, n));
      all.push_back(pieces);
    }
  }
  return all;
}

std::string stopped_text(const std::vector<std::string>& stops, const std::vector<std::string>& pieces, bool& stopped) {
  StopStrings filter(stops);
  std::string text;
  for (const std::string& piece : pieces) text += filter.add(piece);
  text += filter.flush();
  stopped = filter.stopped();
  return text;
}

struct Split {
  std::string reasoning, answer;
  bool operator==(const Split&) const = default;
};

Split split(const std::string& prompt, const std::vector<std::string>& pieces) {
  ReasoningSplitter splitter(prompt);
  Split result;
  const auto take = [&](const std::vector<ReasoningSplitter::Part>& parts) {
    for (const auto& part : parts) {
      CHECK_FALSE(part.text.empty());
      (part.reasoning ? result.reasoning : result.answer) += part.text;
    }
  };
  for (const std::string& piece : pieces) take(splitter.add(piece));
  take(splitter.flush());
  return result;
}

void check_split(const std::string& prompt, const std::string& text, const Split& expected) {
  CAPTURE(text);
  for (const auto& pieces : cuts(text)) {
    const Split found = split(prompt, pieces);
    CHECK(found.reasoning == expected.reasoning);
    CHECK(found.answer == expected.answer);
  }
}

}  // namespace

TEST_CASE("stop_strings_are_found_however_the_text_is_split") {
  struct Case {
    std::vector<std::string> stops;
    std::string text, expected;
    bool stopped;
  };
  const Case cases[] = {
      {{"END"}, "abENDcd", "ab", true},
      {{"END"}, "abENENDx", "abEN", true},
      {{"aab"}, "aaab", "a", true},
      {{"abcabd"}, "abcabcabdx", "abc", true},
      {{"END"}, "abEN", "abEN", false},
      {{"xyz", "yz"}, "wxyz", "w", true},
      {{"b", "abc"}, "zabc", "za", true},
      {{"abc", "bx"}, "zabcbx", "z", true},
      {{"", "q"}, "text", "text", false},
      {{}, "text", "text", false},
      {{"\n\n"}, "one\ntwo\n\nx", "one\ntwo", true},
  };
  for (const Case& c : cases) {
    CAPTURE(c.text);
    for (const auto& pieces : cuts(c.text)) {
      bool stopped = false;
      const std::string text = stopped_text(c.stops, pieces, stopped);
      CHECK(stopped == c.stopped);
      CHECK(text == c.expected);
    }
  }
}

TEST_CASE("stop_strings_hold_back_no_more_than_needed") {
  StopStrings filter({"END"});
  CHECK(filter.add("abE") == "ab");
  CHECK(filter.add("x") == "Ex");
  CHECK(filter.add("EN") == "");
  CHECK(filter.add("D") == "");
  CHECK(filter.stopped());
  CHECK(filter.add("more") == "");
  CHECK(filter.flush() == "");
}

TEST_CASE("reasoning_is_the_text_between_tags_at_the_start") {
  check_split("", "<think>\nhm, 2\n\n</think>\n\nfour", {"hm, 2", "four"});
  check_split("", "\n <think>a < b</think>c", {"a < b", "c"});
  check_split("", "[THINK]x[/THINK]y", {"x", "y"});
  check_split("", "<seed:think>x </seed:think> y", {"x", "y"});
  check_split("<|assistant|>\n<think>\n", "hm</think>four", {"hm", "four"});
  check_split("<|assistant|><think>", "unfinished </thin", {"unfinished </thin", ""});
}

TEST_CASE("tags_elsewhere_are_text") {
  check_split("", "a<think>b</think>", {"", "a<think>b</think>"});
  check_split("", "<thin", {"", "<thin"});
  check_split("", "<thi ng>", {"", "<thi ng>"});
  check_split("", "  plain ", {"", "  plain "});
  check_split("", "<think>a</think>b<think>c", {"a", "b<think>c"});
  check_split("", "<think></think>x", {"", "x"});
}

TEST_CASE("reasoning_is_streamed_as_it_arrives") {
  ReasoningSplitter splitter("");
  using Parts = std::vector<ReasoningSplitter::Part>;
  CHECK(splitter.add("<think>one") == Parts{{true, "one"}});
  CHECK(splitter.inside());
  CHECK(splitter.add(" two<") == Parts{{true, " two"}});
  CHECK(splitter.add("3") == Parts{{true, "<3"}});
  CHECK(splitter.add("\n</think>\n") == Parts{});
  CHECK_FALSE(splitter.inside());
  CHECK(splitter.add("answer") == Parts{{false, "answer"}});
}
