// The tool calls of published templates: ../shared/goldens/tool_calls says which texts give which messages. Every text
// is read whole, byte by byte and in random pieces, and cut off at every place.
#include <doctest/doctest.h>

#include <cstdio>
#include <filesystem>
#include <map>
#include <random>

#include "src/text/answer_grammar.h"
#include "src/text/chat_template.h"
#include "tests/support/skip.h"
#include "tests/unit/text/grammar_support.h"
#include "tests/unit/text/jinja_support.h"
#include "tests/unit/text/tool_call_support.h"

namespace infer {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using nlohmann::ordered_json;
using test::ParsedMessage;
using test::ParserSetup;

constexpr size_t kShort = 400;  // bytes of a text that is cut everywhere
constexpr int kRandomCuts = 30, kRandomPieces = 3;

Conversation to_conversation(const ordered_json& input) {
  Conversation conversation;
  conversation.variables = ordered_json::object();
  for (const auto& [key, value] : input.items()) {
    if (key == "messages") conversation.messages = value;
    else if (key == "tools") conversation.tools = value;
    else if (key == "bos_token") conversation.bos_token = value;
    else if (key == "eos_token") conversation.eos_token = value;
    else conversation.variables[key] = value;
  }
  return conversation;
}

ParserSetup setup_of(const ordered_json& entry, const fs::path& folder) {
  const ChatTemplate chat_template =
      ChatTemplate::parse(test::read_text(folder / entry["template_file"].get<std::string>()))
          .with_clock(test::recorded_time);
  const Conversation conversation = to_conversation(entry["conversation"]);
  return {find_tool_call_format(chat_template), ToolSet(conversation.tools),
          prompt_of_answer(chat_template, conversation)};
}

std::string trimmed_text(const ordered_json& value) {
  return value.is_string() ? std::string(trimmed(value.get_ref<const std::string&>())) : "";
}

// `any_arguments`: the expectation may leave them out.
bool agrees(const ParsedMessage& message, const ordered_json& expected) {
  if (expected.contains("content") && trimmed(message.content) != trimmed_text(expected["content"])) return false;
  if (expected.contains("reasoning_content") &&
      trimmed(message.reasoning) != trimmed_text(expected["reasoning_content"]))
    return false;
  if (message.calls.size() != expected["tool_calls"].size()) return false;
  for (size_t i = 0; i < message.calls.size(); ++i) {
    const ordered_json& call = expected["tool_calls"][i];
    if (call["name"] != message.calls[i].name) return false;
    if (!call.contains("arguments")) continue;
    // Not ordered_json, which compares the order of the keys.
    if (json::parse(call["arguments"].dump()) != json::parse(message.calls[i].arguments, nullptr, false)) return false;
  }
  return true;
}

// The same message however the text is split, and beginnings of it when it is cut off.
void check_cuts(const ParserSetup& setup, const std::string& text, const ParsedMessage& whole, std::mt19937& random) {
  CHECK(test::printed(test::parse_bytes(setup, text)) == test::printed(whole));
  for (int i = 0; i < kRandomPieces; ++i) {
    CHECK(test::parse(setup, text, false, [&] { return 1 + random() % 20; }) == whole);
  }
  const size_t n_cuts = text.size() <= kShort ? text.size() : kRandomCuts;
  for (size_t i = 0; i < n_cuts; ++i) {
    const size_t cut = text.size() <= kShort ? i : random() % text.size();
    CAPTURE(cut);
    const ParsedMessage begun = test::parse_whole(setup, text.substr(0, cut), true);
    CHECK_MESSAGE(test::is_beginning(begun, whole), test::printed(begun));
  }
}

struct Counts {
  int must = 0, failed = 0, agreeing = 0, differing = 0;
};

}  // namespace

TEST_CASE("tool calls of published templates") {
  const auto shared = test::shared_dir("tool calls");
  if (!shared) return;
  const fs::path folder = *shared / "goldens" / "tool_calls";
  std::map<std::string, Counts> families;
  std::mt19937 random(1);
  const ordered_json golden = test::read_ordered_json(folder / "cases.json");
  for (const ordered_json& entry : golden["templates"]) {
    const ParserSetup setup = setup_of(entry, folder);
    const std::string file = entry["template_file"], family = entry["family"];
    CAPTURE(file);
    CHECK(setup.format.family == family);
    CHECK(setup.prompt.ends_with(entry["generation_prompt"].get<std::string>()));
    Counts& counts = families[family];
    for (const ordered_json& c : entry["cases"]) {
      const std::string text = c["text"], turn = c["turn"];
      CAPTURE(turn);
      CAPTURE(text);
      const ParsedMessage message = test::parse_whole(setup, text);
      const bool right = agrees(message, c["expected"]);
      if (c["level"] == "must") {
        CHECK_MESSAGE(right, test::printed(message), " expected ", c["expected"].dump());
        ++counts.must;
        counts.failed += !right;
      } else {
        ++(right ? counts.agreeing : counts.differing);
      }
      check_cuts(setup, text, message, random);
    }
  }
  for (const auto& [family, counts] : families) {
    std::printf("%-34s must %3d, failed %d; advisory: %d agree, %d differ\n", family.c_str(), counts.must,
                counts.failed, counts.agreeing, counts.differing);
  }
  CHECK(families.size() > 10);
}

// What a template writes is an answer that the grammar of its calls allows; the tokens that end it are not there.
TEST_CASE("tool calls of published templates follow the grammar of their calls") {
  const auto shared = test::shared_dir("tool calls and their grammars");
  if (!shared) return;
  const fs::path folder = *shared / "goldens" / "tool_calls";
  const Tokenizer tokenizer = test::tokenizer_with({"<｜end▁of▁sentence｜>", "<|eom_id|>"});
  int n_calls = 0;
  const ordered_json golden = test::read_ordered_json(folder / "cases.json");
  for (const ordered_json& entry : golden["templates"]) {
    const std::string file = entry["template_file"];
    CAPTURE(file);
    const ChatTemplate chat_template =
        ChatTemplate::parse(test::read_text(folder / file)).with_clock(test::recorded_time);
    const ToolCallFormat format = find_tool_call_format(chat_template);
    AnswerConstraint constraint;
    constraint.calls = {CallConstraint::Mode::kAllowed, entry["conversation"]["tools"], true};
    const std::string prompt = entry["generation_prompt"];
    constraint.reasoning = reasoning_start(prompt, chat_template.source(), format);
    const auto allowed = compile_answer_grammar(constraint, tokenizer, &format, nullptr);
    constraint.calls.mode = CallConstraint::Mode::kRequired;
    const auto required = compile_answer_grammar(constraint, tokenizer, &format, nullptr);
    for (const ordered_json& c : entry["cases"]) {
      if (c["level"] != "must") continue;
      const std::string text = c["text"], turn = c["turn"];
      CAPTURE(turn);
      CAPTURE(text);
      CHECK(test::result_of(*allowed, text) == "accept");
      if (c["expected"]["tool_calls"].empty()) {
        CHECK(test::result_of(*required, text) != "accept");
      } else if (trimmed_text(c["expected"]["content"]).empty()) {
        ++n_calls;
        // Templates write white space between a header and the first call; models mostly do not.
        const bool right = test::result_of(*required, text) == "accept" ||
                           test::result_of(*required, std::string(trimmed(text))) == "accept";
        CHECK(right);
      }
    }
  }
  CHECK(n_calls > 300);
}

TEST_CASE("answers that are not proper tool calls") {
  const auto shared = test::shared_dir("malformed tool calls");
  if (!shared) return;
  const fs::path folder = *shared / "goldens" / "tool_calls";
  int right = 0, wrong = 0;
  std::mt19937 random(2);
  const ordered_json golden = test::read_ordered_json(folder / "malformed.json");
  for (const ordered_json& entry : golden["templates"]) {
    const ParserSetup setup = setup_of(entry, folder);
    const std::string file = entry["template_file"];
    CAPTURE(file);
    for (const ordered_json& c : entry["cases"]) {
      const std::string text = c["text"], kind = c["kind"];
      CAPTURE(kind);
      CAPTURE(text);
      const ParsedMessage message = test::parse_whole(setup, text);
      bool any = false;
      for (const ordered_json& answer : c["any_of"]) {
        // The part after the reasoning is content as it is.
        const bool all_content = message.calls.empty() && text.ends_with(message.content) && !message.content.empty();
        any = any || (answer == "all_content" ? all_content : answer.is_object() && agrees(message, answer));
      }
      CHECK_MESSAGE(any, test::printed(message), " expected one of ", c["any_of"].dump());
      ++(any ? right : wrong);
      check_cuts(setup, text, message, random);
    }
  }
  std::printf("malformed: %d right, %d wrong\n", right, wrong);
  CHECK(right > 100);
}

}  // namespace infer
