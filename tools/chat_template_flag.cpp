#include "tools/chat_template_flag.h"

#include <filesystem>

#include "tools/input.h"

namespace infer {

ChatTemplate template_by_name_or_file(const std::string& name_or_file) {
  std::error_code ignored;
  const bool is_file = !ChatTemplate::is_builtin(name_or_file) && std::filesystem::exists(name_or_file, ignored);
  return is_file ? ChatTemplate::parse(read_text_file(name_or_file)) : ChatTemplate::builtin(name_or_file);
}

}  // namespace infer
