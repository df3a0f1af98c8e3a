#include <array>
#include <string>

#include "src/text/tokenizer_algorithm.h"
#include "src/text/utf8.h"

namespace infer {
namespace {

struct Alphabet {
  std::array<uint32_t, 256> to_code{};
  std::array<int16_t, 512> to_byte{};  // -1: the code represents no byte

  Alphabet() {
    to_byte.fill(-1);
    uint32_t next = 0x100;
    for (uint32_t byte = 0; byte < 256; ++byte) {
      const bool printable = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
      to_code[byte] = printable ? byte : next++;
      to_byte[to_code[byte]] = static_cast<int16_t>(byte);
    }
  }
};

const Alphabet& alphabet() {
  static const Alphabet instance;
  return instance;
}

}  // namespace

uint32_t byte_to_printable(uint8_t byte) { return alphabet().to_code[byte]; }

std::string printable_to_bytes(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const Utf8Char c = decode_utf8(text, at);
    const int byte = c.valid && c.code < alphabet().to_byte.size() ? alphabet().to_byte[c.code] : -1;
    if (byte >= 0) out += static_cast<char>(byte);
    else out += text.substr(at, c.length);
    at += c.length;
  }
  return out;
}

TokenId find_byte_token(const TextMap& index, uint8_t byte) {
  constexpr char kHex[] = "0123456789ABCDEF";
  const char text[] = {'<', '0', 'x', kHex[byte >> 4], kHex[byte & 15], '>'};
  return index.find({text, sizeof(text)});
}

}  // namespace infer
