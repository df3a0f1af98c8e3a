#include "tools/parse_answers.h"

#include <algorithm>
#include <iterator>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include "ggml-like/error.h"
#include "ggml-like/message.h"
#include "src/server/responses.h"
#include "src/text/tool_calls/message_parser.h"

namespace infer {
namespace {

using nlohmann::ordered_json;

struct Answer {
  std::string text;
  bool cut_off = false;  // "finish" is "length"
  size_t chunk = 0;      // bytes; 0: the whole text
};

// Line numbers start at 1.
Answer read_answer(const std::string& line, int number) {
  const auto fail = [&](const std::string& expected, const std::string& found) {
    throw Error(ErrorCode::kInvalidArgument, expected_found("template", concat("line ", number), expected, found));
  };
  const ordered_json request = ordered_json::parse(line, nullptr, false);
  if (!request.is_object())
    fail("a JSON object", request.is_discarded() ? "text that is not JSON" : request.type_name());
  const auto found = [&](const char* key) { return request.contains(key) ? request[key].dump() : "none"; };
  Answer answer;
  if (!request.contains("text") || !request["text"].is_string()) {
    fail("a string \"text\"", request.contains("text") ? request["text"].type_name() : "none");
  }
  answer.text = request["text"].get<std::string>();
  if (request.contains("finish")) {
    if (request["finish"] != "stop" && request["finish"] != "length")
      fail("\"stop\" or \"length\" as \"finish\"", found("finish"));
    answer.cut_off = request["finish"] == "length";
  }
  if (request.contains("chunk")) {
    if (!request["chunk"].is_number_unsigned() || request["chunk"] == 0)
      fail("a number of bytes, at least 1, as \"chunk\"", found("chunk"));
    answer.chunk = request["chunk"].get<size_t>();
  }
  return answer;
}

ordered_json delta_json(const MessageDelta& delta) {
  if (delta.kind == MessageDelta::Kind::kContent) return {{"content", delta.text}};
  if (delta.kind == MessageDelta::Kind::kReasoning) return {{"reasoning_content", delta.text}};
  return {{"tool_calls", call_deltas_json({delta})}};
}

ordered_json deltas_json(const std::vector<MessageDelta>& deltas) {
  ordered_json all = ordered_json::array();
  for (const MessageDelta& delta : deltas) all.push_back(delta_json(delta));
  return {{"deltas", std::move(all)}};
}

ordered_json message_json(const std::vector<MessageDelta>& deltas) {
  std::string content, reasoning;
  ordered_json calls = ordered_json::array();
  for (const MessageDelta& delta : deltas) {
    if (delta.kind != MessageDelta::Kind::kToolCall) {
      (delta.kind == MessageDelta::Kind::kContent ? content : reasoning) += delta.text;
      continue;
    }
    if (!delta.id.empty()) calls.push_back({{"id", delta.id}, {"name", delta.name}, {"arguments", ""}});
    calls.back()["arguments"].get_ref<std::string&>() += delta.text;
  }
  return {{"content", content}, {"reasoning_content", reasoning}, {"tool_calls", std::move(calls)}};
}

std::vector<MessageDelta> read_deltas(MessageParser parser, const Answer& answer) {
  std::vector<MessageDelta> all;
  const auto take = [&](std::vector<MessageDelta> deltas) {
    std::move(deltas.begin(), deltas.end(), std::back_inserter(all));
  };
  std::string_view rest = answer.text;
  while (!rest.empty()) {
    const size_t n = answer.chunk == 0 ? rest.size() : std::min(answer.chunk, rest.size());
    take(parser.add(rest.substr(0, n)));
    rest.remove_prefix(n);
  }
  take(parser.finish(answer.cut_off));
  return all;
}

}  // namespace

void parse_answers(const ChatTemplate& chat_template, const Conversation& conversation, const std::string& lines,
                   std::ostream& out) {
  const ToolCallFormat format = find_tool_call_format(chat_template);
  const ToolSet tools(conversation.tools);
  const std::string prompt = prompt_of_answer(chat_template, conversation);
  std::istringstream in(lines);
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const Answer answer = read_answer(line, number);
    const std::vector<MessageDelta> deltas = read_deltas(MessageParser(format, tools, prompt, ""), answer);
    const ordered_json result = answer.chunk == 0 ? message_json(deltas) : deltas_json(deltas);
    out << result.dump(-1, ' ', false, ordered_json::error_handler_t::replace) << '\n';
  }
  if (!out.flush()) throw Error(ErrorCode::kIo, "Cannot write to standard output.");
}

}  // namespace infer
