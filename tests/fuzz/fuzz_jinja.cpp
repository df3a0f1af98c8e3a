// Fuzz target for the template language: any text as a template, rendered with a conversation that has values of every
// kind; then the rendered text as a template.
//
// Input: the template. Limits are small, so that an input takes milliseconds.
#include <cstddef>
#include <cstdint>
#include <string>

#include "src/text/jinja/template.h"
#include "src/text/ordered_json.h"
#include "src/text/utf8.h"

namespace {

using namespace infer;

void require(bool condition) {
  if (!condition) __builtin_trap();
}

std::tm fixed_time() {
  std::tm time = {};
  time.tm_year = 126, time.tm_mday = 15, time.tm_hour = 10, time.tm_wday = 4, time.tm_yday = 14;
  return time;
}

const nlohmann::ordered_json& variables() {
  static const auto all = nlohmann::ordered_json::parse(R"({
    "messages": [{"role": "system", "content": " Be brief. "}, {"role": "user", "content": [{"type": "text", "text": "é"}]},
                 {"role": "assistant", "content": null, "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": {"x": 1}}}]},
                 {"role": "tool", "content": "<1.5>"}],
    "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}],
    "add_generation_prompt": true, "bos_token": "<s>", "eos_token": "</s>",
    "n": -3, "x": 2.5, "t": "Grüße, 日本 \n", "l": [3, "b", [1, null], {"k": true}], "d": {"b": 1, "A": [2], "items": 3}
  })");
  return all;
}

std::string render(const std::string& source) {
  jinja::Limits limits;
  limits.steps = 100'000;
  limits.memory_bytes = size_t{4} << 20;
  limits.output_bytes = size_t{1} << 20;
  jinja::RenderStatistics statistics;
  try {
    std::string text = jinja::Template(source).render(variables(), fixed_time, limits, &statistics);
    require(is_valid_utf8(text));
    require(statistics.peak_bytes <= limits.memory_bytes && statistics.steps <= limits.steps);
    return text;
  } catch (const TemplateError& error) {
    require(std::string(error.what()).find('\n') == std::string::npos);
    return "";
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text = render(std::string(reinterpret_cast<const char*>(data), size));
  if (!text.empty() && text.size() < 10000) render(text);
  return 0;
}
