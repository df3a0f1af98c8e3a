// Fuzz target for the tool call parser: any text as an answer, in the formats of small templates of every kind. However
// the text is split, the message is the same; if it is cut off, the message is a beginning of that.
//
// Input: a byte that chooses the template, a byte that says how the text is cut, the text.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "src/text/chat_template.h"
#include "src/text/tool_calls/message_parser.h"

namespace {

using namespace infer;
using nlohmann::ordered_json;

void require(bool condition) {
  if (!condition) __builtin_trap();
}

struct Setup {
  ToolCallFormat format;
  std::string prompt;
};

const ordered_json& offered() {
  static const auto tools = ordered_json::parse(R"([{"type": "function", "function": {"name": "f", "parameters": {
    "type": "object", "properties": {"s": {"type": "string"}, "n": {"type": "integer"}}}}}])");
  return tools;
}

// Writes `call` for each call, which has the variable f.
Setup setup_of(const std::string& before, const std::string& call, const std::string& after,
               const std::string& prompt) {
  const ChatTemplate chat_template = ChatTemplate::parse(
      "{%- for m in messages -%}<|{{ m.role }}|>{{ m.content or '' }}{%- if m.tool_calls -%}" + before +
      "{%- for c in m.tool_calls -%}{%- set f = c.function -%}" + call + "{%- endfor -%}" + after +
      "{%- endif -%}<|end|>{%- endfor -%}{%- if add_generation_prompt -%}<|assistant|>" + prompt + "{%- endif -%}");
  Conversation conversation;
  conversation.messages = {{{"role", "user"}, {"content", "hi"}}};
  conversation.tools = offered();
  Setup setup{find_tool_call_format(chat_template), prompt_of_answer(chat_template, conversation)};
  require(setup.format.writes_calls());
  return setup;
}

const std::vector<Setup>& setups() {
  static const std::vector<Setup> all = [] {
    const std::string object = R"({"name": "{{ f.name }}", "arguments": {{ f.arguments | tojson }}})";
    const std::string comma = "{%- if not loop.last -%}, {%- endif -%}";
    const std::string tagged =
        "<f={{ f.name }}>{%- for k, v in f.arguments.items() -%}<p={{ k }}>\n{{ v }}\n</p>{%- endfor -%}</f>";
    const std::string typed =
        "<f n=\"{{ f.name }}\">{%- for k, v in f.arguments.items() -%}<p k=\"{{ k }}\" s=\"{{ v is string "
        "}}\"><![CDATA["
        "{{ v }}]]></p>{%- endfor -%}</f>";
    const std::string bare =
        "<|c>{{ f.name }}{{ '{' }}{%- for k, v in f.arguments.items() -%}{{ k }}:{%- if v is string -%}<|q|>{{ v "
        "}}<|q|>"
        "{%- else -%}{{ v }}{%- endif -%}" +
        comma + "{%- endfor -%}{{ '}' }}<c|>";
    return std::vector<Setup>{
        setup_of("", "<call>" + object + "</call>", "", "<think>"),
        setup_of("[CALLS][", object + comma, "]", ""),
        setup_of("", object, "", ""),
        setup_of("<calls>", "<c>{{ c.id }}<n>{{ f.name }}<a>{{ f.arguments | tojson }}</c>", "</calls>", ""),
        setup_of("<calls>", tagged, "</calls>", ""),
        setup_of("", typed, "", ""),
        setup_of("", bare, "", ""),
        setup_of("", "<|start|> to=functions.{{ f.name }}<|channel|>x<|message|>{{ f.arguments | tojson }}", "", ""),
    };
  }();
  return all;
}

// Everything in one text, so that messages can be compared: calls by their index, with their parts separated.
struct Message {
  std::string content, reasoning;
  std::vector<std::string> names, arguments;
};

void take(const std::vector<MessageDelta>& deltas, Message& message) {
  for (const MessageDelta& delta : deltas) {
    const bool call = delta.kind == MessageDelta::Kind::kToolCall, begins = !delta.id.empty();
    require(begins == !delta.name.empty() && (begins || !delta.text.empty()) && (call || !begins));
    if (!call) {
      (delta.kind == MessageDelta::Kind::kContent ? message.content : message.reasoning) += delta.text;
      continue;
    }
    require(delta.index + !begins == message.names.size());
    if (begins) message.names.push_back(delta.name), message.arguments.emplace_back();
    message.arguments.back() += delta.text;
  }
}

Message parse(const Setup& setup, const ToolSet& tools, std::string_view text, size_t piece, bool cut_off) {
  MessageParser parser(setup.format, tools, setup.prompt, "");
  Message message;
  for (; !text.empty(); text.remove_prefix(std::min(piece, text.size()))) {
    take(parser.add(text.substr(0, piece)), message);
  }
  take(parser.finish(cut_off), message);
  return message;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const ToolSet tools(offered());
  const Setup& setup = setups()[data[0] % setups().size()];
  const std::string_view text(reinterpret_cast<const char*>(data) + 2, size - 2);
  const Message whole = parse(setup, tools, text, std::max<size_t>(text.size(), 1), false);
  const Message pieces = parse(setup, tools, text, data[1] % 16 + 1, false);
  require(whole.content == pieces.content && whole.reasoning == pieces.reasoning);
  require(whole.names == pieces.names && whole.arguments == pieces.arguments);
  const Message begun = parse(setup, tools, text.substr(0, data[1] * text.size() / 256), 3, true);
  require(whole.content.starts_with(begun.content) && whole.reasoning.starts_with(begun.reasoning));
  require(begun.names.size() <= whole.names.size());
  for (size_t i = 0; i < begun.names.size(); ++i) {
    require(begun.names[i] == whole.names[i] && whole.arguments[i].starts_with(begun.arguments[i]));
  }
  return 0;
}
