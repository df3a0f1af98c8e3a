// What a template makes use of: small conversations with words that no template has, and a look for those words.
#include "src/text/chat_template.h"

namespace infer {
namespace {

using nlohmann::ordered_json;

constexpr const char* kText = "qxuserq";
constexpr const char* kBos = "<qxbosq>";

ordered_json message(const char* role, const ordered_json& content) { return {{"role", role}, {"content", content}}; }

Conversation probe(ordered_json messages) {
  Conversation conversation;
  conversation.messages = std::move(messages);
  conversation.bos_token = kBos;
  conversation.eos_token = "<qxeosq>";
  return conversation;
}

// The prompt, or nothing when the template refuses.
std::string rendered(const ChatTemplate& chat_template, const Conversation& conversation) {
  try {
    return chat_template.render(conversation);
  } catch (const Error&) {
    return "";
  }
}

bool has(const std::string& prompt, const char* word) { return prompt.find(word) != std::string::npos; }

ordered_json tool(const char* name) {
  return ordered_json::array({{{"type", "function"},
                               {"function",
                                {{"name", name},
                                 {"description", "qxdescriptionq"},
                                 {"parameters",
                                  {{"type", "object"},
                                   {"properties", {{"qxargumentq", {{"type", "string"}, {"description", "a"}}}}},
                                   {"required", ordered_json::array({"qxargumentq"})}}}}}}});
}

ordered_json call(const char* name, const ordered_json& arguments) {
  ordered_json entry = {
      {"id", "abcdefghi"}, {"type", "function"}, {"function", {{"name", name}, {"arguments", arguments}}}};
  return {{"role", "assistant"}, {"content", ""}, {"tool_calls", ordered_json::array({entry})}};
}

}  // namespace

TemplateTraits ChatTemplate::traits() const {
  TemplateTraits traits;
  const ordered_json user = message("user", kText);
  const std::string plain = rendered(*this, probe({user}));
  traits.starts_with_bos = plain.starts_with(kBos);
  traits.system_role = has(rendered(*this, probe({message("system", "qxsystemq"), user})), "qxsystemq");

  Conversation with_tools = probe({user});
  with_tools.tools = tool("qxtoolq");
  traits.tools = has(rendered(*this, with_tools), "qxtoolq");

  // Arguments are an object in most templates and JSON text in some.
  for (const ordered_json& arguments :
       {ordered_json{{"qxargumentq", "qxvalueq"}}, ordered_json(R"({"a": "qxvalueq"})")}) {
    Conversation called =
        probe({user,
               call("qxcallq", arguments),
               {{"role", "tool"}, {"name", "qxcallq"}, {"tool_call_id", "abcdefghi"}, {"content", "qxresultq"}},
               user});
    called.tools = tool("qxcallq");
    for (const bool with_result : {true, false}) {
      if (!with_result) called.messages.erase(called.messages.begin() + 2, called.messages.end());
      const std::string prompt = rendered(*this, called);
      traits.tool_calls = traits.tool_calls || has(prompt, "qxvalueq");
      traits.tool_results = traits.tool_results || has(prompt, "qxresultq");
    }
  }

  const ordered_json parts = ordered_json::array({{{"type", "text"}, {"text", kText}}});
  const std::string in_parts = rendered(*this, probe({message("user", parts)}));
  // A list that is merely printed shows its keys.
  traits.content_parts = has(in_parts, kText) && !has(in_parts, "'type'") && !has(in_parts, "\"type\"");

  Conversation thinking = probe({user}), silent = probe({user});
  thinking.variables = {{"enable_thinking", true}};
  silent.variables = {{"enable_thinking", false}};
  const std::string thought = rendered(*this, thinking), unthought = rendered(*this, silent);
  traits.enable_thinking = !thought.empty() && !unthought.empty() && thought != unthought;
  return traits;
}

}  // namespace infer
