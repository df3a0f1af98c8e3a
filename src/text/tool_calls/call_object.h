// Reads a call that is one JSON object, with a name and arguments among its members, in any order. Until the name is
// known and the arguments have begun, it may still turn out not to be a call.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "src/text/tool_calls/arguments_reader.h"
#include "src/text/tool_calls/json_arguments.h"
#include "src/text/tool_calls/json_scanner.h"

namespace infer {

// The names of the members.
struct CallKeys {
  std::string name = "name", arguments = "arguments", id = "id";
};

class CallObject : public ArgumentsReader {
 public:
  // `ends`: texts at which broken arguments end.
  CallObject(const CallKeys& keys, std::vector<std::string> ends) : keys_(keys), broken_(std::move(ends)) {}

  size_t read(std::string_view text, std::string& out) override;
  void finish(std::string_view rest, std::string& out) override;

  // It is a call: the name is known and the arguments have begun, or the object has ended without arguments.
  bool is_call() const { return is_call_; }
  // It is not a call.
  bool is_other() const { return is_other_; }
  const std::string& name() const { return name_; }  // REQUIRES: is_call()
  const std::string& id() const { return id_; }      // "": there was none before the arguments

 private:
  enum class Member { kOther, kName, kArguments, kId };
  // False: the byte does not belong to the object.
  bool add(char c, std::string& out);
  void begin_member();
  void add_to_value(char c, std::string& out);
  void end_value(std::string& out);
  void end_object(std::string& out);
  void become_call(std::string& out);
  void fail();

  const CallKeys keys_;
  BrokenArguments broken_;
  JsonScanner scanner_;
  std::string key_, value_;  // of the member being read, as written; arguments are kept only if they are a string
  Member member_ = Member::kOther;
  bool in_value_ = false;
  bool is_call_ = false, is_other_ = false, is_broken_ = false;
  bool has_arguments_ = false;
  std::string name_, id_, early_;  // early_: arguments that came before the name
};

}  // namespace infer
