// What to tell the user about a request that failed.
#pragma once

#include <string>

#include "ggml-like/error.h"
#include "src/hub/http_client.h"

namespace infer {

// Whether another attempt can succeed: 408, 429, 5xx, a broken connection.
bool may_pass(const FetchResult& result);
// The seconds that the server asks to wait, as a number or as a date, at most 300; -1 if it does not say.
int retry_after(const ResponseHead& head);

// The error for a response that is no success, or for none. `what`: the model's or the file's name.
Error request_error(const FetchResult& result, const std::string& what, bool had_token);

}  // namespace infer
