// A well-known shape as a model file, for commands that are given a shape instead of a file.
#pragma once

#include <memory>
#include <string>

#include "ggml-like/gguf.h"
#include "src/model/random_model.h"

namespace infer {

// Written to the folder for temporary files and unlinked before this returns; its space is freed when the file is
// closed. Throws what write_random_model and GgufFile::open throw.
std::shared_ptr<const GgufFile> open_shape(const std::string& shape, const std::string& type, RandomWeights weights);

}  // namespace infer
