#include "src/text/detokenizer.h"

#include "src/text/utf8.h"

namespace infer {

std::string Detokenizer::add(std::string_view piece) {
  pending_ += piece;
  std::string out;
  out.reserve(pending_.size());
  size_t at = 0;
  while (at < pending_.size()) {
    const Utf8Char c = decode_utf8(pending_, at);
    if (c.cut_off) break;
    if (c.valid) out.append(pending_, at, c.length);
    else out += kReplacementUtf8;
    at += c.length;
  }
  pending_.erase(0, at);
  return out;
}

std::string Detokenizer::flush() {
  // By construction the bytes held back are one maximal subpart.
  const std::string out(pending_.empty() ? std::string_view() : kReplacementUtf8);
  pending_.clear();
  return out;
}

}  // namespace infer
