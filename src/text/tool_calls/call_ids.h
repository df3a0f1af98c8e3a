// Ids for calls in formats that have none.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace infer {

// The id of the call with this index. Different seeds, such as request ids, give different ids; the same seed gives the
// same ones. `short_id`: nine letters and digits; otherwise call_ and 24 of them.
std::string make_call_id(std::string_view seed, size_t index, bool short_id);

}  // namespace infer
