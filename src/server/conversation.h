// From the messages of a chat request to what the model's template takes. Pure functions; any thread. They throw
// ApiError (400) that names the member of the request.
#pragma once

#include "src/server/requests.h"
#include "src/text/chat_template.h"

namespace infer {

// Content, arguments of calls and ids in the form that the template reads. `conversation` as parse_conversation() makes
// it: clients send the arguments as JSON text, most templates want the object.
void fit_to_template(Conversation& conversation, const TemplateTraits& traits);

// A message's content, a string or a list of text parts, as one text; a line break stands between parts.
std::string text_of_content(const Json& content);

}  // namespace infer
