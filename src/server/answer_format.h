// The form in which an endpoint sends the answers to a request: whole, as the events of a stream, and as an error in
// the middle of a stream. Each endpoint that generates text has its own; whatever runs requests knows none of them. One
// object per request; one thread.
#pragma once

#include <string>

#include "src/server/answers.h"
#include "src/server/api_error.h"

namespace infer {

class AnswerFormat {
 public:
  virtual ~AnswerFormat() = default;

  // What the ids of answers begin with: "cmpl-".
  virtual const char* id_prefix() const = 0;

  // The body of a whole response, with usage and log-probabilities.
  virtual std::string whole(const Answers& answers) = 0;

  // The events of a stream as they are sent, "" for none: before the first token, with each event of the engine (which
  // `answers` has taken already), after the last event, and instead of the rest when the request fails.
  virtual std::string first(const Answers& answers) = 0;
  virtual std::string next(const Answers& answers, const AnswerEvent& event) = 0;
  virtual std::string last(const Answers& answers) = 0;
  virtual std::string error(const Answers& answers, const ApiError& error) = 0;
};

}  // namespace infer
