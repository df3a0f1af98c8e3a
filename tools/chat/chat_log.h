// What was said in a chat, and its file form: {"messages": [{"role", "content"}, ...]}, which `infer template --input`
// reads as well.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace infer {

struct ChatMessage {
  std::string role;       // "user", "assistant", or another that a loaded file brought
  std::string content;    // without the reasoning
  std::string reasoning;  // of an assistant; "" for none
  bool operator==(const ChatMessage&) const = default;
};

class ChatLog {
 public:
  std::string system;                 // the system prompt, "" for none
  std::vector<ChatMessage> messages;  // without it

  bool ends_with(std::string_view role) const { return !messages.empty() && messages.back().role == role; }
  void add(std::string role, std::string content) { messages.push_back({std::move(role), std::move(content), {}}); }
  // Takes back the last message of the user and all after it; that message's text, "" when there was none.
  std::string undo();
  // Takes back what follows the last message of the user; false when there is no such message.
  bool take_back_answer();
  // Drops the oldest turn: everything up to the second message of the user. False, and nothing done, when there is no
  // second one.
  bool drop_oldest_turn();

  // As chat templates take them, system prompt first. With `system_in_user` the system prompt stands at the beginning
  // of the first message of the user instead, for templates without a system role.
  nlohmann::ordered_json to_json(bool system_in_user = false) const;

  // Written beside the name and renamed. Throws Error(kIo).
  void save(const std::string& path) const;
  // Throws Error(kIo), and Error(kInvalidFile) for what is no list of messages with roles and texts.
  static ChatLog load(const std::string& path);
  // Whether the file can be read and has the form that save() writes, and nothing more.
  static bool is_saved_chat(const std::string& path);
};

}  // namespace infer
