#include "src/text/prompt_tokens.h"

namespace infer {

std::vector<TokenId> encode_rendered_prompt(const Tokenizer& tokenizer, const RenderedText& prompt) {
  std::vector<TokenId> tokens = tokenizer.encode(prompt.text, false, true, prompt.from_caller);
  const Vocabulary& vocabulary = tokenizer.vocabulary();
  const bool wanted = vocabulary.add_bos && vocabulary.bos != kNoToken;
  if (wanted && (tokens.empty() || tokens.front() != vocabulary.bos)) tokens.insert(tokens.begin(), vocabulary.bos);
  return tokens;
}

std::vector<TokenId> encode_plain_prompt(const Tokenizer& tokenizer, std::string_view prompt) {
  std::vector<TokenId> tokens = tokenizer.encode(prompt, true, true);
  const Vocabulary& vocabulary = tokenizer.vocabulary();
  const bool added = vocabulary.add_bos && vocabulary.bos != kNoToken;
  if (added && tokens.size() > 1 && tokens[0] == vocabulary.bos && tokens[1] == vocabulary.bos) {
    tokens.erase(tokens.begin());
  }
  return tokens;
}

}  // namespace infer
