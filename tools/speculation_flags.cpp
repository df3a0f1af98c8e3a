#include "tools/speculation_flags.h"

#include <cstdio>

#include "ggml-like/bytes_text.h"
#include "ggml-like/error.h"
#include "src/model/model.h"
#include "tools/arguments.h"
#include "tools/flags.h"
#include "tools/model_by_name.h"

namespace infer {
namespace {

// Parses the value of --spec.
void set_source(SpeculationOptions& options, const std::string& source) {
  options.lookup = source == "lookup";
  options.prediction = source == "off" ? Prediction::kOff : source == "mtp" ? Prediction::kOn : Prediction::kAuto;
}

}  // namespace

void add_speculation_flags(CLI::App& app, SpeculationFlags& flags) {
  SpeculationOptions& options = flags.parsed;
  options.prediction = Prediction::kAuto;
  options.jump_forward = true;
  auto* model = app.add_option(flag_names("-md,--draft-model,--model-draft,--spec-draft-model"), flags.draft_model,
                               "A smaller model with the same vocabulary. It drafts several tokens, which the model "
                               "verifies in one step: the same text, faster")
                    ->check(not_empty())
                    ->type_name("FILE");
  app.add_option_function<std::string>(
         "--spec", [&options](const std::string& source) { set_source(options, source); },
         "Source of drafts. auto (default): the model's own prediction layer, if it has one; mtp: the same, but an "
         "error if it has none; lookup: what followed the same tokens earlier in the prompt, the answer or other "
         "requests, or else the prediction layer or --draft-model; off")
      ->check(one_of({"auto", "off", "lookup", "mtp"}))
      ->type_name("WORD");
  app.add_option(flag_names("--draft-max,--draft,--draft-n,--spec-draft-n-max"), options.most,
                 "Draft at most N tokens at a time (default: 8); the number adapts to the acceptance rate")
      ->check(whole_number(1, 32))
      ->type_name("N");
  app.add_option(flag_names("--draft-min,--draft-n-min,--spec-draft-n-min"), options.least,
                 "Skip verification if the draft model drafted fewer than N tokens (default: 0)")
      ->check(whole_number(0, 32))
      ->type_name("N")
      ->needs(model);
  app.add_option("--draft-p-min,--spec-draft-p-min", options.least_probability,
                 "The draft model stops before a token that it finds less probable than P (default: 0)")
      ->check(number(0, 1))
      ->type_name("P")
      ->needs(model);
  app.add_flag_callback(
      "--no-jump-forward", [&options] { options.jump_forward = false; },
      "Compute one token per step even where a grammar or schema leaves no choice");
  app.add_option_function<std::string>(
         flag_names("-ngld,--n-gpu-layers-draft,--gpu-layers-draft,--spec-draft-ngl"),
         [&options](const std::string& text) {
           options.draft_gpu_layers = parse_layers("--n-gpu-layers-draft", text, kAllLayers, true);
         },
         "The draft model's layers on the first device of --device: a number, auto or all (default: auto)")
      ->check(not_empty())
      ->type_name("N")
      ->needs(model);
  app.add_option_function<std::string>(
         flag_names("-ctkd,--cache-type-k-draft,--spec-draft-type-k"),
         [&options](const std::string& name) { options.key_type = cache_type("--cache-type-k-draft", name); },
         "Type of the draft model's cached keys")
      ->check(not_empty())
      ->check(suggests(cache_type_names()))
      ->type_name("TYPE")
      ->needs(model);
  app.add_option_function<std::string>(
         flag_names("-ctvd,--cache-type-v-draft,--spec-draft-type-v"),
         [&options](const std::string& name) { options.value_type = cache_type("--cache-type-v-draft", name); },
         "Type of the draft model's cached values")
      ->check(not_empty())
      ->check(suggests(cache_type_names()))
      ->type_name("TYPE")
      ->needs(model);
}

SpeculationOptions SpeculationFlags::options() const {
  SpeculationOptions options = parsed;
  if (options.least > options.most) {
    throw Error(ErrorCode::kInvalidArgument, concat("--draft-min ", options.least, " is more than --draft-max ",
                                                    options.most, ". Lower the one or raise the other."));
  }
  if (!draft_model.empty()) options.draft = load_model(open_model(draft_model));
  return options;
}

std::string speculation_summary(const Engine& engine) {
  const DraftCounts& drafts = engine.scheduler().stats().drafts;
  const EngineStats& stats = engine.stats();
  if (drafts.proposed == 0 || stats.decode_rounds == 0) return "";
  const auto ratio = [](int64_t a, int64_t b) { return static_cast<double>(a) / static_cast<double>(b); };
  char numbers[120];
  std::snprintf(numbers, sizeof(numbers), ", %.1f at a time, %.0f %% accepted, %.2f tokens per step",
                ratio(drafts.proposed, drafts.verifications), 100 * ratio(drafts.accepted, drafts.proposed),
                ratio(stats.decode_tokens, stats.decode_rounds));
  return concat("drafted ", grouped(static_cast<uint64_t>(drafts.proposed)), " tokens", numbers);
}

}  // namespace infer
