// The messages of a chat, and their file format: {"messages": [{"role", "content"}, ...]}, which `infer template
// --input` also reads.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "src/text/ordered_json.h"

namespace infer {

struct ChatMessage {
  std::string role;       // "user", "assistant", or another role from a loaded file
  std::string content;    // without the reasoning
  std::string reasoning;  // for assistant messages; "": none
  // Further members that templates read: tool_calls of an assistant message, name and tool_call_id of a tool result.
  nlohmann::ordered_json more = nlohmann::ordered_json::object();
  bool operator==(const ChatMessage&) const = default;
};

class ChatLog {
 public:
  std::string system;                 // the system prompt; "": none
  std::vector<ChatMessage> messages;  // without the system prompt

  bool ends_with(std::string_view role) const { return !messages.empty() && messages.back().role == role; }
  void add(std::string role, std::string content) {
    messages.push_back({.role = std::move(role), .content = std::move(content), .reasoning = {}});
  }
  // Removes the last user message and everything after it. Returns that message's text, "" if there was none.
  std::string undo();
  // Removes everything after the last user message; false if there is no such message.
  bool take_back_answer();
  // Removes the oldest turn that does not begin in the first `kept` messages: everything from a user message up to the
  // next one. If there is no next one, returns false and changes nothing.
  bool drop_oldest_turn(size_t kept = 0);

  // The form that chat templates take, system prompt first. With `system_in_user`, for templates without a system role,
  // the system prompt is prepended to the first user message instead.
  nlohmann::ordered_json to_json(bool system_in_user = false) const;

  // Writes a temporary file and renames it. `private_to_owner`: nobody else may read it. Throws Error(kIo).
  void save(const std::string& path, bool private_to_owner = false) const;
  // Throws Error(kIo), and Error(kInvalidFile) unless the file is a list of messages with roles and texts.
  static ChatLog load(const std::string& path);
  // Whether the file can be read and contains exactly what save() writes.
  static bool is_saved_chat(const std::string& path);
};

// Where every chat is kept after each answer, so that none is lost: next to the history of the line editor. "":
// nowhere, if there is no such history.
std::string kept_chat_file();

}  // namespace infer
