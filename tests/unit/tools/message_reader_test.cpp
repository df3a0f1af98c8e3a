// How typed lines become messages, and how the log of a chat handles them.
#include "tools/chat/message_reader.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "ggml-like/error.h"
#include "tools/chat/chat_log.h"
#include "tools/terminal.h"

using namespace infer;

namespace {

// The messages made from lines; the last entry is "..." if one is unfinished.
std::vector<std::string> messages(const std::vector<std::string>& lines) {
  MessageReader reader;
  std::vector<std::string> all;
  for (const std::string& line : lines) {
    if (const auto message = reader.add(line)) all.push_back(*message);
  }
  if (reader.unfinished()) all.push_back("...");
  return all;
}

using Strings = std::vector<std::string>;

ChatLog three_turns() {
  ChatLog log;
  log.system = "be kind";
  for (const char* n : {"1", "2", "3"}) {
    log.add("user", std::string("question ") + n);
    log.add("assistant", std::string("answer ") + n);
  }
  return log;
}

std::string temporary_file(const std::string& text) {
  const auto path = std::filesystem::temp_directory_path() / ("infer_chat_log_test_" + std::to_string(getpid()));
  std::ofstream(path) << text;
  return path.string();
}

}  // namespace

TEST_CASE("lines_make_messages") {
  CHECK(messages({"one", "two"}) == Strings{"one", "two"});
  CHECK(messages({"one\\", "two\\", "three", "four"}) == Strings{"one\ntwo\nthree", "four"});
  CHECK(messages({"one\\"}) == Strings{"..."});
  CHECK(messages({"\"\"\"", "one", "", "two", "\"\"\"", "x"}) == Strings{"one\n\ntwo", "x"});
  CHECK(messages({"\"\"\"one", "two\"\"\""}) == Strings{"one\ntwo"});
  CHECK(messages({"\"\"\"one\"\"\""}) == Strings{"one"});
  CHECK(messages({"\"\"\"", "", "one", "\"\"\""}) == Strings{"\none"});
  CHECK(messages({"\"\"\"", "a\\", "b", "\"\"\""}) == Strings{"a\\\nb"});
  CHECK(messages({"say \"\"\"x"}) == Strings{"say \"\"\"x"});
  CHECK(messages({"\"\"\"", "\"\"\""}) == Strings{""});
  CHECK(messages({""}) == Strings{""});
}

TEST_CASE("an_unfinished_message_can_be_dropped") {
  MessageReader reader;
  CHECK_FALSE(reader.add("one\\").has_value());
  CHECK(reader.unfinished());
  reader.reset();
  CHECK_FALSE(reader.unfinished());
  CHECK(reader.add("two") == "two");
}

TEST_CASE("turns_are_undone_and_dropped_as_a_whole") {
  ChatLog log = three_turns();
  CHECK(log.undo() == "question 3");
  CHECK(log.messages.size() == 4);
  CHECK(log.take_back_answer());
  CHECK(log.messages.back().content == "question 2");
  CHECK(log.drop_oldest_turn());
  CHECK(log.messages.front().content == "question 2");
  CHECK_FALSE(log.drop_oldest_turn());  // the only turn stays
  CHECK(log.messages.size() == 1);
  CHECK(log.undo() == "question 2");
  CHECK(log.undo() == "");
  CHECK_FALSE(log.take_back_answer());
  log = three_turns();
  CHECK(log.drop_oldest_turn(1));  // the first turn begins in the first message and stays
  REQUIRE(log.messages.size() == 4);
  CHECK(log.messages[0].content == "question 1");
  CHECK(log.messages[2].content == "question 3");
  CHECK_FALSE(log.drop_oldest_turn(2));
  CHECK_FALSE(log.drop_oldest_turn(100));
  CHECK(log.system == "be kind");
}

TEST_CASE("a_system_prompt_is_a_message_or_part_of_the_first_one") {
  const ChatLog log = three_turns();
  const auto own = log.to_json();
  CHECK(own.size() == 7);
  CHECK(own[0]["role"] == "system");
  CHECK(own[0]["content"] == "be kind");
  const auto joined = log.to_json(true);
  CHECK(joined.size() == 6);
  CHECK(joined[0]["content"] == "be kind\n\nquestion 1");
  CHECK(joined[2]["content"] == "question 2");
}

TEST_CASE("a_log_is_restored_from_its_file") {
  const std::string path = temporary_file("old");
  ChatLog log = three_turns();
  log.messages[1].reasoning = "hm\n\"quoted\" \xc3\xa9";
  log.save(path);
  const ChatLog loaded = ChatLog::load(path);
  CHECK(loaded.system == log.system);
  CHECK(loaded.messages == log.messages);
  const auto is_beside = [&](const auto& entry) {
    return entry.path() != path && entry.path().string().starts_with(path);
  };
  CHECK(
      std::ranges::none_of(std::filesystem::directory_iterator(std::filesystem::path(path).parent_path()), is_beside));
  std::filesystem::remove(path);
  CHECK_THROWS_AS(log.save("/no/such/folder/file"), Error);
}

TEST_CASE("files_that_are_not_a_chat_are_refused") {
  for (const char* text :
       {"", "{", "3", "{}", "{\"messages\": 3}", "[3]", "[{\"role\": \"user\"}]", "[{\"role\": 1, \"content\": \"x\"}]",
        "[{\"role\": \"user\", \"content\": 5}]", "[{\"role\": \"user\", \"content\": [{\"type\": \"image\"}]}]",
        "[{\"role\": \"user\",", "[{\"role\": \"user\", \"content\": \"\xff\"}]"}) {
    CAPTURE(text);
    const std::string path = temporary_file(text);
    CHECK_THROWS_AS(ChatLog::load(path), Error);
    std::filesystem::remove(path);
  }
  const std::string path = temporary_file(
      "[{\"role\": \"user\", \"content\": [{\"type\": \"text\", \"text\": \"a\"}, {\"type\": \"text\", "
      "\"text\": \"b\"}]}]");
  CHECK(ChatLog::load(path).messages.at(0).content == "ab");
  std::filesystem::remove(path);
}

TEST_CASE("control_characters_do_not_reach_the_terminal") {
  CHECK(without_controls("a\033[31mb\r\n\tc\x7f") == "a[31mb\n\tc");
  CHECK(without_controls("\xc2\x9b"
                         "31m\xc2\xa0\xc3\xa9") == "31m\xc2\xa0\xc3\xa9");
}
