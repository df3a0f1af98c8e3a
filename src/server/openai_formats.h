// The answer formats of OpenAI's chat completions and text completions, with a few additional members.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "src/server/answer_format.h"

namespace infer {

std::unique_ptr<AnswerFormat> make_chat_completion_format();

// `echoed`: the prompts to prepend to the texts, or none.
std::unique_ptr<AnswerFormat> make_completion_format(std::vector<std::string> echoed);

}  // namespace infer
