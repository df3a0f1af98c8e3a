// The texts that `infer embed` reads, and their tokens.
#pragma once

#include <string>
#include <vector>

#include "src/model/model.h"
#include "src/text/tokenizer.h"

namespace infer {

struct EmbedText {
  std::string text;
  std::string place;  // for messages: "Line 3 of notes.txt", "Text 1"
};

// The texts given as arguments, else those of the files ("-": standard input): one per line, or one per file if
// `whole_files`; without either, the lines of standard input. Throws what read_text_file() throws, and
// Error(kInvalidArgument) if there is no text.
std::vector<EmbedText> read_embed_texts(const std::vector<std::string>& arguments,
                                        const std::vector<std::string>& files, bool whole_files);

// How texts are tokenized.
struct EmbedEncoding {
  const std::string* query = nullptr;  // not null: scores each text against it
  int64_t most_tokens = 0;             // per text
  bool truncates = false;              // longer texts are cut, keeping the end token; otherwise an error
};

// Throws Error(kInvalidArgument) for a text without tokens, and for one that is too long.
std::vector<TokenId> encode_embed_text(const EmbedText& text, const Model& model, const Tokenizer& tokenizer,
                                       const EmbedEncoding& encoding);

}  // namespace infer
