#include "tools/bench_serve/workload.h"

#include <nlohmann/json.hpp>
#include <random>

namespace infer {
namespace {

using nlohmann::json;

constexpr const char* kWords[] = {
    "river", "stone", "morning", "engine", "garden", "letter", "window", "forest", "number", "bridge",  "winter",
    "table", "music", "harbor",  "paper",  "circle", "summer", "valley", "silver", "market", "lantern", "cloud",
    "small", "quiet", "bright",  "early",  "open",   "round",  "green",  "slow",   "walks",  "finds",   "keeps",
    "opens", "turns", "carries", "sees",   "makes",  "over",   "under",  "near",   "with",   "from",    "into",
};

std::string some_words(std::mt19937_64& random, int n) {
  std::string text;
  for (int i = 0; i < n; ++i) {
    if (i > 0) text += i % 11 == 0 ? ". " : " ";
    text += kWords[random() % std::size(kWords)];
  }
  return text + ".";
}

struct Lengths {
  int prompt_words, max_tokens;
};

Lengths lengths_of(Mix mix) {
  switch (mix) {
    case Mix::kPrefill:
      return {600, 8};
    case Mix::kDecode:
      return {12, 128};
    case Mix::kChat:
      break;
  }
  return {200, 64};
}

}  // namespace

json Workload::body(uint64_t index) const {
  const Lengths own = lengths_of(mix);
  const int words = prompt_words > 0 ? prompt_words : own.prompt_words;
  std::mt19937_64 random(index + 1), shared(0);
  json messages = json::array();
  std::string prompt = "Text " + std::to_string(index) + ": ";
  if (!prompts.empty()) {
    prompt = prompts[index % prompts.size()];
    messages.push_back({{"role", "user"}, {"content", prompt}});
  } else if (mix == Mix::kChat) {
    const std::string system = "You answer briefly. " + some_words(shared, words / 2);
    const std::string first = some_words(random, words / 8), answer = some_words(random, words / 8);
    const std::string last = prompt + some_words(random, words / 4);
    messages.push_back({{"role", "system"}, {"content", system}});
    messages.push_back({{"role", "user"}, {"content", first}});
    messages.push_back({{"role", "assistant"}, {"content", answer}});
    messages.push_back({{"role", "user"}, {"content", last}});
    prompt = system + "\n" + first + "\n" + answer + "\n" + last;
  } else {
    prompt += some_words(random, words);
    messages.push_back({{"role", "user"}, {"content", prompt}});
  }
  json body = {{"stream", true},
               {"stream_options", {{"include_usage", true}}},
               {"max_tokens", max_tokens > 0 ? max_tokens : own.max_tokens},
               {"temperature", 0}};
  if (chat_endpoint) {
    body["messages"] = std::move(messages);
  } else {
    body["prompt"] = std::move(prompt);
  }
  if (!model.empty()) body["model"] = model;
  if (!cache_salt.empty()) body["cache_salt"] = cache_salt;
  if (max_drafts) {
    body["speculative.n_max"] = *max_drafts;
    body["timings"] = true;
  }
  return body;
}

}  // namespace infer
