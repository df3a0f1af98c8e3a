#include "src/text/tool_calls/call_probe.h"

#include <algorithm>

#include "src/text/reasoning.h"
#include "src/text/template_probe.h"
#include "src/text/tool_calls/call_pattern.h"
#include "src/text/tool_calls/template_tokens.h"

namespace infer {
namespace {

using nlohmann::ordered_json;

constexpr std::string_view kContent = "Zqcontentq", kUser = "qxuserq";

ordered_json tools() {
  ordered_json all = ordered_json::array();
  for (const std::string_view name : kProbeNames) {
    all.push_back({{"type", "function"},
                   {"function",
                    {{"name", name},
                     {"description", "qxdescriptionq"},
                     {"parameters",
                      {{"type", "object"},
                       {"properties",
                        {{kProbeKeys[0], {{"type", "string"}, {"description", "a"}}},
                         {kProbeKeys[1], {{"type", "integer"}, {"description", "b"}}}}},
                       {"required", ordered_json::array({kProbeKeys[0]})}}}}}});
  }
  return all;
}

std::string call_id(const ProbeStyle& style, size_t index) {
  if (!style.ids_with_names) return "qxid0000" + std::to_string(index);  // nine letters, which Mistral's require
  return "functions." + std::string(kProbeNames[index]) + ":" + std::to_string(index);
}

ordered_json calls_message(const ProbeStyle& style, size_t n) {
  ordered_json calls = ordered_json::array();
  for (size_t i = 0; i < n; ++i) {
    ordered_json arguments = {{kProbeKeys[0], kProbeValues[0]},
                              {kProbeKeys[1], std::stoi(std::string(kProbeValues[1]))}};
    if (style.text_arguments) arguments = arguments.dump();
    calls.push_back({{"id", call_id(style, i)},
                     {"type", "function"},
                     {"function", {{"name", kProbeNames[i]}, {"arguments", std::move(arguments)}}}});
  }
  ordered_json message = {{"role", "assistant"}, {"content", ""}, {"tool_calls", std::move(calls)}};
  if (style.null_content) message["content"] = nullptr;
  return message;
}

// The prompt that ends with this message; "" if the template rejects it.
std::string rendered(const ChatTemplate& chat_template, const ProbeStyle& style, ordered_json message) {
  Conversation conversation;
  conversation.messages = {{{"role", "user"}, {"content", kUser}}, std::move(message)};
  if (!style.without_tools) conversation.tools = tools();
  conversation.add_generation_prompt = false;
  return probe_prompt(chat_template, std::move(conversation));
}

// Kimi's templates always write functions.NAME:0, whatever the id is.
void replace_ids(std::string& text) {
  for (size_t i = 0; i < std::size(kProbeNames); ++i) {
    for (const bool with_name : {true, false}) {
      const std::string id = call_id({.ids_with_names = with_name}, i);
      for (size_t at = 0; (at = text.find(id, at)) != std::string::npos; ++at) text.replace(at, id.size(), 1, kIdPlace);
    }
  }
}

// Removes the reasoning block with which a template may begin the message.
void drop_reasoning(std::string& text) {
  for (const ReasoningTags& tags : reasoning_tags()) {
    const size_t at = text.rfind(tags.close);
    if (at != std::string::npos) text.erase(0, at + tags.close.size());
  }
}

// Whether the text contains the arguments, quoted or not.
bool shows_arguments(std::string_view text) {
  const auto has = [&](std::string_view word) { return text.find(word) != std::string_view::npos; };
  return has(kProbeKeys[0]) && has(kProbeKeys[1]) && has(kProbeValues[0]) && has(kProbeValues[1]);
}

}  // namespace

std::optional<RenderedCalls> render_calls(const ChatTemplate& chat_template, const ProbeStyle& style) {
  std::string one = rendered(chat_template, style, calls_message(style, 1));
  std::string two = rendered(chat_template, style, calls_message(style, 2));
  const std::string plain = rendered(chat_template, style, {{"role", "assistant"}, {"content", kContent}});
  if (one.empty()) return std::nullopt;
  const size_t header = plain.empty() ? 0 : common_start(one, plain);
  RenderedCalls calls;
  calls.header = one.substr(0, header);
  one.erase(0, header);
  two = two.compare(0, header, calls.header) == 0 ? two.substr(header) : "";
  if (!shows_arguments(one)) return std::nullopt;
  std::string content = plain.substr(header);
  const size_t end = common_end(one, content), at = content.find(kContent);
  if (two.size() >= end && two.ends_with(std::string_view(one).substr(one.size() - end))) two.resize(two.size() - end);
  else two.clear();
  one.resize(one.size() - end);
  if (at != std::string::npos) {
    calls.before_content = content.substr(0, at);
    calls.after_content = content.substr(at + kContent.size());
    calls.after_content.resize(calls.after_content.size() - std::min(end, calls.after_content.size()));
  }
  replace_ids(one);
  replace_ids(two);
  for (std::string* text : {&one, &two, &calls.before_content}) drop_reasoning(*text);
  calls.one = std::move(one);
  calls.two = std::move(two);
  return calls;
}

std::optional<RenderedReasoning> render_reasoning(const ChatTemplate& chat_template, const ProbeStyle& style,
                                                  const std::string& header) {
  constexpr std::string_view kReasoning = "Zqreasonq";
  ordered_json message = {{"role", "assistant"}, {"content", kContent}};
  for (const char* name : {"reasoning_content", "reasoning", "thinking"}) message[name] = kReasoning;
  const std::string text = rendered(chat_template, style, std::move(message));
  const size_t at = text.find(kReasoning), end = at + kReasoning.size();
  const size_t content = at == std::string::npos ? at : text.find(kContent, end);
  if (content == std::string::npos || at < header.size() || text.compare(0, header.size(), header) != 0)
    return std::nullopt;
  return RenderedReasoning{text.substr(header.size(), at - header.size()), text.substr(end, content - end)};
}

}  // namespace infer
