// A well-known shape as a model file, for commands that are given a shape instead of a file.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "ggml-like/gguf.h"
#include "src/model/random_model.h"

namespace infer {

struct ShapeFlags {
  std::string name;             // --shape; "": a model file is given instead
  std::string type = "Q4_K_M";  // --type: of the weights
};
// `help`: what --shape does; the names of the shapes follow it.
void add_shape_flags(CLI::App& app, ShapeFlags& flags, std::string help);

// Written to the folder for temporary files and unlinked before this returns; its space is freed when the file is
// closed. Throws what write_random_model and GgufFile::open throw.
std::shared_ptr<const GgufFile> open_shape(const std::string& shape, const std::string& type, RandomWeights weights);

}  // namespace infer
