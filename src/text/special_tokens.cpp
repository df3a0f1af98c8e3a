#include "src/text/special_tokens.h"

#include <algorithm>
#include <cctype>
#include <initializer_list>
#include <set>
#include <span>
#include <string>
#include <string_view>

namespace infer {
namespace {

using Texts = std::span<const std::string_view>;

// If a vocabulary contains several of a list, the first one listed is used.
constexpr std::string_view kEndOfTurn[] = {
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "<\xEF\xBD\x9C"
    "end\xE2\x96\x81of\xE2\x96\x81sentence\xEF\xBD\x9C>",  // DeepSeek: fullwidth bars, U+2581
    "<end_of_utterance>",
};
constexpr std::string_view kEndOfMessage[] = {"<|eom_id|>"};
constexpr std::string_view kFimPrefix[] = {"<|fim_prefix|>",
                                           "<fim-prefix>",
                                           "<fim_prefix>",
                                           "<\xEF\xBD\x9C"
                                           "fim\xE2\x96\x81"
                                           "begin\xEF\xBD\x9C>",
                                           "<PRE>",
                                           "\xE2\x96\x81<PRE>",
                                           "<|code_prefix|>",
                                           "<|prefix|>"};
constexpr std::string_view kFimSuffix[] = {"<|fim_suffix|>",
                                           "<fim-suffix>",
                                           "<fim_suffix>",
                                           "<\xEF\xBD\x9C"
                                           "fim\xE2\x96\x81hole\xEF\xBD\x9C>",
                                           "<SUF>",
                                           "\xE2\x96\x81<SUF>",
                                           "<|code_suffix|>",
                                           "<|suffix|>"};
constexpr std::string_view kFimMiddle[] = {"<|fim_middle|>",
                                           "<fim-middle>",
                                           "<fim_middle>",
                                           "<\xEF\xBD\x9C"
                                           "fim\xE2\x96\x81"
                                           "end\xEF\xBD\x9C>",
                                           "<MID>",
                                           "\xE2\x96\x81<MID>",
                                           "<|code_middle|>",
                                           "<|middle|>"};
constexpr std::string_view kFimPad[] = {"<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]"};
constexpr std::string_view kFimRepository[] = {"<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>"};
constexpr std::string_view kFimSeparator[] = {"<|file_sep|>"};
constexpr std::string_view kEndOfGeneration[] = {
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|flush|>",
    "<|calls|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "</s>",
    "<|eom_id|>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "[EOS]",
    "<|end_of_text|>",
    "<end_of_utterance>",
    "<eos>",
    "<turn|>",
    "<|tool_response>",
    "<\xEF\xBD\x9C"
    "end\xE2\x96\x81of\xE2\x96\x81sentence\xEF\xBD\x9C>",
    "[e~[",
};
// gpt-oss's message markers are always shown, because the parser of its answers needs them.
constexpr std::string_view kAlwaysShown[] = {"<|channel|>", "<|message|>", "<|start|>", "<|constrain|>"};

uint8_t attribute_of(TokenType type) {
  switch (type) {
    case TokenType::kNormal:
      return kAttrNormal;
    case TokenType::kUnknown:
      return kAttrUnknown;
    case TokenType::kControl:
      return kAttrControl;
    case TokenType::kUserDefined:
      return kAttrUserDefined;
    case TokenType::kByte:
      return kAttrByte;
    case TokenType::kUnused:
      return 0;
  }
  return 0;
}

bool contains_any(std::string_view text, std::initializer_list<std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](std::string_view part) { return text.find(part) != std::string_view::npos; });
}

class Finder {
 public:
  Finder(Vocabulary& vocabulary, const TextMap& index) : vocabulary_(vocabulary), index_(index) {
    for (const Vocabulary::Token& token : vocabulary.tokens) attributes_.push_back(attribute_of(token.type));
  }

  SpecialTokens run() {
    detect(vocabulary_.eot, kEndOfTurn);
    detect(vocabulary_.eom, kEndOfMessage);
    detect(vocabulary_.fim_pre, kFimPrefix);
    detect(vocabulary_.fim_suf, kFimSuffix);
    detect(vocabulary_.fim_mid, kFimMiddle);
    detect(vocabulary_.fim_pad, kFimPad);
    detect(vocabulary_.fim_rep, kFimRepository);
    detect(vocabulary_.fim_sep, kFimSeparator);
    collect_eog();
    set_strip_attributes();
    return {std::move(attributes_), {eog_.begin(), eog_.end()}};
  }

 private:
  uint8_t& attributes(TokenId id) { return attributes_[static_cast<size_t>(id)]; }

  void detect(TokenId& id, Texts texts) {
    if (id != kNoToken) return;
    for (const std::string_view text : texts) {
      id = index_.find(text);
      if (id == kNoToken) continue;
      attributes(id) |= kAttrControl;  // overrides the file
      return;
    }
  }

  void collect_eog() {
    const Vocabulary& v = vocabulary_;
    const auto add = [&](TokenId id) {
      if (id != kNoToken) eog_.insert(id);
    };
    for (const TokenId id : {v.fim_pad, v.fim_rep, v.fim_sep}) add(id);
    for (const std::string_view text : kEndOfGeneration) {
      const TokenId id = index_.find(text);
      if (id == kNoToken) continue;
      add(id);
      attributes(id) |= kAttrControl;
    }
    for (const std::string_view text : kAlwaysShown) {
      if (const TokenId id = index_.find(text); id != kNoToken) attributes(id) = kAttrUserDefined;
    }
    for (const TokenId id : {v.eos, v.eot, v.eom}) add(id);
    for (const TokenId id : v.eog_listed) add(id);

    // In the harmony and solar formats, "<|end|>" ends a message, not the turn.
    const auto ends = [&](std::string_view text) {
      const TokenId id = index_.find(text);
      return id != kNoToken && eog_.count(id) > 0;
    };
    const bool has_call = ends("<|call|>") || ends("<|calls|>");
    if (has_call && (ends("<|return|>") || ends("<|flush|>")) && ends("<|end|>")) drop("<|end|>", kAttrUserDefined);
    // In Gemma 4, "</s>" is an HTML tag.
    if (ends("<|tool_response>") && ends("</s>")) drop("</s>", kAttrNormal);
  }

  void drop(std::string_view text, uint8_t attribute) {
    const TokenId id = index_.find(text);
    eog_.erase(id);
    attributes(id) = attribute;
  }

  // The file format cannot express these attributes, so they depend on names.
  void set_strip_attributes() {
    const auto set = [&](std::string_view text, uint8_t attribute, bool on) {
      const TokenId id = index_.find(text);
      if (id == kNoToken) return;
      attributes(id) = static_cast<uint8_t>(on ? attributes(id) | attribute : attributes(id) & ~attribute);
    };
    std::string name = vocabulary_.general_name;
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
    if (contains_any(vocabulary_.pre, {"jina-v2-de", "jina-v2-es", "jina-v2-code"}) ||
        contains_any(vocabulary_.architecture, {"nomic-bert-moe", "jina-bert-v3"})) {
      set("<mask>", kAttrStripLeft, true);
    } else if (contains_any(name, {"phi-3", "phi3"})) {
      for (uint8_t& attribute : attributes_) {
        if (attribute & (kAttrControl | kAttrUserDefined | kAttrUnknown)) attribute |= kAttrStripRight;
      }
      set("</s>", kAttrStripRight, true);
      for (const std::string_view text : {"<unk>", "<s>", "<|endoftext|>"}) set(text, kAttrStripRight, false);
    } else if (contains_any(name, {"modern-bert"})) {
      set("[MASK]", kAttrStripLeft, true);
    }
  }

  Vocabulary& vocabulary_;
  const TextMap& index_;
  std::vector<uint8_t> attributes_;
  std::set<TokenId> eog_;
};

}  // namespace

SpecialTokens find_special_tokens(Vocabulary& vocabulary, const TextMap& index) {
  return Finder(vocabulary, index).run();
}

}  // namespace infer
