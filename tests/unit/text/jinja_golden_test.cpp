// Every reference case of ../shared/goldens/chat: published chat templates with conversations, compared byte for byte,
// and cases of the template language.
#include <doctest/doctest.h>

#include "src/text/chat_template.h"
#include "tests/support/skip.h"
#include "tests/unit/text/jinja_support.h"

namespace infer {
namespace {

using nlohmann::ordered_json;
namespace fs = std::filesystem;

// The result: a text or an error message.
struct Outcome {
  std::string text;
  std::string error;
  bool raised = false;
};

template <typename Render>
Outcome result_of(Render render) {
  Outcome outcome;
  try {
    outcome.text = render();
  } catch (const TemplateError& error) {
    outcome.error = error.text();
    outcome.raised = error.kind() == TemplateError::Kind::kRaised;
    CHECK(error.kind() != TemplateError::Kind::kBudget);
  }
  return outcome;
}

void compare(const ordered_json& expected, const Outcome& found) {
  if (expected.contains("expected")) {
    CHECK(found.error == "");
    CHECK(found.text == expected["expected"].get<std::string>());
    return;
  }
  // In the reference, templates could not change any list, not even their own.
  if (expected["error"].get<std::string>().starts_with("access to attribute 'append' of 'list'")) {
    CHECK(found.error == "");
    return;
  }
  CHECK(found.error != "");
  if (expected.value("error_kind", "") == "raise_exception") {
    CHECK(found.raised);
    CHECK(found.error == expected["error"].get<std::string>());
  }
}

}  // namespace

TEST_CASE("reference cases of the template language") {
  const auto shared = test::shared_dir("template language");
  if (!shared) return;
  const ordered_json golden = test::read_ordered_json(*shared / "goldens" / "chat" / "jinja.json");
  for (const ordered_json& c : golden["cases"]) {
    CAPTURE(c["name"].get<std::string>());
    compare(c, result_of([&] { return test::render(c["template"], c["context"]); }));
  }
  CHECK(golden["cases"].size() > 50);
}

TEST_CASE("reference prompts of published templates") {
  const auto shared = test::shared_dir("chat prompts");
  if (!shared) return;
  const fs::path folder = *shared / "goldens" / "chat";
  const ordered_json conversations = test::read_ordered_json(folder / "conversations.json");
  const ordered_json golden = test::read_ordered_json(folder / "templates.json");
  for (const ordered_json& c : golden["cases"]) {
    const std::string file = c["template_file"], name = c["conversation"];
    CAPTURE(file);
    CAPTURE(name);
    const ordered_json& input = conversations[name];
    Conversation conversation;
    conversation.messages = input["messages"];
    if (input.contains("tools")) conversation.tools = input["tools"];
    conversation.variables = ordered_json::object();
    for (const auto& [key, value] : c["options"].items()) {
      if (key == "add_generation_prompt") conversation.add_generation_prompt = value;
      else if (key == "continue_final_message") conversation.continue_final_message = value;
      else if (key == "bos_token") conversation.bos_token = value;
      else if (key == "eos_token") conversation.eos_token = value;
      else conversation.variables[key] = value;
    }
    compare(c, result_of([&] {
              return ChatTemplate::parse(test::read_text(folder / file))
                  .with_clock(test::recorded_time)
                  .render(conversation);
            }));
  }
  CHECK(golden["cases"].size() > 500);
}

}  // namespace infer
