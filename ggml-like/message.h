// The form of messages about files, requests and devices.
#pragma once

#include <string>
#include <string_view>

#include "ggml-like/error.h"

namespace infer {

// "[where] expected X, found Y". `where` names the part of the program or the file, such as "http" or "imatrix".
template <typename Expected, typename Found>
std::string expected_found(std::string_view where, const Expected& expected, const Found& found) {
  return concat("[", where, "] expected ", expected, ", found ", found);
}

// "[where] subject: expected X, found Y". `subject` is a parameter, a key or a tensor.
template <typename Subject, typename Expected, typename Found>
std::string expected_found(std::string_view where, const Subject& subject, const Expected& expected,
                           const Found& found) {
  return concat("[", where, "] ", subject, ": expected ", expected, ", found ", found);
}

}  // namespace infer
