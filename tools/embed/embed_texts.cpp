#include "tools/embed/embed_texts.h"

#include <sstream>

#include "ggml-like/bytes_text.h"
#include "ggml-like/error.h"
#include "ggml-like/printable.h"
#include "src/text/rerank_prompt.h"
#include "tools/input.h"

namespace infer {
namespace {

void add_lines(const std::string& text, const std::string& name, std::vector<EmbedText>& texts) {
  std::istringstream lines(text);
  size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.ends_with('\r')) line.pop_back();
    texts.push_back({std::move(line), concat("Line ", ++number, " of ", name)});
  }
}

}  // namespace

std::vector<EmbedText> read_embed_texts(const std::vector<std::string>& arguments,
                                        const std::vector<std::string>& files, bool whole_files) {
  std::vector<EmbedText> texts;
  for (const std::string& text : arguments) texts.push_back({text, concat("Text ", texts.size() + 1)});
  std::vector<std::string> sources = files;
  if (texts.empty() && sources.empty()) sources = {"-"};
  for (const std::string& file : sources) {
    const std::string name = file == "-" ? "standard input" : printable(file, 200);
    std::string text = file == "-" ? read_stdin() : read_text_file(file);
    if (whole_files) {
      texts.push_back({std::move(text), name});
    } else {
      add_lines(text, name, texts);
    }
  }
  if (texts.empty()) throw Error(ErrorCode::kInvalidArgument, "No text. Give one, or a file of lines with -f.");
  return texts;
}

std::vector<TokenId> encode_embed_text(const EmbedText& text, const Model& model, const Tokenizer& tokenizer,
                                       const EmbedEncoding& encoding) {
  std::vector<TokenId> tokens =
      encoding.query ? encode_rerank_pair(tokenizer, model.file().get_string("tokenizer.chat_template.rerank"),
                                          *encoding.query, text.text)
                     : tokenizer.encode(text.text, true, false);
  if (tokens.empty()) throw Error(ErrorCode::kInvalidArgument, concat(text.place, " has no tokens. Remove it."));
  const auto most = static_cast<size_t>(encoding.most_tokens);
  if (tokens.size() <= most) return tokens;
  if (!encoding.truncates) {
    throw Error(ErrorCode::kInvalidArgument,
                concat(text.place, " has ", grouped(tokens.size()), " tokens; the context holds ", grouped(most),
                       ". Shorten it, raise -c if the model allows it, or give --truncate."));
  }
  const TokenId last = tokens.back();
  tokens.resize(most);
  if (tokenizer.is_control(last)) tokens.back() = last;
  return tokens;
}

}  // namespace infer
