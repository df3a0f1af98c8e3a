#include "src/server/conversation.h"

#include <algorithm>
#include <cctype>
#include <deque>
#include <map>

#include "ggml-like/error.h"
#include "src/server/constraints.h"
#include "src/server/json_object.h"

namespace infer {
namespace {

constexpr size_t kMaxCalls = 1024;  // per message

// A string or a list of text parts; other kinds of parts are refused. Absent or null content is "" if the message may
// lack it.
Json read_content(const Json& message, const std::string& path, bool may_lack) {
  const auto content = message.find("content");
  if (content == message.end() || content->is_null()) {
    if (may_lack) return "";
    throw unexpected_value(path + "content", "a string or an array of text parts", "none");
  }
  if (content->is_string()) return *content;
  if (!content->is_array()) {
    throw unexpected_value(path + "content", "a string or an array of text parts", describe_json(*content));
  }
  for (size_t i = 0; i < content->size(); ++i) {
    const Json& part = (*content)[i];
    const std::string name = concat(path, "content[", i, "]");
    if (!part.is_object()) throw unexpected_value(name, "an object", describe_json(part));
    const JsonFields fields(part, name + ".");
    const std::string type = fields.text("type").value_or("");
    if (type != "text") fields.refuse("type", "\"text\" (this server takes no images, audio or files)");
    if (!fields.text("text")) fields.refuse("text", "a string");
  }
  return *content;
}

// One call of an assistant message; adds the type if the client left it out.
Json read_call(const Json& call, const std::string& path) {
  if (!call.is_object()) throw unexpected_value(path, "an object", describe_json(call));
  const JsonFields fields(call, path + ".");
  fields.text("id");
  const Json* function = fields.object("function");
  if (!function) fields.refuse("function", "an object with the name and the arguments of the call");
  const JsonFields inner(*function, path + ".function.");
  if (!inner.text("name")) inner.refuse("name", "a string");
  if (const Json* arguments = inner.find("arguments"); arguments && !arguments->is_string()) inner.object("arguments");
  Json result = call;
  if (fields.text("type").value_or("").empty()) result["type"] = "function";
  return result;
}

Json read_message(const Json& message, size_t index) {
  const std::string path = concat("messages[", index, "]");
  if (!message.is_object()) throw unexpected_value(path, "an object", describe_json(message));
  const JsonFields fields(message, path + ".");
  const auto role = fields.text("role", 64);
  static constexpr std::string_view kRoles[] = {"system", "developer", "user", "assistant", "tool", "function"};
  if (!role || std::find(std::begin(kRoles), std::end(kRoles), *role) == std::end(kRoles)) {
    fields.refuse("role", "system, developer, user, assistant or tool");
  }
  fields.text("name");
  fields.text("tool_call_id");
  fields.text("reasoning_content");
  const Json* calls = fields.array("tool_calls", kMaxCalls);
  // Clients send back what they received, including null members; templates check whether a member exists.
  Json result = Json::object();
  for (const auto& [name, value] : message.items()) {
    if (!value.is_null() && name != "tool_calls") result[name] = value;
  }
  const bool may_lack = calls || *role == "assistant" || *role == "tool" || *role == "function";
  result["role"] = *role == "developer" ? "system" : *role;
  result["content"] = read_content(message, path + ".", may_lack);
  if (!calls || calls->empty()) return result;
  Json& list = result["tool_calls"] = Json::array();
  for (const Json& call : *calls) list.push_back(read_call(call, concat(path, ".tool_calls[", list.size(), "]")));
  return result;
}

void fit_content(Json& content, const ContentForms& forms) {
  if (content.is_array() && !forms.parts) content = text_of_content(content);
  const bool only_parts = forms.parts && !forms.text;
  if (content.is_string() && only_parts && content != "") {
    content = Json::array({json_object("type", "text", "text", content)});
  }
}

// Parses JSON text into an object; "" means no arguments. null if it is not an object.
Json object_of(const std::string& text) {
  constexpr int kMaxDepth = 64;
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) return Json::object();
  try {
    return parse_json_object(text, {.depth = kMaxDepth});
  } catch (const ApiError&) {
    return nullptr;
  }
}

void fit_arguments(Json& function, const TemplateTraits& traits, const std::string& path) {
  Json& arguments = function["arguments"];
  if (arguments.is_null()) arguments = Json::object();
  const bool as_object = traits.object_arguments || !traits.string_arguments;
  if (!as_object) {
    if (arguments.is_object()) arguments = arguments.dump(-1, ' ', false, Json::error_handler_t::replace);
    return;
  }
  if (arguments.is_object()) return;
  Json object = object_of(arguments.get_ref<const std::string&>());
  if (object.is_object()) {
    arguments = std::move(object);
  } else if (!traits.string_arguments) {
    throw unexpected_value(path, "the JSON text of an object, as the model's chat template needs",
                           describe_json(arguments));
  }
}

// Gives an id to calls without one; results without one get that of the first call that still lacks a result.
// `only_short`: replaces ids other than nine letters and digits, in calls and results alike.
class CallIds {
 public:
  explicit CallIds(bool only_short) : only_short_(only_short) {}

  void fill(Json& message) {
    if (message["role"] == "tool") {
      if (!message.contains("tool_call_id") && !open_.empty()) message["tool_call_id"] = open_.front();
      if (message.contains("tool_call_id")) message["tool_call_id"] = taken(message["tool_call_id"]);
      const auto answered = std::find(open_.begin(), open_.end(), message.value("tool_call_id", ""));
      if (answered != open_.end()) open_.erase(answered);
    }
    if (!message.contains("tool_calls")) return;
    for (Json& call : message["tool_calls"]) {
      call["id"] = call.contains("id") && !call["id"].is_null() ? taken(call["id"]) : next();
      open_.push_back(call["id"].get<std::string>());
    }
  }

 private:
  // Nine letters and digits.
  std::string next() { return concat("call", 10000 + n_made_++); }

  std::string taken(const std::string& id) {
    const auto alphanumeric = [](unsigned char c) { return std::isalnum(c) != 0; };
    if (!only_short_ || (id.size() == 9 && std::all_of(id.begin(), id.end(), alphanumeric))) return id;
    const auto [entry, added] = short_ids_.emplace(id, "");
    if (added) entry->second = next();
    return entry->second;
  }

  const bool only_short_;
  std::deque<std::string> open_;  // ids of calls without a result
  std::map<std::string, std::string> short_ids_;
  int n_made_ = 0;
};

// How the prompt ends: with the header of an answer, with an incomplete answer, or with the last message.
void read_end(const JsonFields& fields, ChatPromptRequest& request) {
  Conversation& conversation = request.conversation;
  const bool says_continue = fields.find("continue_final_message"),
             says_generation = fields.find("add_generation_prompt");
  conversation.continue_final_message = fields.boolean("continue_final_message", false);
  conversation.add_generation_prompt = fields.boolean("add_generation_prompt", true);
  if (conversation.continue_final_message && says_generation && conversation.add_generation_prompt) {
    throw unexpected_value("add_generation_prompt", "false together with continue_final_message", "true");
  }
  const Json& messages = conversation.messages;
  const Json& last = messages.back();
  if (last["role"] != "assistant" || !conversation.add_generation_prompt) return;
  const bool is_whole = last.contains("tool_calls") || (last["content"] == "" && last.contains("reasoning_content"));
  request.continue_answer = !says_continue && !is_whole;
  const bool continued = request.continue_answer || conversation.continue_final_message;
  if (continued && messages.size() > 1 && messages[messages.size() - 2]["role"] == "assistant") {
    throw unexpected_value("messages", "at most one assistant message at the end",
                           "two; the last one is taken as the beginning of the answer");
  }
}

}  // namespace

std::string text_of_content(const Json& content) {
  if (content.is_string()) return content.get<std::string>();
  std::string text;
  for (const Json& part : content) {
    if (!text.empty()) text += '\n';
    text += part["text"].get_ref<const std::string&>();
  }
  return text;
}

ChatPromptRequest parse_conversation(const Json& body, const RequestContext& context) {
  const JsonFields fields(body);
  ChatPromptRequest request;
  Conversation& conversation = request.conversation;
  const Json* messages = fields.array("messages", context.limits.max_messages);
  if (!messages || messages->empty()) fields.refuse("messages", "an array of at least one message");
  for (size_t i = 0; i < messages->size(); ++i) conversation.messages.push_back(read_message((*messages)[i], i));
  conversation.tools = read_tools(fields, context).tools;
  conversation.variables = context.template_variables;
  if (const Json* variables = fields.object("chat_template_kwargs")) conversation.variables.update(*variables);
  read_end(fields, request);
  return request;
}

void fit_to_template(Conversation& conversation, const TemplateTraits& traits) {
  CallIds ids(traits.needs_short_ids);
  for (size_t i = 0; i < conversation.messages.size(); ++i) {
    Json& message = conversation.messages[i];
    const std::string role = message["role"];
    fit_content(message["content"], role == "system"      ? traits.system
                                    : role == "user"      ? traits.user
                                    : role == "assistant" ? traits.assistant
                                                          : traits.tool);
    if (message.contains("tool_calls")) {
      Json& calls = message["tool_calls"];
      for (size_t k = 0; k < calls.size(); ++k) {
        fit_arguments(calls[k]["function"], traits, concat("messages[", i, "].tool_calls[", k, "].function.arguments"));
      }
    }
    if (traits.needs_call_ids || traits.needs_short_ids) ids.fill(message);
  }
}

}  // namespace infer
