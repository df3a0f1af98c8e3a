#include "src/text/vocabulary.h"

#include "ggml-like/error.h"
#include "src/text/pre_tokenizer.h"

namespace infer {

bool apply_pre_tokenizer_defaults(Vocabulary& v) {
  const PreTokenizerEntry* entry = find_pre_tokenizer(v.pre);
  if (!entry) {
    throw Error(ErrorCode::kUnsupported,
                concat("[vocabulary] tokenizer.ggml.pre: pre-tokenizer '", v.pre.substr(0, 100), "' is not supported"));
  }
  const uint32_t defaults = entry->defaults;
  v.add_space_prefix = false;
  v.escape_whitespaces = (defaults & kEscapeBlanks) != 0;
  v.clean_spaces = (defaults & kKeepSpaces) == 0;
  v.ignore_merges = (defaults & kIgnoreMerges) != 0;
  v.add_bos = (defaults & kAddBos) != 0;
  v.add_sep = (defaults & kAddSep) != 0;
  if (defaults & kNoDefaultBos) v.bos = kNoToken;
  return (defaults & kForceBos) != 0;
}

}  // namespace infer
