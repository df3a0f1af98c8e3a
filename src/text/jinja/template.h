// A parsed template: the whole interface of the template language. Immutable; any number of threads may render one at
// the same time. The language is Jinja2 3.1 as Hugging Face transformers configures it for chat templates: sandboxed,
// trim_blocks and lstrip_blocks on, break and continue, {% generation %}, and the functions raise_exception and
// strftime_now. A template can access nothing but its variables, and every render has a budget (see heap.h).
#pragma once

#include <ctime>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "src/text/jinja/heap.h"
#include "src/text/rendered_text.h"

namespace infer::jinja {

class SyntaxTree;

// The cost of a render.
struct RenderStatistics {
  size_t peak_bytes = 0;  // values and output together
  uint64_t steps = 0;
};

class Template {
 public:
  // Throws TemplateError (kSyntax, kBudget).
  explicit Template(std::string source);
  ~Template();

  // `variables`: a JSON object. Throws TemplateError.
  std::string render(const nlohmann::ordered_json& variables, const std::function<std::tm()>& clock,
                     const Limits& limits = {}, RenderStatistics* statistics = nullptr) const;
  // The same, and records which bytes came from the variables. Strings from `own` count as the template's.
  RenderedText render_marked(const nlohmann::ordered_json& variables, const nlohmann::ordered_json& own,
                             const std::function<std::tm()>& clock, const Limits& limits = {},
                             RenderStatistics* statistics = nullptr) const;
  const std::string& source() const { return source_; }

 private:
  const std::string source_;
  std::unique_ptr<const SyntaxTree> tree_;
};

// The local time of this machine.
std::tm local_time();

}  // namespace infer::jinja
