// The names of the sampling chain's stages, and chains as users write them. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/text/sampler_params.h"

namespace infer {

// The stage with this name ("top_k", "top-k") or llama.cpp's letter ("k"); nullopt if there is none.
std::optional<SamplerStage> stage_by_name(std::string_view name);
std::optional<SamplerStage> stage_by_letter(char letter);

// "penalties, dry, ..." and "edskypmxt": all stages in the default order.
std::string stage_names(std::string_view separator);
std::string stage_letters();

// `params` with the stages that its chain leaves out turned off. `chain` stays only if its order is not the default.
SamplingParams with_stages_off(SamplingParams params);

}  // namespace infer
