#include "src/text/prompt_tokens.h"

namespace infer {

std::vector<TokenId> encode_rendered_prompt(const Tokenizer& tokenizer, std::string_view prompt) {
  std::vector<TokenId> tokens = tokenizer.encode(prompt, false, true);
  const Vocabulary& vocabulary = tokenizer.vocabulary();
  const bool wanted = vocabulary.add_bos && vocabulary.bos != kNoToken;
  if (wanted && (tokens.empty() || tokens.front() != vocabulary.bos)) tokens.insert(tokens.begin(), vocabulary.bos);
  return tokens;
}

}  // namespace infer
