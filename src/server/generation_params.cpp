#include "src/server/generation_params.h"

#include <charconv>
#include <limits>

#include "ggml-like/error.h"

namespace infer {
namespace {

constexpr int64_t kMaxTokens = std::numeric_limits<int32_t>::max();
constexpr double kLargest = 1e6;  // of numbers that have no range of their own

std::vector<std::string> read_stop(const JsonFields& fields, const RequestLimits& limits) {
  const Json* value = fields.find("stop");
  if (!value) return {};
  const Json one = Json::array({*value});
  const Json& entries = value->is_array() ? *value : one;
  const std::string expected = concat("a string, or an array of at most ", limits.max_stops, " strings");
  if (entries.size() > limits.max_stops) fields.refuse("stop", expected);
  std::vector<std::string> stops;
  for (const Json& entry : entries) {
    if (!entry.is_string()) fields.refuse("stop", expected);
    stops.push_back(entry.get<std::string>());
    if (stops.back().empty() || stops.back().size() > limits.max_stop_bytes) {
      throw invalid_parameter(
          "stop", concat("expected strings of 1 to ", limits.max_stop_bytes, " bytes, found ", stops.back().size()));
    }
  }
  return stops;
}

// {"15043": -100, ...}
void read_logit_bias(const JsonFields& fields, const RequestContext& context, SamplingParams& sampling) {
  const Json* value = fields.object("logit_bias");
  if (!value) return;
  if (value->size() > context.limits.max_logit_biases) {
    fields.refuse("logit_bias", concat("at most ", context.limits.max_logit_biases, " tokens"));
  }
  for (const auto& [key, bias] : value->items()) {
    TokenId token = 0;
    const char* end = key.data() + key.size();
    const auto [at, error] = std::from_chars(key.data(), end, token);
    if (error != std::errc() || at != end || token < 0 || token >= context.n_vocab) {
      throw invalid_parameter("logit_bias", concat("expected token ids from 0 to ", context.n_vocab - 1, ", found ",
                                                   describe_json(Json(key))));
    }
    const double number = bias.is_number() ? bias.get<double>() : -1000;
    if (!(number >= -100 && number <= 100)) {
      throw invalid_parameter("logit_bias", concat("expected numbers from -100 to 100, found ", describe_json(bias)));
    }
    sampling.logit_bias.emplace_back(token, static_cast<float>(number));
  }
}

void read_sampling(const JsonFields& fields, const RequestContext& context, SamplingParams& s) {
  const auto number = [&](const char* name, float& value, double least, double most) {
    if (const auto given = fields.number(name, least, most)) value = static_cast<float>(*given);
  };
  const auto integer = [&](const char* name, int32_t& value, int64_t least, int64_t most) {
    if (const auto given = fields.integer(name, least, most)) value = static_cast<int32_t>(*given);
  };
  number("temperature", s.temperature, 0, 100);
  number("dynatemp_range", s.dynatemp_range, 0, 100);
  number("dynatemp_exponent", s.dynatemp_exponent, 0, 100);
  integer("top_k", s.top_k, -1, kMaxTokens);
  number("top_p", s.top_p, 0, 1);
  number("min_p", s.min_p, 0, 1);
  number("typical_p", s.typical_p, 0, 1);
  number("top_n_sigma", s.top_n_sigma, -kLargest, kLargest);
  number("xtc_probability", s.xtc_probability, 0, 1);
  number("xtc_threshold", s.xtc_threshold, 0, 1);
  integer("repeat_last_n", s.repeat_last_n, -1, kMaxTokens);
  number("repeat_penalty", s.repeat_penalty, 0.001, 1000);
  number("repetition_penalty", s.repeat_penalty, 0.001, 1000);
  number("presence_penalty", s.presence_penalty, -2, 2);
  number("frequency_penalty", s.frequency_penalty, -2, 2);
  number("dry_multiplier", s.dry_multiplier, 0, 100);
  number("dry_base", s.dry_base, 1, 100);
  integer("dry_allowed_length", s.dry_allowed_length, 0, kMaxTokens);
  integer("dry_penalty_last_n", s.dry_penalty_last_n, -1, kMaxTokens);
  integer("mirostat", s.mirostat, 0, 2);
  if (s.mirostat == 1) fields.refuse("mirostat", "0 (off) or 2");
  number("mirostat_tau", s.mirostat_tau, 0, kLargest);
  number("mirostat_eta", s.mirostat_eta, 0, kLargest);
  if (const Json* seed = fields.find("seed")) {
    if (!seed->is_number_integer()) fields.refuse("seed", "a whole number of at most 64 bits");
    // -1 asks for a random one; other negative numbers are seeds too.
    s.seed = seed->get<uint64_t>();
    if (!seed->is_number_unsigned() && seed->get<int64_t>() == -1) s.seed.reset();
  }
  read_logit_bias(fields, context, s);
}

}  // namespace

std::vector<TokenId> read_token_ids(const Json& array, const std::string& name, int32_t n_vocab) {
  std::vector<TokenId> tokens;
  tokens.reserve(array.size());
  for (const Json& entry : array) {
    if (!entry.is_number_integer() || entry.get<double>() < 0 || entry.get<double>() >= n_vocab) {
      throw invalid_parameter(name,
                              concat("expected token ids from 0 to ", n_vocab - 1, ", found ", describe_json(entry)));
    }
    tokens.push_back(entry.get<TokenId>());
  }
  return tokens;
}

GenerationParams read_generation(const JsonFields& fields, const RequestContext& context, int64_t least_tokens) {
  const RequestLimits& limits = context.limits;
  GenerationParams g;
  g.sampling = context.sampling;
  read_sampling(fields, context, g.sampling);
  fields.text("model");
  fields.text("user");
  g.n = static_cast<int32_t>(fields.integer("n", 1, limits.max_choices).value_or(1));
  g.max_tokens = limits.default_max_tokens;
  for (const char* name : {"max_tokens", "max_completion_tokens"}) {
    if (const auto given = fields.integer(name, least_tokens, kMaxTokens)) g.max_tokens = static_cast<int32_t>(*given);
  }
  g.ignore_eog = fields.boolean("ignore_eos", false);
  g.stop = read_stop(fields, limits);
  g.priority = static_cast<int32_t>(fields.integer("priority", -100, 100).value_or(0));
  if (g.priority > limits.max_priority) {
    throw invalid_parameter("priority", concat("expected at most ", limits.max_priority, ", found ", g.priority,
                                               "; the server's --max-priority sets the limit"));
  }
  g.cache_salt = fields.text("cache_salt", 256).value_or("");
  g.stream = fields.boolean("stream", false);
  if (const Json* options = fields.object("stream_options")) {
    if (!g.stream) throw invalid_parameter("stream_options", "expected only together with stream");
    g.include_usage = JsonFields(*options, "stream_options.").boolean("include_usage", false);
  }
  g.timings = fields.boolean("timings", false);
  return g;
}

}  // namespace infer
