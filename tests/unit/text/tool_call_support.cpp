#include "tests/unit/text/tool_call_support.h"

#include <cstdio>

#include <doctest/doctest.h>

#include <algorithm>

namespace infer::test {
namespace {

// Without a CHECK for each of the many deltas.
void require(bool condition, const char* what) {
  if (!condition) FAIL_CHECK(what);
}

void merge(const std::vector<MessageDelta>& deltas, ParsedMessage& message) {
  for (const MessageDelta& delta : deltas) {
    if (delta.kind != MessageDelta::Kind::kToolCall) {
      require(!delta.text.empty(), "an empty delta");
      (delta.kind == MessageDelta::Kind::kContent ? message.content : message.reasoning) += delta.text;
      continue;
    }
    const bool begins = !delta.id.empty();
    require(begins == !delta.name.empty(), "a call's id and name in different deltas");
    require(begins || !delta.text.empty(), "an empty delta of a call");
    if (delta.index + !begins != message.calls.size()) FAIL("a call out of order");
    if (begins) message.calls.push_back({delta.id, delta.name, ""});
    message.calls.back().arguments += delta.text;
  }
}

}  // namespace

ParsedMessage parse(const ParserSetup& setup, std::string_view text, bool cut_off,
                    const std::function<size_t()>& piece) {
  MessageParser parser(setup.format, setup.tools, setup.prompt, "seed");
  ParsedMessage message;
  while (!text.empty()) {
    const size_t n = std::min(piece(), text.size());
    merge(parser.add(text.substr(0, n)), message);
    text.remove_prefix(n);
  }
  merge(parser.finish(cut_off), message);
  return message;
}

ParsedMessage parse_whole(const ParserSetup& setup, std::string_view text, bool cut_off) {
  return parse(setup, text, cut_off, [&] { return text.size(); });
}

ParsedMessage parse_bytes(const ParserSetup& setup, std::string_view text, bool cut_off) {
  return parse(setup, text, cut_off, [] { return size_t{1}; });
}

bool is_beginning(const ParsedMessage& begun, const ParsedMessage& whole) {
  if (!whole.content.starts_with(begun.content) || !whole.reasoning.starts_with(begun.reasoning)) return false;
  if (begun.calls.size() > whole.calls.size()) return false;
  for (size_t i = 0; i < begun.calls.size(); ++i) {
    const ParsedCall &a = begun.calls[i], &b = whole.calls[i];
    if (a.id != b.id || a.name != b.name || !b.arguments.starts_with(a.arguments)) return false;
  }
  return true;
}

std::string printed(const ParsedMessage& message) {
  std::string text = "content [" + message.content + "] reasoning [" + message.reasoning + "]";
  for (const ParsedCall& call : message.calls) text += " " + call.name + "(" + call.arguments + ")";
  return text;
}

Tokenizer tokenizer_with(const std::vector<std::string>& ends, const std::vector<std::string>& controls) {
  Vocabulary vocabulary;
  vocabulary.model = TokenizerModel::kSentencePiece;
  vocabulary.tokens.push_back({"<unk>", 0, TokenType::kUnknown});
  vocabulary.unk = 0;
  vocabulary.add_space_prefix = false;
  vocabulary.tokens.push_back({"\u2581", 0, TokenType::kNormal});  // a space
  for (int byte = 0; byte < 256; ++byte) {
    char text[8];
    std::snprintf(text, sizeof(text), "<0x%02X>", static_cast<unsigned>(byte));
    vocabulary.tokens.push_back({text, 0, TokenType::kByte});
  }
  for (const auto* texts : {&ends, &controls}) {
    for (const std::string& text : *texts) {
      if (texts == &ends) vocabulary.eog_listed.push_back(static_cast<TokenId>(vocabulary.tokens.size()));
      vocabulary.tokens.push_back({text, 0, TokenType::kControl});
    }
  }
  return Tokenizer(std::move(vocabulary));
}

}  // namespace infer::test
