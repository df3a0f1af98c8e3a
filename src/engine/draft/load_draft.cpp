#include "src/engine/draft/load_draft.h"

#include <algorithm>

#include "ggml-like/bytes_text.h"
#include "ggml-like/error.h"
#include "ggml-like/printable.h"
#include "src/engine/kv_cache_size.h"
#include "src/engine/load_runner.h"

namespace infer {
namespace {

bool unused(const Vocabulary::Token& token) { return token.type == TokenType::kUnused; }

EngineOptions draft_engine_options(const EngineOptions& options) {
  EngineOptions draft = options;
  draft.speculation = {};
  draft.placement = {};
  draft.placement.n_gpu_layers = options.speculation.draft_gpu_layers;
  // A draft model is small and runs before every step, so splitting it over devices would cost more than it gains.
  draft.placement.tensor_split.assign(options.opened->of_layers.size(), 0);
  draft.placement.tensor_split.front() = 1;
  draft.key_type = options.speculation.key_type;
  draft.value_type = options.speculation.value_type;
  const int trained = options.speculation.draft->context_length();
  if (trained > 0 && draft.context > trained) draft.context = trained;
  draft.draft_rows = 0;
  draft.all_logits = draft.embeddings = draft.profile = false;
  draft.logits_bytes = 0;
  draft.observers.clear();
  draft.product_observer = nullptr;
  return draft;
}

}  // namespace

EngineOptions with_prediction(const EngineOptions& options, const Model& target) {
  EngineOptions result = options;
  std::shared_ptr<Model>& draft = result.speculation.draft;
  const Prediction asked = options.speculation.prediction;
  if (asked == Prediction::kOn && draft) {
    throw Error(ErrorCode::kInvalidArgument,
                "Drafts come from the model's own prediction layer or from a draft model. Choose one of them.");
  }
  if (asked == Prediction::kOff || draft) return result;
  try {
    draft = load_model(target.shared_file(), ModelPart::kPrediction);
  } catch (const Error& error) {
    if (asked == Prediction::kOn || error.code() != ErrorCode::kUnsupported) throw;
  }
  return result;
}

void check_draft(const Model& target, const Model& draft) {
  const auto &ours = target.vocabulary().tokens, &theirs = draft.vocabulary().tokens;
  const auto fail = [](const std::string& text) {
    throw Error(ErrorCode::kInvalidArgument, text + " Choose a draft with the same vocabulary.");
  };
  for (const CacheGroup& group : draft.cache_groups()) {
    if (group.kind != CacheKind::kState) continue;
    throw Error(ErrorCode::kUnsupported,
                "The draft model has recurrent layers, whose state cannot go back when a draft is rejected. Choose a "
                "draft without them.");
  }
  const size_t common = std::min(ours.size(), theirs.size());
  for (size_t i = 0; i < common; ++i) {
    if (ours[i].text == theirs[i].text || (unused(ours[i]) && unused(theirs[i]))) continue;
    fail(concat("The draft model has a different vocabulary: token ", grouped(i), " is ", printable(theirs[i].text, 40),
                " there and ", printable(ours[i].text, 40), " in the main model."));
  }
  for (const auto* longer : {&ours, &theirs}) {
    if (std::all_of(longer->begin() + static_cast<std::ptrdiff_t>(common), longer->end(), unused)) continue;
    fail(concat("The draft model has a vocabulary of ", grouped(theirs.size()), " tokens, the main model one of ",
                grouped(ours.size()), "."));
  }
  if (draft.config().part == ModelPart::kPrediction || draft.weight_bytes() < target.weight_bytes()) return;
  throw Error(ErrorCode::kInvalidArgument,
              concat("The draft model (", bytes_text(draft.weight_bytes()), ") is not smaller than the model (",
                     bytes_text(target.weight_bytes()), "), so it would only slow it down. Choose a smaller draft."));
}

RunnerOptions draft_runner_options(const EngineOptions& options) {
  const std::shared_ptr<Model>& model = options.speculation.draft;
  const EngineOptions draft = draft_engine_options(options);
  RunnerOptions runner = runner_options(model, draft, nullptr);
  if (model->config().part == ModelPart::kPrediction) runner.capacity.hidden = model->n_embd();
  runner.n_blocks = cache_blocks(
      DraftModel::cache_groups(*model),
      {choose_context(*model, draft.context), draft.max_sequences, draft.step_tokens, draft.cache_tokens, true});
  return runner;
}

std::vector<DeviceUse> plan_draft_memory(const EngineOptions& options) {
  if (!options.speculation.draft) return {};
  return plan_memory_use(options.speculation.draft, draft_runner_options(options));
}

std::unique_ptr<DraftModel> load_draft(const EngineOptions& options, const RunnerOptions& runner,
                                       const SchedulerConfig& config) {
  const std::shared_ptr<Model>& model = options.speculation.draft;
  SchedulerConfig draft = config;
  draft.max_context = choose_context(*model, draft_engine_options(options).context);
  draft.max_outputs = runner.capacity.logits;
  std::vector<CacheGroup> groups = DraftModel::cache_groups(*model);
  for (size_t g = 0; g < groups.size(); ++g) groups[g].n_blocks = runner.n_blocks[g];
  try {
    return std::make_unique<DraftModel>(load_runner(model, runner, options.note), draft, std::move(groups),
                                        runner.capacity);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kOutOfMemory) throw;
    throw Error(ErrorCode::kOutOfMemory,
                concat("The model fits in memory, but the draft model does not (", error.what(),
                       "). Choose a smaller draft, or a smaller context with -c."));
  }
}

}  // namespace infer
