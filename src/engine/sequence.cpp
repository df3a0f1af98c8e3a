#include "src/engine/sequence.h"

namespace infer {

std::string_view finish_reason_name(FinishReason reason) {
  switch (reason) {
    case FinishReason::kNone:
      return "none";
    case FinishReason::kEndOfGeneration:
      return "end of generation";
    case FinishReason::kStopString:
      return "stop string";
    case FinishReason::kMaxTokens:
      return "max tokens";
    case FinishReason::kContextFull:
      return "context full";
    case FinishReason::kCancelled:
      return "cancelled";
    case FinishReason::kError:
      return "error";
  }
  return "unknown";
}

Sequence::Sequence(Request request, Sampler sampler, int64_t rank, uint64_t arrival, uint32_t choice)
    : request_(std::move(request)),
      sampler_(std::move(sampler)),
      rank_(rank),
      arrival_(arrival),
      choice_(choice),
      tokens_(request_.prompt),
      n_prompt_(static_cast<int64_t>(tokens_.size())),
      n_known_(n_prompt_) {}

}  // namespace infer
