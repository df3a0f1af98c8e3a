// The --chat-template flag.
#pragma once

#include <string>

#include "src/text/chat_template.h"

namespace infer {

// A template by the name of a built-in one, else from the file of that name. Throws TemplateError for a template that
// is not well-formed, Error(kIo) for a file that cannot be read, Error(kInvalidArgument) when it is neither.
ChatTemplate template_by_name_or_file(const std::string& name_or_file);

}  // namespace infer
