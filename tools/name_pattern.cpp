#include "tools/name_pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "ggml-like/error.h"
#include "ggml-like/message.h"
#include "ggml-like/printable.h"

namespace infer {
namespace {

constexpr uint32_t kMatchLimit = 100000, kDepthLimit = 1000;
constexpr size_t kMaxPatternBytes = 1000;

// PCRE2's message for an error code: "missing closing parenthesis".
std::string message_of(int code) {
  char text[256] = {};
  pcre2_get_error_message(code, reinterpret_cast<PCRE2_UCHAR*>(text), sizeof(text));
  return text;
}

}  // namespace

struct NamePattern::Compiled {
  pcre2_code* code = nullptr;
  pcre2_match_data* match = nullptr;
  pcre2_match_context* limits = nullptr;

  ~Compiled() {
    pcre2_match_context_free(limits);
    pcre2_match_data_free(match);
    pcre2_code_free(code);
  }
};

NamePattern::NamePattern(const char* flag, std::string pattern, Extent extent)
    : flag_(flag), text_(std::move(pattern)), compiled_(std::make_unique<Compiled>()) {
  if (text_.empty() || text_.size() > kMaxPatternBytes) {
    throw Error(ErrorCode::kInvalidArgument, concat(flag_, ": a pattern of ", text_.size(),
                                                    " bytes is not valid. Give 1 to ", kMaxPatternBytes, "."));
  }
  const uint32_t options = extent == Extent::kWhole ? PCRE2_ANCHORED | PCRE2_ENDANCHORED : 0;
  int error = 0;
  size_t offset = 0;
  compiled_->code =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text_.data()), text_.size(), options, &error, &offset, nullptr);
  if (!compiled_->code) {
    throw Error(ErrorCode::kInvalidArgument,
                concat(flag_, ": ", printable(text_, 100), " is not a regular expression: ", message_of(error),
                       " at byte ", offset, ". Put a backslash before a character that stands for itself."));
  }
  compiled_->match = pcre2_match_data_create(1, nullptr);
  compiled_->limits = pcre2_match_context_create(nullptr);
  if (!compiled_->match || !compiled_->limits) throw std::bad_alloc();
  pcre2_set_match_limit(compiled_->limits, kMatchLimit);
  pcre2_set_depth_limit(compiled_->limits, kDepthLimit);
}

NamePattern::~NamePattern() = default;
NamePattern::NamePattern(NamePattern&&) noexcept = default;

bool NamePattern::matches(std::string_view name) const {
  const int result = pcre2_match(compiled_->code, reinterpret_cast<PCRE2_SPTR>(name.data()), name.size(), 0, 0,
                                 compiled_->match, compiled_->limits);
  if (result < 0 && result != PCRE2_ERROR_NOMATCH) {
    throw Error(ErrorCode::kInvalidArgument,
                concat(flag_, ": the pattern ", printable(text_, 100), " cannot be matched with ", printable(name),
                       ": ", message_of(result), ". Simplify it."));
  }
  return result != PCRE2_ERROR_NOMATCH;
}

}  // namespace infer
