#include "src/server/generation_params.h"

#include <charconv>
#include <limits>
#include <utility>

#include "ggml-like/bytes_text.h"
#include "ggml-like/error.h"
#include "src/text/sampler_chain.h"

namespace infer {
namespace {

constexpr size_t kMostStages = 64;  // of a request's sampling chain

constexpr double kLargest = 1e6;  // for numbers without a range of their own

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
      throw unexpected_value("stop", concat("strings of 1 to ", limits.max_stop_bytes, " bytes"),
                             concat(stops.back().size()));
    }
  }
  return stops;
}

// Reads logit_bias in the forms that clients send: {"15043": -100}, [[15043, -100]], and with a text instead of a token
// id, where the bias applies to each token of the text.
class LogitBiasReader {
 public:
  LogitBiasReader(const RequestContext& context, SamplingParams& sampling) : context_(context), sampling_(sampling) {}

  void read(const JsonFields& fields) {
    const Json* value = fields.find("logit_bias");
    if (!value) return;
    if (!value->is_structured()) fields.refuse("logit_bias", "an object, or an array of [token, bias]");
    if (value->size() > context_.limits.max_logit_biases) refuse_number();
    for (const auto& [key, entry] : value->items()) {
      if (value->is_object()) {
        add_key(key, read_bias(entry));
        continue;
      }
      if (!entry.is_array() || entry.size() != 2) fields.refuse("logit_bias", "an array of [token, bias]");
      if (entry[0].is_string()) {
        add_text(entry[0].get<std::string>(), read_bias(entry[1]));
      } else {
        add_token(whole_number(entry[0]), entry[0], read_bias(entry[1]));
      }
    }
  }

 private:
  // A number, or false for "never".
  static float read_bias(const Json& bias) {
    if (bias == false) return -std::numeric_limits<float>::infinity();
    const double number = bias.is_number() ? bias.get<double>() : -1000;
    if (number >= -100 && number <= 100) return static_cast<float>(number);
    throw unexpected_value("logit_bias", "numbers from -100 to 100, or false", describe_json(bias));
  }

  void add_key(const std::string& key, float bias) {
    int64_t token = 0;
    const char* end = key.data() + key.size();
    const auto [at, error] = std::from_chars(key.data(), end, token);
    if (at != end || error == std::errc::invalid_argument) {
      add_text(key, bias);
    } else {
      add_token(error == std::errc() ? std::optional(token) : std::nullopt, Json(key), bias);
    }
  }

  void add_token(std::optional<int64_t> token, const Json& given, float bias) {
    if (!token || *token < 0 || *token >= context_.n_vocab) {
      throw unexpected_value("logit_bias", concat("token ids from 0 to ", context_.n_vocab - 1), describe_json(given));
    }
    sampling_.logit_bias.emplace_back(static_cast<TokenId>(*token), bias);
  }

  void add_text(const std::string& text, float bias) {
    if (text.empty() || text.size() > context_.limits.max_stop_bytes) {
      throw unexpected_value("logit_bias", concat("texts of 1 to ", context_.limits.max_stop_bytes, " bytes"),
                             concat(text.size()));
    }
    for (const TokenId token : context_.tokenize(text)) sampling_.logit_bias.emplace_back(token, bias);
    if (sampling_.logit_bias.size() > context_.limits.max_logit_biases) refuse_number();
  }

  [[noreturn]] void refuse_number() const {
    throw unexpected_value("logit_bias", concat("at most ", grouped(context_.limits.max_logit_biases), " tokens"),
                           "more");
  }

  const RequestContext& context_;
  SamplingParams& sampling_;
};

[[noreturn]] void refuse_samplers(const std::string& found) {
  throw invalid_parameter(
      "samplers",
      concat("expected samplers among ", stage_names(", "), ", or letters among ", stage_letters(), ", found ", found),
      "unsupported_parameter");
}

// ["top_k", "temperature"], or llama.cpp's letters: "kt". Samplers that are not named are turned off.
void read_samplers(const JsonFields& fields, SamplingParams& s) {
  const Json* value = fields.find("samplers");
  if (!value) return;
  if (!value->is_array() && !value->is_string()) fields.refuse("samplers", "an array of names, or a string of letters");
  std::vector<SamplerStage> chain;
  const auto add = [&](std::optional<SamplerStage> stage, const Json& found) {
    if (!stage || chain.size() >= kMostStages) refuse_samplers(describe_json(found));
    chain.push_back(*stage);
  };
  if (value->is_string()) {
    for (const char letter : value->get_ref<const std::string&>()) add(stage_by_letter(letter), *value);
  } else {
    for (const Json& name : *value) {
      add(name.is_string() ? stage_by_name(name.get_ref<const std::string&>()) : std::nullopt, name);
    }
  }
  s.chain = std::move(chain);
}

void read_dry_breakers(const JsonFields& fields, SamplingParams& s) {
  const Json* value = fields.array("dry_sequence_breakers", SIZE_MAX);
  if (!value) return;
  SamplingParams checked;
  checked.dry_sequence_breakers.clear();
  for (const Json& entry : *value) {
    if (!entry.is_string()) fields.refuse("dry_sequence_breakers", "an array of strings");
    checked.dry_sequence_breakers.push_back(entry.get<std::string>());
  }
  try {
    checked.validate();
  } catch (const Error& error) {
    throw ApiError(400, "invalid_request_error", error.what(), "", "dry_sequence_breakers");
  }
  s.dry_sequence_breakers = std::move(checked.dry_sequence_breakers);
}

void read_seed(const JsonFields& fields, SamplingParams& s) {
  const Json* value = fields.find("seed");
  if (!value) return;
  if (value->is_number_unsigned()) {
    s.seed = value->get<uint64_t>();
    return;
  }
  const std::optional<int64_t> number = whole_number(*value);
  if (!number) fields.refuse("seed", "a whole number of at most 64 bits");
  // -1 asks for a random seed; other negative numbers are seeds.
  s.seed = static_cast<uint64_t>(*number);
  if (*number == -1) s.seed.reset();
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
  integer("top_k", s.top_k, -1, kMostTokens);
  number("top_p", s.top_p, 0, 1);
  number("min_p", s.min_p, 0, 1);
  number("typical_p", s.typical_p, 0, 1);
  number("top_n_sigma", s.top_n_sigma, -kLargest, kLargest);
  number("xtc_probability", s.xtc_probability, 0, 1);
  number("xtc_threshold", s.xtc_threshold, 0, 1);
  integer("repeat_last_n", s.repeat_last_n, -1, kMostTokens);
  number("repeat_penalty", s.repeat_penalty, 0.001, 1000);
  number("repetition_penalty", s.repeat_penalty, 0.001, 1000);
  number("presence_penalty", s.presence_penalty, -2, 2);
  number("frequency_penalty", s.frequency_penalty, -2, 2);
  number("dry_multiplier", s.dry_multiplier, 0, 100);
  number("dry_base", s.dry_base, 1, 100);
  integer("dry_allowed_length", s.dry_allowed_length, 0, kMostTokens);
  integer("dry_penalty_last_n", s.dry_penalty_last_n, -1, kMostTokens);
  integer("mirostat", s.mirostat, 0, 2);
  if (s.mirostat == 1) fields.refuse("mirostat", "0 (off) or 2");
  number("mirostat_tau", s.mirostat_tau, 0, kLargest);
  number("mirostat_eta", s.mirostat_eta, 0, kLargest);
  read_dry_breakers(fields, s);
  read_samplers(fields, s);
  read_seed(fields, s);
  LogitBiasReader(context, s).read(fields);
}

// If several names are given, the last one listed here wins, as in llama-server.
int32_t read_max_tokens(const JsonFields& fields, int64_t least, int32_t otherwise) {
  int32_t tokens = otherwise;
  for (const char* name : {"max_tokens", "max_completion_tokens", "n_predict"}) {
    const auto given = fields.integer(name, -1, kMostTokens);
    if (!given) continue;
    if (*given == 0 && least > 0) fields.refuse(name, "1 or more, or -1: to the end of the context");
    tokens = static_cast<int32_t>(*given);
  }
  return tokens;
}

}  // namespace

std::vector<TokenId> read_token_ids(const Json& array, const std::string& name, int32_t n_vocab) {
  std::vector<TokenId> tokens;
  tokens.reserve(array.size());
  for (const Json& entry : array) {
    const std::optional<int64_t> token = whole_number(entry);
    if (!token || *token < 0 || *token >= n_vocab) {
      throw unexpected_value(name, concat("token ids from 0 to ", n_vocab - 1), describe_json(entry));
    }
    tokens.push_back(static_cast<TokenId>(*token));
  }
  return tokens;
}

void read_scheduling(const JsonFields& fields, const RequestLimits& limits, GenerationParams& params) {
  params.priority = static_cast<int32_t>(fields.integer("priority", -100, 100).value_or(0));
  if (params.priority > limits.max_priority) {
    throw unexpected_value("priority", concat("at most ", limits.max_priority),
                           concat(params.priority, "; the server's --max-priority sets the limit"));
  }
  params.cache_salt = fields.text("cache_salt", 256).value_or("");
  params.reuse_prefix = fields.boolean("cache_prompt", true);
}

GenerationParams read_generation(const JsonFields& fields, const RequestContext& context, int64_t least_tokens) {
  const RequestLimits& limits = context.limits;
  GenerationParams g;
  g.sampling = context.sampling;
  read_sampling(fields, context, g.sampling);
  fields.text("model");
  fields.text("user");
  for (const char* name : {"n", "n_cmpl"}) {
    if (const auto given = fields.integer(name, 1, limits.max_choices)) g.n = static_cast<int32_t>(*given);
  }
  g.max_tokens = read_max_tokens(fields, least_tokens, limits.default_max_tokens);
  g.ignore_eog = fields.boolean("ignore_eos", false);
  g.max_drafts = static_cast<int32_t>(fields.integer("speculative.n_max", 0, INT32_MAX).value_or(INT32_MAX));
  g.stop = read_stop(fields, limits);
  if (const Json* tokens = fields.array("stop_token_ids", limits.max_stop_tokens)) {
    g.stop_tokens = read_token_ids(*tokens, "stop_token_ids", context.n_vocab);
  }
  read_scheduling(fields, limits, g);
  g.stream = fields.boolean("stream", false);
  if (const Json* options = fields.object("stream_options")) {
    if (!g.stream) throw invalid_parameter("stream_options", "use it only together with stream");
    const JsonFields members(*options, "stream_options.");
    g.include_usage = members.boolean("include_usage", false);
  }
  g.timings = fields.boolean("timings", false);
  return g;
}

}  // namespace infer
