// The --chat-template flag.
#pragma once

#include <string>

#include "src/text/chat_template.h"

namespace infer {

// A built-in template by name, else a template from that file. Throws TemplateError for a malformed template,
// Error(kIo) for a file that cannot be read, and Error(kInvalidArgument) if there is neither.
ChatTemplate template_by_name_or_file(const std::string& name_or_file);

}  // namespace infer
