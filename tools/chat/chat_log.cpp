#include "tools/chat/chat_log.h"
#include "tools/chat/line_editor.h"

#include <algorithm>

#include "ggml-like/error.h"
#include "ggml-like/printable.h"
#include "src/text/ordered_json.h"
#include "tools/input.h"
#include "tools/output_file.h"

namespace infer {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kUser = "user";

bool is_user(const ChatMessage& message) { return message.role == kUser; }

[[noreturn]] void bad_file(const std::string& path, const std::string& what) {
  throw Error(ErrorCode::kInvalidFile, concat("[chat] ", printable(path), ": ", what));
}

// Other programs may split text into parts, {"type": "text", "text": ...}.
std::string content_text(const Json& content, const std::string& path) {
  if (content.is_string()) return content;
  if (content.is_null()) return "";
  std::string text;
  if (!content.is_array()) bad_file(path, "expected a string as content");
  for (const Json& part : content) {
    if (!part.is_object() || part.value("type", Json()) != "text" || !part.contains("text") ||
        !part["text"].is_string()) {
      bad_file(path, "expected content parts of type text");
    }
    text += part["text"].get<std::string>();
  }
  return text;
}

}  // namespace

std::string ChatLog::undo() {
  const auto last = std::find_if(messages.rbegin(), messages.rend(), is_user);
  if (last == messages.rend()) return "";
  std::string text = last->content;
  messages.erase(last.base() - 1, messages.end());
  return text;
}

bool ChatLog::take_back_answer() {
  const auto last = std::find_if(messages.rbegin(), messages.rend(), is_user);
  if (last == messages.rend()) return false;
  messages.erase(last.base(), messages.end());
  return true;
}

bool ChatLog::drop_oldest_turn(size_t kept) {
  const auto begin = messages.begin() + static_cast<ptrdiff_t>(std::min(kept, messages.size()));
  const auto first = std::find_if(begin, messages.end(), is_user);
  if (first == messages.end()) return false;
  const auto second = std::find_if(first + 1, messages.end(), is_user);
  if (second == messages.end()) return false;
  messages.erase(kept == 0 ? messages.begin() : first, second);
  return true;
}

Json ChatLog::to_json(bool system_in_user) const {
  Json list = Json::array();
  std::string before = system_in_user ? system : "";
  if (!system.empty() && !system_in_user) list.push_back({{"role", "system"}, {"content", system}});
  for (const ChatMessage& message : messages) {
    Json entry = {{"role", message.role}, {"content", message.content}};
    if (!before.empty() && is_user(message)) {
      entry["content"] = before + "\n\n" + message.content;
      before.clear();
    }
    if (!message.reasoning.empty()) entry["reasoning_content"] = message.reasoning;
    entry.update(message.more);
    list.push_back(std::move(entry));
  }
  return list;
}

void ChatLog::save(const std::string& path, bool private_to_owner) const {
  const std::string text = Json({{"messages", to_json()}}).dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  AtomicFile file(path, private_to_owner);
  file.write(text);
  file.finish();
}

ChatLog ChatLog::load(const std::string& path) {
  Json document;
  try {
    document = Json::parse(read_text_file(path));
  } catch (const Json::exception&) {
    bad_file(path, "expected JSON");
  }
  if (document.is_object() && document.contains("messages")) document = Json(document["messages"]);
  if (!document.is_array()) bad_file(path, "expected a list of messages");
  ChatLog log;
  for (const Json& entry : document) {
    if (!entry.is_object() || !entry.contains("role") || !entry["role"].is_string() || !entry.contains("content")) {
      bad_file(path, "expected messages with role and content");
    }
    const std::string role = entry["role"];
    const std::string content = content_text(entry["content"], path);
    if (role == "system" && log.messages.empty()) {
      log.system += (log.system.empty() ? "" : "\n\n") + content;
      continue;
    }
    log.add(role, content);
    if (entry.contains("reasoning_content") && entry["reasoning_content"].is_string()) {
      log.messages.back().reasoning = entry["reasoning_content"];
    }
    for (const char* name : {"tool_calls", "tool_call_id", "name"}) {
      const auto member = entry.find(name);
      if (member == entry.end()) continue;
      const bool is_list = std::string_view(name) == "tool_calls";
      if (is_list ? !member->is_array() : !member->is_string())
        bad_file(path, concat("expected ", is_list ? "a list" : "a string", " as ", name));
      log.messages.back().more[name] = *member;
    }
  }
  return log;
}

bool ChatLog::is_saved_chat(const std::string& path) {
  try {
    const Json document = Json::parse(read_text_file(path));
    if (!document.is_object() || document.size() != 1 || !document.contains("messages")) return false;
    load(path);
    return true;
  } catch (const Json::exception&) {
    return false;
  } catch (const Error&) {
    return false;
  }
}

std::string kept_chat_file() {
  const std::string history = default_history_file();
  return history.empty() ? "" : (std::filesystem::path(history).parent_path() / "last-chat.json").string();
}

}  // namespace infer
