// The form of messages about files, requests and devices.
#pragma once

#include <string>

#include "ggml-like/error.h"

namespace infer {

// "[where] expected X, found Y". `where` names the part of the program or the file, as "http" or "imatrix".
template <typename Expected, typename Found>
std::string expected_found(const char* where, const Expected& expected, const Found& found) {
  return concat("[", where, "] expected ", expected, ", found ", found);
}

}  // namespace infer
