// `ref`: a device whose operations are the definitions, in plain scalar code with double-precision sums. Slow, one
// thread, every operation and type; the oracle of the conformance tests and a fallback to debug with (--device ref).
#pragma once

#include <memory>

#include "ggml-like/backend.h"

namespace infer {

std::unique_ptr<Device> create_ref_device();

}  // namespace infer
