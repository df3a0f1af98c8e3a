#include "src/text/rerank_prompt.h"

#include <array>
#include <utility>

namespace infer {
namespace {

// `form` with its two placeholders filled in; the inserted texts are plain text.
RenderedText fill_in(std::string_view form, std::string_view query, std::string_view document) {
  const std::array<std::pair<std::string_view, std::string_view>, 2> marks = {
      {{"{query}", query}, {"{document}", document}}};
  RenderedText out;
  for (size_t at = 0; at < form.size();) {
    bool replaced = false;
    for (const auto& [mark, text] : marks) {
      if (!form.substr(at).starts_with(mark)) continue;
      if (!text.empty()) out.from_caller.push_back({out.text.size(), out.text.size() + text.size()});
      out.text += text;
      at += mark.size();
      replaced = true;
      break;
    }
    if (!replaced) out.text += form[at++];
  }
  return out;
}

}  // namespace

std::vector<TokenId> encode_rerank_pair(const Tokenizer& tokenizer, const std::optional<std::string>& form,
                                        std::string_view query, std::string_view document) {
  if (form) {
    const RenderedText prompt = fill_in(*form, query, document);
    return tokenizer.encode(prompt.text, false, true, prompt.from_caller);
  }
  const Vocabulary& v = tokenizer.vocabulary();
  const bool word_piece = v.model == TokenizerModel::kWordPiece;  // [CLS] query [SEP] document [SEP]
  const TokenId end = word_piece ? v.sep : v.add_eos ? v.eos : kNoToken;
  std::vector<TokenId> tokens;
  const auto add = [&](TokenId token) {
    if (token != kNoToken) tokens.push_back(token);
  };
  const auto add_text = [&](std::string_view text) {
    const std::vector<TokenId> encoded = tokenizer.encode(text, false, false);
    tokens.insert(tokens.end(), encoded.begin(), encoded.end());
  };
  if (v.add_bos || word_piece) add(v.bos);
  add_text(query);
  add(end);
  if (v.add_sep && !word_piece) add(v.sep);
  add_text(document);
  add(end);
  return tokens;
}

}  // namespace infer
