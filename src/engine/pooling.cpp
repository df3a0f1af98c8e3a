#include "src/engine/pooling.h"

#include <algorithm>
#include <cmath>

#include "ggml-like/error.h"
#include "src/model/classifier.h"

namespace infer {

void check_numbers(std::span<const float> results) {
  unsigned bad = 0;
  for (const float x : results) bad |= x != x ? 1 : 0;  // no early exit, so that the loop vectorizes
  if (bad == 0) return;
  throw Error(ErrorCode::kInvalidFile,
              "[engine] expected finite results from the model, found NaN; check the file with infer inspect --verify");
}

void normalize(std::vector<float>& vector, int p) {
  if (p < 0) return;
  double length = 0;
  for (const float x : vector) {
    const double size = std::abs(static_cast<double>(x));
    length = p == 0 ? std::max(length, size / 32760) : length + std::pow(size, p);
  }
  if (p > 0) length = p == 2 ? std::sqrt(length) : std::pow(length, 1.0 / p);
  const double scale = length > 0 ? 1 / length : 1;
  for (float& x : vector) x = static_cast<float>(x * scale);
}

bool Pooler::pools(const Sequence& s, int64_t position) {
  switch (s.request().pooling) {
    case Pooling::kNone:
    case Pooling::kRank:
      return false;
    case Pooling::kMean:
      return true;
    case Pooling::kLast:
      return position + 1 == s.prompt_length();
    case Pooling::kCls:
      return position == 0;
  }
  return false;
}

void Pooler::add(const StepPlan& plan, const ModelRunner& runner, int output) {
  for (const ScheduledSequence& s : plan.sequences) {
    if (s.sequence->request().pooling == Pooling::kNone) continue;
    std::vector<double>& sums = sums_[s.sequence->id()];
    if (s.first_position == 0) sums.clear();  // restarted, perhaps after a preemption
    sums.resize(static_cast<size_t>(runner.model().n_embd()));
    for (int64_t position = s.first_position; position < s.first_position + s.n_tokens; ++position) {
      if (!pools(*s.sequence, position)) continue;
      const std::span<const float> hidden = runner.hidden(output++);
      for (size_t i = 0; i < sums.size(); ++i) sums[i] += hidden[i];
    }
  }
}

std::vector<float> Pooler::take(const Sequence& s, const Model& model) {
  const auto sums = sums_.extract(s.id()).mapped();
  const double n = s.request().pooling == Pooling::kMean ? static_cast<double>(s.prompt_length()) : 1;
  std::vector<float> pooled;
  for (const double sum : sums) pooled.push_back(static_cast<float>(sum / n));
  if (s.request().classify) pooled = classify(*model.classifier(), pooled);
  check_numbers(pooled);
  return pooled;
}

}  // namespace infer
