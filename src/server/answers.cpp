#include "src/server/answers.h"

namespace infer {

void Answers::take(const AnswerEvent& event) {
  usage.prompt_tokens += event.prompt_tokens;
  usage.cached_tokens += event.cached_tokens;
  usage.completion_tokens += event.new_tokens;
  AnswerRecord& choice = choices[static_cast<size_t>(event.choice)];
  choice.content += event.delta.content;
  choice.reasoning += event.delta.reasoning;
  for (const MessageDelta& part : event.delta.calls) {
    if (part.index >= choice.calls.size()) choice.calls.push_back({part.id, part.name, ""});
    choice.calls[part.index].arguments += part.text;
  }
  choice.scores.insert(choice.scores.end(), event.delta.scores.begin(), event.delta.scores.end());
  if (!event.prompt_scores.empty()) choice.prompt_scores = event.prompt_scores;
  choice.n_tokens += event.new_tokens;
  choice.finished = event.finished;
  choice.times = event.times;
  choice.drafts = event.drafts;
}

}  // namespace infer
