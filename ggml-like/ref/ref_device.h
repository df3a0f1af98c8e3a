// `ref`: a device whose operations define the results, in plain scalar code with double-precision sums. Slow, one
// thread, every operation and type; the oracle of the conformance tests and a debugging aid (--device ref).
#pragma once

#include <memory>

#include "ggml-like/backend.h"

namespace infer {

std::unique_ptr<Device> create_ref_device();

}  // namespace infer
