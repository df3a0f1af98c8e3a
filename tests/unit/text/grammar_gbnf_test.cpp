// GBNF: what the language means, what is refused, and the messages.
#include <doctest/doctest.h>

#include "tests/unit/text/grammar_support.h"

namespace infer {

using test::gbnf_error;
using test::match_gbnf;
using test::repeated;

TEST_CASE("a text is a sentence, the beginning of one, or neither") {
  CHECK(match_gbnf("root ::= \"ab\"", "ab") == "accept");
  CHECK(match_gbnf("root ::= \"ab\"", "a") == "prefix");
  CHECK(match_gbnf("root ::= \"ab\"", "") == "prefix");
  CHECK(match_gbnf("root ::= \"ab\"", "abc") == "reject");
  CHECK(match_gbnf("root ::= \"ab\"", "b") == "reject");
  CHECK(match_gbnf("root ::= \"\"", "") == "accept");
}

TEST_CASE("characters are code points, and half of one is a prefix") {
  CHECK(match_gbnf("root ::= [α-ω] .", "β\xF0\x9F") == "prefix");
  CHECK(match_gbnf("root ::= [α-ω] .", "β😀") == "accept");
  CHECK(match_gbnf("root ::= [^a]", "\xED\xA0") == "reject");  // a surrogate
  CHECK(match_gbnf("root ::= [^a]", "\xC0") == "reject");
  CHECK(match_gbnf("root ::= \"\\x41\\u00e9\\U0001F600\"", "Aé😀") == "accept");
}

TEST_CASE("no continuation: branches that never end do not count") {
  CHECK(match_gbnf("root ::= \"a\" | \"b\" loop\nloop ::= \"c\" loop", "b") == "reject");
  CHECK(match_gbnf("root ::= \"a\" root", "a") == "reject");
}

TEST_CASE("counted repetitions, nested and around what can be empty") {
  const std::string counted = "root ::= \"x\"{3,1000000000} \"y\"";
  CHECK(match_gbnf(counted, "xxy") == "reject");
  CHECK(match_gbnf(counted, repeated("x", 5000) + "y") == "accept");
  CHECK(match_gbnf("root ::= (\"a\"{20,30} \",\"){20}", repeated(repeated("a", 25) + ",", 20)) == "accept");
  CHECK(match_gbnf("root ::= (\"a\"{20,30} \",\"){20}", repeated(repeated("a", 25) + ",", 19)) == "prefix");
  CHECK(match_gbnf("root ::= (\"a\"{20,30} \",\"){20}", repeated("a", 31)) == "reject");
  CHECK(match_gbnf("root ::= (\"a\"? \"b\"?){100,200} \"c\"", "c") == "accept");
  CHECK(match_gbnf("root ::= (\"a\"? \"b\"?){100,200} \"c\"", "ababc") == "accept");
  CHECK(match_gbnf("root ::= (\"a\"? \"b\"?){100,200} \"c\"", repeated("ab", 200) + "c") == "accept");
  CHECK(match_gbnf("root ::= (\"a\"? \"b\"?){100,200} \"c\"", repeated("a", 201)) == "reject");
  CHECK(match_gbnf("root ::= ((\"a\"*)*)* \"b\"", "aab") == "accept");
  CHECK(match_gbnf("root ::= (\"a\" | \"aa\"){40} \"b\"", repeated("a", 80) + "b") == "accept");
  CHECK(match_gbnf("root ::= (\"a\" | \"aa\"){40} \"b\"", repeated("a", 81)) == "reject");
  CHECK(match_gbnf("root ::= (\"a\" | \"aa\"){40} \"b\"", repeated("a", 39) + "b") == "reject");
}

TEST_CASE("rules that call each other return to their own caller") {
  // `x` and `y` return to the same place from different callers.
  const std::string source =
      "root ::= \"1\" p | \"2\" q\np ::= x \"!\"\nq ::= y \"!\"\nx ::= \"(\" x \")\" | \"x\"\n"
      "y ::= \"(\" y \")\" | \"y\"";
  CHECK(match_gbnf(source, "1((x))!") == "accept");
  CHECK(match_gbnf(source, "1((y") == "reject");
  CHECK(match_gbnf(source, "2((y))!") == "accept");
  CHECK(match_gbnf("root ::= (a \"1\" | b \"2\") \".\"\na ::= \"(\" a \")\" | \"x\"\nb ::= \"(\" b \")\" | \"x\"",
                   "((x))2.") == "accept");
  CHECK(match_gbnf("root ::= (a \"1\" | b \"2\") \".\"\na ::= \"(\" a \")\" | \"x\"\nb ::= \"(\" b \"]\" | \"x\"",
                   "((x))2") == "reject");
}

TEST_CASE("parses that return to the same state keep their callers apart") {
  // After "aa" one parse is in `x`, called by the f that began first, another in `y`, called by the second.
  const std::string source =
      "root ::= f \"0\" | \"a\" f \"1\"\nf ::= \"a\" (\"a\" x | y) \";\"\n"
      "x ::= \"(\" x \")\" | \"x\"\ny ::= \"(\" y \")\" | \"y\"";
  CHECK(match_gbnf(source, "aax;0") == "accept");
  CHECK(match_gbnf(source, "aax;1") == "reject");
  CHECK(match_gbnf(source, "aa(y);1") == "accept");
  CHECK(match_gbnf(source, "aa(y);0") == "reject");
}

TEST_CASE("an ambiguous grammar stays small") {
  const std::string source = "root ::= s\ns ::= \"[\" a \"]\" | \"[\" b \"]\" | \"x\"\na ::= s | s \",\" s\nb ::= s";
  CHECK(match_gbnf(source, repeated("[", 200) + "x" + repeated("]", 200)) == "accept");
  CHECK(match_gbnf(source, repeated("[", 200) + "x" + repeated("]", 201)) == "reject");
  CHECK(match_gbnf("root ::= \"a\" root root | \"\"", repeated("a", 300)) == "accept");
}

TEST_CASE("deep nesting costs no stack") {
  const std::string source = "root ::= \"(\" root \")\" | \"x\"";
  CHECK(match_gbnf(source, repeated("(", 200000) + "x" + repeated(")", 200000)) == "accept");
}

TEST_CASE("a rule ends with its line, but not in parentheses, after ::= or after |") {
  CHECK(match_gbnf("root ::=\n  \"a\" |\n \"b\" (\n\"c\"\n)# c\r\n\r\n# \"\n", "bc") == "accept");
  CHECK(gbnf_error("root ::= \"a\"\n | \"b\"") == "[grammar] line 2, column 2: expected the name of a rule, found |");
}

TEST_CASE("messages say line, column and what was expected") {
  CHECK(gbnf_error("root ::= \"é\" \"\\q\"") ==
        "[grammar] line 1, column 15: expected an escape: \\n \\r \\t \\\\ \\\" \\[ \\] \\- \\xHH \\uHHHH or "
        "\\UHHHHHHHH, found \\q");
  CHECK(gbnf_error("root ::= a\na ::= \"x\" b") ==
        "[grammar] line 2, column 11: expected the name of a rule, found b, which is undefined");
  CHECK(gbnf_error("a ::= \"x\"") == "[grammar] expected a rule named root, found none");
  CHECK(gbnf_error("root ::= \"a\"{3,2}") ==
        "[grammar] line 1, column 14: expected at least 3 as the second count, found 2");
  CHECK(gbnf_error("root ::= [z-a]") ==
        "[grammar] line 1, column 11: expected a range whose first character is not after "
        "its last, found one that is");
  CHECK(gbnf_error("root ::= \"a\"\nroot ::= \"b\"") ==
        "[grammar] line 2, column 1: expected one definition of each rule, found a second one of root");
  CHECK(gbnf_error("root ::= \"a") ==
        "[grammar] line 1, column 12: expected the \" that ends the literal of line 1, "
        "found the end of the grammar");
  CHECK(gbnf_error("root ::= (\"a\"\n") ==
        "[grammar] line 2, column 1: expected the ) of the ( on line 1, found the end of "
        "the grammar");
  CHECK(gbnf_error("root ::= \"\xFF\"") == "[grammar] expected UTF-8, found an error at byte 10");
}

TEST_CASE("left recursion is refused by the name of a rule") {
  const std::string end = ": expected to read something before it refers to itself, found left recursion";
  CHECK(gbnf_error("root ::= root \"a\" | \"b\"") == "[grammar] rule root" + end);
  CHECK(gbnf_error("root ::= \"a\"\nx ::= e{0,100} x \"b\" | \"c\"\ne ::= \"d\"?") == "[grammar] rule x" + end);
  // Unreachable, and each called once.
  CHECK(gbnf_error("root ::= \"a\"\nx ::= y\ny ::= x") != "");
  CHECK(gbnf_error("root ::= (\"a\"? | root){50}") != "");
  CHECK(gbnf_error("root ::= \"a\" root | \"b\"") == "");
}

TEST_CASE("tokens by id and by text") {
  CHECK(match_gbnf("root ::= \"a\" <[7]> \"b\"", "a") == "prefix");
  CHECK(match_gbnf("root ::= \"a\" <[7]> \"b\"", "ab") == "reject");
  CHECK(match_gbnf("root ::= \"a\" (!<[7]> | \"c\")", "ac") == "accept");
  CHECK(gbnf_error("root ::= <think>") ==
        "[grammar] line 1, column 10: expected the id of a token, as <[id]>, because no model is given, found <think>");
  const auto find = [](std::string_view text) { return text == "<think>" ? TokenId{3} : kNoToken; };
  CHECK_NOTHROW(grammar::parse_gbnf("root ::= <think> \"a\"", find));
  CHECK_THROWS(grammar::parse_gbnf("root ::= <other> \"a\"", find));
}

TEST_CASE("bytes that must follow") {
  const auto grammar = grammar::parse_gbnf("root ::= \"name: \" (\"abc\" | \"abd\") \"é\"?");
  CHECK(grammar->forced(grammar->start(), 100) == "name: ab");
  CHECK(grammar->forced(grammar->start(), 4) == "name");
  CHECK(grammar->forced(grammar->after(grammar->start(), "name: abc"), 100) == "");  // it may end here
  CHECK(grammar->forced(grammar->after(grammar->start(), "name: abc\xC3"), 100) == "\xA9");
}

TEST_CASE("states are values that compare equal if they mean the same") {
  const auto grammar = grammar::parse_gbnf("root ::= \"(\" root \")\" | [xy] | [xy] \"+\" root");
  const grammar::MatchState start = grammar->start();
  const grammar::MatchState one = grammar->after(start, "((x+"), other = grammar->after(start, "((y+");
  CHECK(one == other);
  CHECK(one.hash() == other.hash());
  CHECK(!(one == grammar->after(start, "(((x+")));
  CHECK(!(one == grammar->after(start, "((x")));
  grammar::MatchState copy = one;
  copy = grammar->after(copy, "x))");
  CHECK(copy.can_end());
  CHECK(!one.can_end());
}

}  // namespace infer
