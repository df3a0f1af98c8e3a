#include "src/text/tool_calls/call_object.h"

#include "src/text/ordered_json.h"

namespace infer {
namespace {

// The text of a JSON string, without its quotes; "" if the value is no string.
std::string string_value(const std::string& json) {
  const auto value = nlohmann::ordered_json::parse(json, nullptr, false);
  return value.is_string() ? value.get<std::string>() : "";
}

}  // namespace

size_t CallObject::read(std::string_view text, std::string& out) {
  size_t at = 0;
  while (at < text.size() && !done_ && !is_other_ && !is_broken_) {
    at += add(text[at], out);
  }
  if (is_broken_) at += broken_.read(text.substr(at), out, done_);
  return at;
}

void CallObject::finish(std::string_view rest, std::string& out) {
  if (is_broken_) out += rest;
  if (in_value_ && member_ == Member::kArguments && !value_.empty()) out += string_value(value_ + '"');
}

bool CallObject::add(char c, std::string& out) {
  const bool was_key = scanner_.in_key(), was_before_value = scanner_.before_value();
  const size_t depth = scanner_.depth();
  const auto status = scanner_.add(c);
  if (status == JsonScanner::Status::kBroken) {
    // Broken after the arguments: the call is valid, and the rest does not belong to it.
    if (is_call_ && !in_value_) done_ = true;
    else fail();
    return false;
  }
  if (depth == 1) {
    if (scanner_.in_key() && !was_key) key_.clear();
    if (scanner_.in_key() || was_key) key_ += c;
    if (was_before_value && !scanner_.before_value()) begin_member();
  }
  if (in_value_) {
    const bool ended = scanner_.depth() <= 1 && scanner_.after_value();
    // A number ends before the bracket or comma that follows; other values end with their last byte.
    const bool before = ended && depth == 1 && (c == ',' || c == '}');
    if (!before) add_to_value(c, out);
    if (ended) end_value(out);
  }
  if (status == JsonScanner::Status::kDone) end_object(out);
  return true;
}

void CallObject::begin_member() {
  const std::string key = string_value(key_);
  member_ = key == keys_.name                                                     ? Member::kName
            : key == keys_.arguments || key == "arguments" || key == "parameters" ? Member::kArguments
            : key == keys_.id                                                     ? Member::kId
                                                                                  : Member::kOther;
  if (member_ == Member::kArguments && has_arguments_) member_ = Member::kOther;
  value_.clear();
  in_value_ = true;
}

void CallObject::add_to_value(char c, std::string& out) {
  if (member_ == Member::kOther) return;
  if (member_ != Member::kArguments) {
    value_ += c;
    return;
  }
  if (!has_arguments_) {
    has_arguments_ = true;
    if (c == '"') value_ += c;
    if (!name_.empty()) become_call(out);
  } else if (!value_.empty()) {
    value_ += c;
  }
  if (value_.empty()) (is_call_ ? out : early_) += c;
}

void CallObject::end_value(std::string& out) {
  in_value_ = false;
  if (member_ == Member::kId && !is_call_) id_ = string_value(value_);
  if (member_ == Member::kArguments && !value_.empty()) (is_call_ ? out : early_) += string_value(value_);
  if (member_ != Member::kName || is_call_) return;
  name_ = string_value(value_);
  if (name_.empty()) return fail();
  if (has_arguments_) become_call(out);
}

void CallObject::end_object(std::string& out) {
  if (!is_call_ && name_.empty()) return fail();
  if (!is_call_) become_call(out);
  if (!has_arguments_) out += "{}";
  done_ = true;
}

void CallObject::become_call(std::string& out) {
  is_call_ = true;
  out += early_;
  early_.clear();
}

void CallObject::fail() { (is_call_ ? is_broken_ : is_other_) = true; }

}  // namespace infer
