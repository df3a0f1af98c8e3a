// How an endpoint sends the answers to a request: whole, as the events of a stream, or as an error in the middle of
// one. Each endpoint that generates text has its own; the code that runs requests knows none of them. One object per
// request; one thread.
#pragma once

#include <string>

#include "src/server/answers.h"
#include "src/server/api_error.h"

namespace infer {

class AnswerFormat {
 public:
  virtual ~AnswerFormat() = default;

  // Prefix of the answers' ids: "cmpl-".
  virtual const char* id_prefix() const = 0;

  // The body of a complete response, with usage and log-probabilities.
  virtual std::string whole(const Answers& answers) = 0;

  // The events of a stream as sent, "" for none: before the first token, for each event of the engine (already applied
  // to `answers`), after the last event, and in place of the rest if the request fails.
  virtual std::string first(const Answers& answers) = 0;
  virtual std::string next(const Answers& answers, const AnswerEvent& event) = 0;
  virtual std::string last(const Answers& answers) = 0;
  virtual std::string error(const Answers& answers, const ApiError& error) = 0;
};

}  // namespace infer
