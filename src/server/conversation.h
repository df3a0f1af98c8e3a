// Converts the messages of a chat request into what the model's template accepts. Pure functions; any thread. They
// throw ApiError (400) naming the member of the request.
#pragma once

#include "src/server/requests.h"
#include "src/text/chat_template.h"

namespace infer {

// Converts content, call arguments and ids into the forms that the template reads. `conversation` comes from
// parse_conversation(): clients send arguments as JSON text, but most templates want the object.
void fit_to_template(Conversation& conversation, const TemplateTraits& traits);

// A message's content (a string or a list of text parts) as one text; parts are separated by line breaks.
std::string text_of_content(const Json& content);

}  // namespace infer
