// Untrusted text made safe to print.
#include "ggml-like/printable.h"

#include <doctest/doctest.h>

using infer::printable;

TEST_CASE("printable: readable text stays, control characters become escapes") {
  CHECK(printable("blk.0.ffn_up.weight") == "blk.0.ffn_up.weight");
  CHECK(printable("Grüße, 世界 😀") == "Grüße, 世界 😀");
  CHECK(printable("a\nb\tc\rd") == "a\\nb\\tc\\rd");
  CHECK(printable("\x1B[2J\x07\x7F") == "\\x1B[2J\\x07\\x7F");
  CHECK(printable(std::string_view("\0", 1)) == "\\x00");
  CHECK(printable("a\\b") == "a\\\\b");
}

TEST_CASE("printable: a message of printable parts is not escaped again") {
  CHECK(infer::printable_message("[flags] found " + printable("a\\b\n"), 100) == "[flags] found a\\\\b\\n");
  CHECK(infer::printable_message("\x1B[2J", 100) == "\\x1B[2J");
  CHECK(infer::printable_message("abcdefg", 6) == "abcdef...");
}

TEST_CASE("printable: terminal controls beyond ASCII and direction marks become escapes") {
  CHECK(printable("\xC2\x9B"
                  "2J") == "\\u{009B}2J");  // C1 CSI
  CHECK(printable("\xE2\x80\xAE"
                  "x") == "\\u{202E}x");            // right-to-left override
  CHECK(printable("\xE2\x80\xA8") == "\\u{2028}");  // line separator
  CHECK(printable("\xE2\x81\xA6") == "\\u{2066}");
}

TEST_CASE("printable: bytes that are not UTF-8 become escapes") {
  CHECK(printable("\xFF") == "\\xFF");
  CHECK(printable("a\x80") == "a\\x80");
  CHECK(printable("\xC0\x80") == "\\xC0\\x80");                    // overlong
  CHECK(printable("\xE0\x80\x80") == "\\xE0\\x80\\x80");           // overlong
  CHECK(printable("\xED\xA0\x80") == "\\xED\\xA0\\x80");           // surrogate
  CHECK(printable("\xF4\x90\x80\x80") == "\\xF4\\x90\\x80\\x80");  // beyond U+10FFFF
  CHECK(printable("\xE4\xB8") == "\\xE4\\xB8");                    // cut short
}

TEST_CASE("printable: long text is cut at a character") {
  CHECK(printable("abcdef", 6) == "abcdef");
  CHECK(printable("abcdefg", 6) == "abcdef...");
  CHECK(printable("aé", 2) == "a...");
  CHECK(printable("aé", 3) == "aé");
}
