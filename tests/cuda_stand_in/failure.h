// For tests of the stand-in itself.
#pragma once

#include <string>

namespace cuda_stand_in {

// Returns what a kernel did wrong, or "", and resets it: the stand-in then works as if nothing had happened.
std::string take_failure();

}  // namespace cuda_stand_in
