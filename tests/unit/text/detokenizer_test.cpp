#include "src/text/detokenizer.h"

#include <doctest/doctest.h>

#include "src/text/utf8.h"

namespace infer {

TEST_CASE("a character is held back until it is complete") {
  Detokenizer d;
  CHECK(d.add("a\xF0") == "a");
  CHECK(d.add("\x9F") == "");
  CHECK(d.add("") == "");
  CHECK(d.add("\x98\x80!") == "\xF0\x9F\x98\x80!");
  CHECK(d.flush() == "");
}

TEST_CASE("each maximal ill-formed part is one replacement character") {
  Detokenizer d;
  CHECK(d.add("\xFF\xFE") == "\xEF\xBF\xBD\xEF\xBF\xBD");
  CHECK(d.add("\xE6\xBC") == "");
  CHECK(d.add("x") == "\xEF\xBF\xBDx");
  CHECK(d.add("\xED\xA0\x80") == "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");  // a surrogate: three parts
  CHECK(d.add("\xF0\x9F\x98") == "");
  CHECK(d.flush() == "\xEF\xBF\xBD");
  CHECK(d.add("\x80") == "\xEF\xBF\xBD");  // nothing is left of the previous stream
}

TEST_CASE("decoding accepts exactly the scalar values") {
  for (uint32_t code = 0; code <= 0x110000; code += code < 0x3000 ? 1 : 37) {
    std::string text;
    append_utf8(code, text);
    const Utf8Char c = decode_utf8(text, 0);
    const bool scalar = code <= 0x10FFFF && !(code >= 0xD800 && code <= 0xDFFF);
    if (c.code != (scalar ? code : kReplacementCharacter) || !c.valid || c.length != text.size()) FAIL(code);
  }
  for (const char* bad : {"\x80", "\xC0\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xF0\x8F\xBF\xBF",
                          "\xF4\x90\x80\x80", "\xF5"}) {
    CHECK_FALSE(is_valid_utf8(bad));
  }
  CHECK(decode_utf8("\xF4\x8F", 0).cut_off);
  CHECK_FALSE(decode_utf8("\xF4\x90", 0).cut_off);
}

}  // namespace infer
