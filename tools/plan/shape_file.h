// A model of a well-known shape as a file, for a command that is given a shape and no file.
#pragma once

#include <memory>
#include <string>

#include "ggml-like/gguf.h"
#include "src/model/random_model.h"

namespace infer {

// Written to the folder for temporary files; its name is gone when this returns, its room when the file is closed.
// Throws what write_random_model and GgufFile::open throw.
std::shared_ptr<const GgufFile> open_shape(const std::string& shape, const std::string& type, RandomWeights weights);

}  // namespace infer
