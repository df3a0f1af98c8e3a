#include "src/text/sampler_chain.h"

#include <algorithm>

namespace infer {
namespace {

struct StageInfo {
  SamplerStage stage;
  std::string_view name;
  char letter;
  std::string_view other_names;  // with blanks around each
  void (*turn_off)(SamplingParams& params);
};

// In the default order, with llama.cpp's names and letters.
constexpr StageInfo kStages[] = {
    {SamplerStage::kPenalties, "penalties", 'e', "", [](SamplingParams& p) { p.repeat_last_n = 0; }},
    {SamplerStage::kDry, "dry", 'd', "", [](SamplingParams& p) { p.dry_multiplier = 0; }},
    {SamplerStage::kTopNSigma, "top_n_sigma", 's', "", [](SamplingParams& p) { p.top_n_sigma = -1; }},
    {SamplerStage::kTopK, "top_k", 'k', "", [](SamplingParams& p) { p.top_k = 0; }},
    {SamplerStage::kTypical, "typ_p", 'y', " typ typical typical_p ", [](SamplingParams& p) { p.typical_p = 1; }},
    {SamplerStage::kTopP, "top_p", 'p', " nucleus ", [](SamplingParams& p) { p.top_p = 1; }},
    {SamplerStage::kMinP, "min_p", 'm', "", [](SamplingParams& p) { p.min_p = 0; }},
    {SamplerStage::kXtc, "xtc", 'x', "", [](SamplingParams& p) { p.xtc_probability = 0; }},
    {SamplerStage::kTemperature, "temperature", 't', " temp ",
     [](SamplingParams& p) { p.temperature = 1, p.dynatemp_range = 0; }},
};

}  // namespace

std::optional<SamplerStage> stage_by_name(std::string_view name) {
  std::string plain(name);
  std::replace(plain.begin(), plain.end(), '-', '_');
  if (plain.find(' ') != std::string::npos) return std::nullopt;  // it separates the other names
  for (const StageInfo& info : kStages) {
    if (plain == info.name) return info.stage;
    if (!plain.empty() && info.other_names.find(" " + plain + " ") != std::string_view::npos) return info.stage;
  }
  return std::nullopt;
}

std::optional<SamplerStage> stage_by_letter(char letter) {
  for (const StageInfo& info : kStages) {
    if (letter == info.letter) return info.stage;
  }
  return std::nullopt;
}

std::string stage_names(std::string_view separator) {
  std::string names;
  for (const StageInfo& info : kStages) names.append(names.empty() ? "" : separator).append(info.name);
  return names;
}

std::string stage_letters() {
  std::string letters;
  for (const StageInfo& info : kStages) letters += info.letter;
  return letters;
}

SamplingParams with_stages_off(SamplingParams params) {
  if (!params.chain) return params;
  const std::vector<SamplerStage> chain = *params.chain;
  for (const StageInfo& info : kStages) {
    if (std::find(chain.begin(), chain.end(), info.stage) == chain.end()) info.turn_off(params);
  }
  const bool repeats_or_reorders = std::adjacent_find(chain.begin(), chain.end(), [](SamplerStage a, SamplerStage b) {
                                     return a >= b;
                                   }) != chain.end();
  if (!repeats_or_reorders) params.chain.reset();
  return params;
}

}  // namespace infer
