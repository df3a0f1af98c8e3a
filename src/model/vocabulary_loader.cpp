#include "src/model/vocabulary_loader.h"

#include <string>

#include "ggml-like/error.h"
#include "ggml-like/message.h"

namespace infer {
namespace {

constexpr char kPrefix[] = "tokenizer.ggml.";

template <typename Expected, typename Found>
[[noreturn]] void invalid_vocabulary(const std::string& key, const Expected& expected, const Found& found) {
  throw Error(ErrorCode::kInvalidFile, expected_found("vocabulary", kPrefix + key, expected, found));
}

class Loader {
 public:
  explicit Loader(const GgufFile& file) : file_(file) {}

  Vocabulary run() {
    v_.general_name = file_.get_string("general.name").value_or("");
    v_.architecture = file_.get_string("general.architecture").value_or("");
    set_model_defaults();
    read_tokens();
    read_special_ids();
    read_flags();
    return std::move(v_);
  }

 private:
  static std::string key(const char* name) { return std::string(kPrefix) + name; }

  void set_model_defaults() {
    const std::optional<std::string> model = file_.get_string(key("model"));
    if (!model) invalid_vocabulary("model", "the name of a tokenizer", "none");
    v_.pre = file_.get_string(key("pre")).value_or("");
    if (*model == "llama") {
      v_.model = TokenizerModel::kSentencePiece;
      v_.bos = 1, v_.eos = 2, v_.unk = 0;
      v_.add_bos = true;
    } else if (*model == "bert") {
      v_.model = TokenizerModel::kWordPiece;
      v_.bos = 101, v_.unk = 100, v_.sep = 102, v_.pad = 0, v_.mask = 103;
      v_.add_bos = v_.add_sep = true;
      v_.add_space_prefix = false;
      v_.clean_spaces = true;
    } else if (*model == "t5") {
      v_.model = TokenizerModel::kUnigram;
      v_.eos = 1, v_.unk = 2, v_.pad = 0;
      v_.add_eos = true;
      v_.add_space_prefix = false;
      read_character_map();
    } else if (*model == "gpt2" || *model == "gemma4") {
      v_.model = TokenizerModel::kBpe;
      if (*model == "gpt2") v_.bos = v_.eos = 11;
      else v_.pre = "gemma4";
      force_bos_ = apply_pre_tokenizer_defaults(v_);
      std::optional<std::vector<std::string>> merges = file_.get_string_array(key("merges"));
      if (!merges) invalid_vocabulary("merges", "a list of merges", "none");
      v_.merges = std::move(*merges);
    } else {
      throw Error(ErrorCode::kUnsupported, concat("[vocabulary] ", kPrefix, "model: tokenizer '", model->substr(0, 100),
                                                  "' is not supported (llama, gpt2, gemma4, bert and t5 are)"));
    }
  }

  void read_character_map() {
    const GgufValue* value = file_.find(key("precompiled_charsmap"));
    if (!value) return;
    if (value->type != GgufType::kArray ||
        (value->element_type != GgufType::kUint8 && value->element_type != GgufType::kInt8)) {
      invalid_vocabulary("precompiled_charsmap", "an array of bytes", "another type");
    }
    const auto bytes = file_.get_int_array(key("precompiled_charsmap"));
    v_.precompiled_charsmap.reserve(bytes->size());
    for (const int64_t byte : *bytes) v_.precompiled_charsmap.push_back(static_cast<uint8_t>(byte));
  }

  void read_tokens() {
    std::optional<std::vector<std::string>> tokens = file_.get_string_array(key("tokens"));
    if (!tokens || tokens->empty()) invalid_vocabulary("tokens", "a list of tokens", tokens ? "an empty one" : "none");
    const auto check_length = [&](const char* name, size_t length) {
      if (length < tokens->size()) {
        invalid_vocabulary(name, concat(tokens->size(), " entries, one per token"), length);
      }
    };
    const auto scores = file_.get_float_array(key("scores"));
    const auto types = file_.get_int_array(key("token_type"));
    if (scores) check_length("scores", scores->size());
    if (types) check_length("token_type", types->size());
    v_.tokens.resize(tokens->size());
    for (size_t id = 0; id < tokens->size(); ++id) {
      Vocabulary::Token& token = v_.tokens[id];
      token.text = std::move((*tokens)[id]);
      if (scores) token.score = static_cast<float>((*scores)[id]);
      if (types) {
        const int64_t type = (*types)[id];
        // Type 0 and unknown types: a token without text of its own.
        token.type = type >= 1 && type <= 6 ? static_cast<TokenType>(type) : TokenType::kUnused;
      }
    }
  }

  void read_special_ids() {
    const std::pair<const char*, TokenId&> ids[] = {
        {"bos_token_id", v_.bos},         {"eos_token_id", v_.eos},         {"eot_token_id", v_.eot},
        {"eom_token_id", v_.eom},         {"unknown_token_id", v_.unk},     {"seperator_token_id", v_.sep},
        {"padding_token_id", v_.pad},     {"cls_token_id", v_.cls},         {"mask_token_id", v_.mask},
        {"prefix_token_id", v_.fim_pre},  {"suffix_token_id", v_.fim_suf},  {"middle_token_id", v_.fim_mid},
        {"fim_pre_token_id", v_.fim_pre}, {"fim_suf_token_id", v_.fim_suf}, {"fim_mid_token_id", v_.fim_mid},
        {"fim_pad_token_id", v_.fim_pad}, {"fim_rep_token_id", v_.fim_rep}, {"fim_sep_token_id", v_.fim_sep},
    };
    const auto n_tokens = static_cast<int64_t>(v_.tokens.size());
    for (const auto& [name, id] : ids) {
      if (id >= n_tokens) id = kNoToken;  // a default intended for larger vocabularies
      const std::optional<int64_t> given = file_.get_int(key(name));
      if (!given || *given == -1 || *given == UINT32_MAX) continue;  // some converters write one of these for "none"
      if (*given < 0 || *given >= n_tokens) invalid_vocabulary(name, concat("an id below ", n_tokens), *given);
      id = static_cast<TokenId>(*given);
    }
    if (const auto suppressed = file_.get_int_array(key("suppress_tokens"))) {
      for (const int64_t id : *suppressed) {
        if (id >= 0 && id < n_tokens) v_.suppressed.push_back(static_cast<TokenId>(id));
      }
    }
  }

  void read_flags() {
    const auto read = [&](const char* name, bool& flag) { flag = file_.get_bool(key(name)).value_or(flag); };
    read("add_bos_token", v_.add_bos);
    read("add_eos_token", v_.add_eos);
    read("add_sep_token", v_.add_sep);
    read("add_space_prefix", v_.add_space_prefix);
    read("remove_extra_whitespaces", v_.remove_extra_whitespaces);
    read("normalizer.lowercase", v_.lowercase);
    v_.strip_accents = v_.lowercase;
    read("normalizer.strip_accents", v_.strip_accents);
    if (force_bos_) v_.add_bos = true;
  }

  const GgufFile& file_;
  Vocabulary v_;
  bool force_bos_ = false;
};

}  // namespace

Vocabulary load_vocabulary(const GgufFile& file) { return Loader(file).run(); }

}  // namespace infer
