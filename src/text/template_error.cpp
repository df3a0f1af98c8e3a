#include "src/text/template_error.h"

namespace infer {
namespace {

// The message must fit on one line.
std::string one_line_message(int line, const std::string& construct, std::string text) {
  for (char& c : text) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  if (line <= 0) return concat("[template] ", text);
  return concat("[template] line ", line, ", ", construct, ": ", text);
}

}  // namespace

TemplateError::TemplateError(Kind kind, int line, const std::string& construct, const std::string& text)
    : Error(kind == Kind::kBudget ? ErrorCode::kOutOfMemory : ErrorCode::kInvalidFile,
            one_line_message(line, construct, text)),
      kind_(kind),
      text_(text) {}

}  // namespace infer
