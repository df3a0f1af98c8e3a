// What a user may ask of speculative decoding. Plain data.
#pragma once

#include <memory>
#include <optional>

#include "ggml-like/data_type.h"
#include "src/engine/placement.h"

namespace infer {

class Model;

// Whether the prediction layer that some models have drafts for them.
enum class Prediction : uint8_t {
  kOff,
  kAuto,  // where there is one, and no draft model
  kOn,    // an error where there is none
};

struct SpeculationOptions {
  bool lookup = false;  // drafts are what followed the same tokens before
  Prediction prediction = Prediction::kOff;
  std::shared_ptr<Model> draft;                  // a model that drafts, where nothing is looked up; null: none
  int draft_gpu_layers = kAutoLayers;            // of the draft, on the first device
  std::optional<DataType> key_type, value_type;  // of the draft's KV cache; unset: that of the device
  int most = 8;                                  // drafts of a sequence in a step
  int least = 0;                                 // fewer drafts of the draft model are not verified
  double least_probability = 0;                  // below it the draft model makes no further draft
  int fixed = 0;                                 // > 0: always so many where there are any, whether they pay or not

  bool jump_forward = false;  // drafts are what a request's grammar leaves no choice about

  // Whether there may be drafts of requests without a grammar.
  bool any() const { return lookup || draft; }
  int drafts_of_step() const { return fixed > 0 ? fixed : most; }
};

}  // namespace infer
