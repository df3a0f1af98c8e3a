#include "tools/reasoning_flags.h"

#include "tools/arguments.h"

namespace infer {

nlohmann::ordered_json ReasoningFlags::variables(nlohmann::ordered_json given) const {
  if (wanted != "auto" && !given.contains("enable_thinking")) given["enable_thinking"] = wanted == "on";
  return given;
}

void add_reasoning_flags(CLI::App& app, ReasoningFlags& flags) {
  app.add_option(
         flag_names("-rea,--reasoning"), flags.wanted,
         "Let the model reason before it answers: on, off, or auto: as its chat template decides (default: auto)")
      ->check(one_of({"on", "off", "auto"}))
      ->type_name("WORD");
  app.add_option("--reasoning-budget", flags.budget,
                 "End the reasoning after N tokens; 0: at once, -1: no limit (default: -1)")
      ->check(not_empty())
      ->check(whole_number(-1, INT32_MAX))
      ->type_name("N");
}

}  // namespace infer
