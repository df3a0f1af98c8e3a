// The small models that the project ships.
#pragma once

#include <string>

#include "src/model/model.h"

namespace infer::test {

// `path`: below the source tree, without .gguf, such as "tests/data/arch/qwen3moe". Throws Error as load_model does.
inline std::shared_ptr<Model> open_shipped(const std::string& path) {
  return load_model(GgufFile::open(INFER_SOURCE_DIR "/" + path + ".gguf"));
}
inline std::shared_ptr<Model> open_small(const std::string& architecture) {
  return open_shipped("tests/data/arch/" + architecture);
}

}  // namespace infer::test
