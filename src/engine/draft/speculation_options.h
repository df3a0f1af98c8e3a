// The user's options for speculative decoding. Plain data.
#pragma once

#include <memory>
#include <optional>

#include "ggml-like/data_type.h"
#include "src/engine/placement.h"

namespace infer {

class Model;

// Whether a model's own prediction layer, if it has one, drafts for it.
enum class Prediction : uint8_t {
  kOff,
  kAuto,  // if there is one, and no draft model
  kOn,    // an error if there is none
};

struct SpeculationOptions {
  bool lookup = false;  // prompt lookup: drafts are what followed the same tokens before
  Prediction prediction = Prediction::kOff;
  std::shared_ptr<Model> draft;                  // the draft model, for when lookup finds nothing; null: none
  int draft_gpu_layers = kAutoLayers;            // layers of the draft to offload to the first device
  std::optional<DataType> key_type, value_type;  // of the draft's KV cache; unset: the device's default
  int most = 8;                                  // maximum drafts per sequence and step
  int least = 0;                                 // the draft model's drafts are not verified if there are fewer
  double least_probability = 0;                  // the draft model stops before a less probable token
  int fixed = 0;                                 // > 0: always this many if available, whether they pay off or not

  bool jump_forward = false;  // draft the text that a request's grammar forces

  // Whether requests without a grammar may get drafts.
  bool any() const { return lookup || draft; }
  int drafts_of_step() const { return fixed > 0 ? fixed : most; }
};

}  // namespace infer
