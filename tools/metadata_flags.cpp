#include "tools/metadata_flags.h"

#include <charconv>

#include "ggml-like/error.h"
#include "ggml-like/printable.h"
#include "tools/arguments.h"

namespace infer {
namespace {

GgufValue of_number(double number) {
  GgufValue value;
  value.type = GgufType::kFloat64;
  value.value = number;
  return value;
}

// KEY=TYPE:VALUE.
std::pair<std::string, GgufValue> parse_override(const std::string& text) {
  const auto wrong = [&] {
    throw Error(ErrorCode::kInvalidArgument,
                concat("--override-kv: ", printable(text, 100),
                       " is not valid. Write KEY=TYPE:VALUE with the type int, float, bool or str, such as "
                       "llama.context_length=int:8192."));
  };
  const size_t equals = text.find('='), colon = text.find(':', equals == std::string::npos ? 0 : equals);
  if (equals == std::string::npos || equals == 0 || colon == std::string::npos) wrong();
  const std::string key = text.substr(0, equals), type = text.substr(equals + 1, colon - equals - 1);
  const std::string value = text.substr(colon + 1);
  const char* end = value.data() + value.size();
  if (type == "str") return {key, GgufValue::of_string(value)};
  if (type == "bool" && (value == "true" || value == "false")) return {key, GgufValue::of_bool(value == "true")};
  int64_t integer = 0;
  if (type == "int") {
    const auto [at, error] = std::from_chars(value.data(), end, integer);
    if (error == std::errc() && at == end) return {key, GgufValue::of_int(GgufType::kInt64, integer)};
  }
  double number = 0;
  if (type == "float") {
    const auto [at, error] = std::from_chars(value.data(), end, number);
    if (error == std::errc() && at == end) return {key, of_number(number)};
  }
  wrong();
  return {};
}

using Overrides = std::vector<std::pair<std::string, GgufValue>>;

// Values up to `unset` leave the model's own.
CLI::Option* add_number_flag(CLI::App& app, Overrides& overrides, const char* flag, const char* key, double unset,
                             const char* text) {
  const auto set = [&overrides, key, unset](double value) {
    if (value > unset) overrides.emplace_back(key, of_number(value));
  };
  return app.add_option_function<double>(flag, set, text)->check(any_number())->type_name("N")->group("Positions");
}

void add_scale_flags(CLI::App& app, Overrides& overrides) {
  app.add_option_function<std::string>(
         "--rope-scaling",
         [&overrides](const std::string& word) {
           overrides.emplace_back(".rope.scaling.type", GgufValue::of_string(word));
         },
         "Scaling of rotary positions: none, linear or yarn (default: the model's own)")
      ->check(one_of({"none", "linear", "yarn"}))
      ->type_name("WORD")
      ->group("Positions");
  auto* scale = add_number_flag(app, overrides, "--rope-scale", ".rope.scaling.factor", 0,
                                "Contexts N times as long as the model was trained with; 0: the model's own");
  app.add_option_function<double>(
         "--rope-freq-scale",
         [&overrides](double value) {
           if (value > 0) overrides.emplace_back(".rope.scaling.factor", of_number(1 / value));
         },
         "The same as --rope-scale 1/N")
      ->check(any_number())
      ->excludes(scale)
      ->type_name("N")
      ->group("Positions");
  add_number_flag(app, overrides, "--rope-freq-base", ".rope.freq_base", 0,
                  "Base of the rotary frequencies; 0: the model's own");
}

void add_yarn_flags(CLI::App& app, Overrides& overrides) {
  app.add_option_function<int64_t>(
         "--yarn-orig-ctx",
         [&overrides](int64_t n) {
           if (n == 0) return;
           overrides.emplace_back(".rope.scaling.original_context_length", GgufValue::of_int(GgufType::kInt64, n));
         },
         "YaRN: the context that the model was trained with; 0: the model's own")
      ->check(whole_number(0, INT32_MAX))
      ->type_name("N")
      ->group("Positions");
  add_number_flag(app, overrides, "--yarn-ext-factor", ".rope.scaling.yarn_ext_factor", -1e-9,
                  "YaRN: share of the extrapolated frequencies, 0 to 1; below 0: the model's own");
  add_number_flag(app, overrides, "--yarn-attn-factor", ".rope.scaling.yarn_attn_factor", 0,
                  "Factor on rotated values without YaRN, which computes its own; 0 or less: the model's own");
  add_number_flag(app, overrides, "--yarn-beta-slow", ".rope.scaling.yarn_beta_slow", 0,
                  "YaRN: rotations below which a frequency is interpolated; 0 or less: the model's own");
  add_number_flag(app, overrides, "--yarn-beta-fast", ".rope.scaling.yarn_beta_fast", 0,
                  "YaRN: rotations above which a frequency is kept; 0 or less: the model's own");
}

}  // namespace

void add_metadata_flags(CLI::App& app, GgufOpenOptions& options) {
  Overrides& overrides = options.overrides;
  app.add_option_function<std::vector<std::string>>(
         "--override-kv",
         [&overrides](const std::vector<std::string>& entries) {
           for (const std::string& entry : entries) overrides.push_back(parse_override(entry));
         },
         "Replace metadata of the model file: KEY=TYPE:VALUE,... with the types int, float, bool and str (may be "
         "repeated)")
      ->delimiter(',')
      ->take_all()
      ->check(not_empty())
      ->type_name("KEY=TYPE:VALUE");
  add_scale_flags(app, overrides);
  add_yarn_flags(app, overrides);
}

}  // namespace infer
