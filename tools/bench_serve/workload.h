// The requests of a load test, generated from a fixed list of words, so that every run of a mix sends the same texts.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace infer {

enum class Mix : uint8_t {
  kPrefill,  // long prompts, short answers
  kDecode,   // short prompts, long answers
  kChat,     // a system prompt shared by all, several turns of conversation, medium answers
};

struct Workload {
  Mix mix = Mix::kChat;
  std::string model;     // "": the field is omitted
  int prompt_words = 0;  // 0: the mix's default
  int max_tokens = 0;    // 0: the mix's default
  bool chat_endpoint = true;
  std::vector<std::string> prompts = {};  // sent in turn; empty: made-up texts
  std::optional<int> max_drafts =
      std::nullopt;             // sent as speculative.n_max, with a request for timings; unset: omitted
  std::string cache_salt = "";  // "": the field is omitted

  // Path of every request, below /v1.
  std::string path() const { return chat_endpoint ? "/chat/completions" : "/completions"; }
  // Body of the index-th request. All made-up prompts of one load differ.
  nlohmann::json body(uint64_t index) const;
};

}  // namespace infer
