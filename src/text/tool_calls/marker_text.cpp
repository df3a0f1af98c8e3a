#include "src/text/tool_calls/marker_text.h"

#include <vector>

#include "src/text/tool_calls/call_pattern.h"
#include "src/text/tool_calls/template_tokens.h"

namespace infer {

using grammar::ExprId;

bool MarkerText::is_control(std::string_view tag) const {
  const TokenId token = tokenizer_.find(tag);
  return token != kNoToken && tokenizer_.is_control(token);
}

ExprId MarkerText::literal(std::string_view text) const {
  std::vector<ExprId> parts;
  std::string bytes;
  const auto end_bytes = [&] {
    if (!bytes.empty()) parts.push_back(rules_.bytes(bytes));
    bytes.clear();
  };
  for (const std::string_view tag : template_tokens(text)) {
    if (is_control(tag)) {
      end_bytes();
      parts.push_back(rules_.token({tokenizer_.find(tag), false}));
    } else {
      bytes += tag;
    }
  }
  end_bytes();
  return rules_.sequence(std::move(parts));
}

ExprId MarkerText::up_to(const std::string& marker) const {
  for (const std::string_view tag : template_tokens(marker)) {
    if (is_control(tag)) return rules_.sequence({rules_.without({marker}), literal(marker)});
  }
  return rules_.up_to({marker});
}

std::string_view MarkerText::before_end(std::string_view text) const {
  size_t length = 0;
  for (const std::string_view tag : template_tokens(text)) {
    const TokenId token = tokenizer_.find(tag);
    if (token != kNoToken && tokenizer_.is_eog(token)) break;
    length += tag.size();
  }
  return trimmed_end(text.substr(0, length));
}

ExprId few_spaces(grammar::Rules& rules) {
  return rules.repeat(rules.code_point({{'\t', '\n'}, {'\r', '\r'}, {' ', ' '}}), 0, 4);
}

}  // namespace infer
