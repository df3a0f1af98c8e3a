// The requests of a load: made up from a fixed list of words, so that every run of a mix sends the same texts.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace infer {

enum class Mix : uint8_t {
  kPrefill,  // long prompts, short answers
  kDecode,   // short prompts, long answers
  kChat,     // a system prompt that all share, some turns of conversation, answers of middle length
};

struct Workload {
  Mix mix = Mix::kChat;
  std::string model;     // "": the field is left out
  int prompt_words = 0;  // 0: the mix's own length
  int max_tokens = 0;    // 0: the mix's own
  bool chat_endpoint = true;

  // Path below /v1 of every request.
  std::string path() const { return chat_endpoint ? "/chat/completions" : "/completions"; }
  // Body of the index-th request: no two of one load have the same prompt.
  nlohmann::json body(uint64_t index) const;
};

}  // namespace infer
