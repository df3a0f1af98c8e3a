// The template language against the results of Jinja2 for many small templates (tests/data/jinja_cases.json, written by
// scripts/make_jinja_cases.py).
#include <doctest/doctest.h>

#include "tests/unit/text/jinja_support.h"

namespace infer {

TEST_CASE("small templates render as in Jinja2") {
  const nlohmann::ordered_json recorded =
      test::read_ordered_json(std::string(INFER_SOURCE_DIR) + "/tests/data/jinja_cases.json");
  for (const auto& c : recorded["cases"]) {
    const std::string name = c["name"], source = c["template"];
    CAPTURE(name);
    CAPTURE(source);
    std::string text, error;
    bool raised = false, syntax = false;
    try {
      text = test::render(source, recorded["context"]);
    } catch (const TemplateError& e) {
      error = e.text();
      raised = e.kind() == TemplateError::Kind::kRaised;
      syntax = e.kind() == TemplateError::Kind::kSyntax;
      CHECK(std::string(e.what()).find('\n') == std::string::npos);
    }
    if (c.contains("expected")) {
      CHECK(error == "");
      CHECK(text == c["expected"].get<std::string>());
      continue;
    }
    CHECK(error != "");
    if (c["kind"] == "raised") {
      CHECK(raised);
      CHECK(error == c["error"].get<std::string>());
    }
    if (c["kind"] == "syntax") CHECK(syntax);
  }
  CHECK(recorded["cases"].size() > 1000);
}

}  // namespace infer
