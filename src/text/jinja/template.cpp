#include "src/text/jinja/template.h"

#include "src/text/jinja/interpreter.h"
#include "src/text/jinja/parser.h"
#include "src/text/ordered_json.h"

namespace infer::jinja {

Template::Template(std::string source) : source_(std::move(source)), tree_(parse(source_)) {}
Template::~Template() = default;

std::string Template::render(const nlohmann::ordered_json& variables, const std::function<std::tm()>& clock,
                             const Limits& limits, RenderStatistics* statistics) const {
  return render_marked(variables, nlohmann::ordered_json::object(), clock, limits, statistics).text;
}

RenderedText Template::render_marked(const nlohmann::ordered_json& variables, const nlohmann::ordered_json& own,
                                     const std::function<std::tm()>& clock, const Limits& limits,
                                     RenderStatistics* statistics) const {
  Heap heap(limits);
  const auto note = [&] {
    if (statistics) *statistics = {heap.peak_bytes(), heap.steps()};
  };
  try {
    RenderedText text = Interpreter(*tree_, heap, clock, variables, own).render();
    note();
    return text;
  } catch (const Failure& failure) {  // while converting the variables, before evaluation
    note();
    throw TemplateError(failure.kind, 0, "", failure.text);
  } catch (...) {
    note();
    throw;
  }
}

std::tm local_time() {
  const std::time_t now = std::time(nullptr);
  std::tm result = {};
  localtime_r(&now, &result);
  return result;
}

}  // namespace infer::jinja
