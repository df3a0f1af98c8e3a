// The vocabulary of a model as plain data; the model loader fills it from GGUF metadata. No tensors, no files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace infer {

using TokenId = int32_t;
inline constexpr TokenId kNoToken = -1;

// The tokenization algorithm (`tokenizer.ggml.model`).
enum class TokenizerModel {
  kSentencePiece,  // "llama": SentencePiece BPE by score, byte fallback
  kBpe,            // "gpt2": byte-level BPE by merge rank
  kWordPiece,      // "bert"
  kUnigram,        // "t5": SentencePiece Unigram
};

// `tokenizer.ggml.token_type`, numbered as in the file.
enum class TokenType : int32_t { kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kUnused = 5, kByte = 6 };

struct Vocabulary {
  TokenizerModel model = TokenizerModel::kBpe;
  std::string pre;  // `tokenizer.ggml.pre`, "" if absent: the name of BPE's pre-tokenizer

  struct Token {
    std::string text;  // as stored: byte-level BPE in its printable alphabet, SentencePiece with U+2581 for spaces
    float score = 0;
    TokenType type = TokenType::kNormal;
  };
  std::vector<Token> tokens;
  std::vector<std::string> merges;  // "left right", in rank order; BPE only

  TokenId bos = kNoToken, eos = kNoToken, eot = kNoToken, eom = kNoToken, unk = kNoToken, sep = kNoToken,
          pad = kNoToken, cls = kNoToken, mask = kNoToken, nl = kNoToken;
  TokenId fim_pre = kNoToken, fim_suf = kNoToken, fim_mid = kNoToken, fim_pad = kNoToken, fim_rep = kNoToken,
          fim_sep = kNoToken;
  bool add_bos = false, add_eos = false, add_sep = false;
  bool add_space_prefix = true;
  bool remove_extra_whitespaces = false;
  bool escape_whitespaces = true;
  bool ignore_merges = false;
  bool clean_spaces = false;
  std::string general_name;                   // `general.name`, because some files need quirks that depend on it
  std::vector<uint8_t> precompiled_charsmap;  // Unigram normalization; empty if absent
  std::string architecture;                   // `general.architecture`, for the same reason
  std::vector<TokenId> eog_listed;            // ids that end generation, besides those the tokenizer recognises
  std::vector<TokenId> suppressed;            // ids the file asks never to be sampled
  bool lowercase = true;                      // WordPiece: fold case
  bool strip_accents = true;                  // WordPiece: decompose and drop combining marks
};

// Sets the defaults implied by `pre` where the file does not override them: special tokens added, merges ignored,
// spaces kept. Returns whether BOS is added regardless of the file. Throws Error(kUnsupported) for an unknown name.
bool apply_pre_tokenizer_defaults(Vocabulary& vocabulary);

}  // namespace infer
