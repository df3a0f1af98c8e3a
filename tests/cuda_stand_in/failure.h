// For tests of the stand-in itself.
#pragma once

#include <string>

namespace cuda_stand_in {

// What a kernel did wrong, or "". The stand-in goes on as if nothing had happened.
std::string take_failure();

}  // namespace cuda_stand_in
