#include "tools/plan/shape_file.h"

#include <unistd.h>

#include <filesystem>

#include "ggml-like/error.h"
#include "tools/arguments.h"

namespace infer {

void add_shape_flags(CLI::App& app, ShapeFlags& flags, std::string help) {
  const char* separator = ": ";
  for (const std::string_view shape : random_model_shapes()) {
    help += concat(separator, shape);
    separator = ", ";
  }
  const std::vector<std::string_view>& shapes = random_model_shapes();
  app.add_option("--shape", flags.name, help)->check(suggests({shapes.begin(), shapes.end()}))->type_name("NAME");
  app.add_option("--type", flags.type, "Type of the shape's weights, or Q4_K_M (default)")->type_name("TYPE");
}

std::shared_ptr<const GgufFile> open_shape(const std::string& shape, const std::string& type, RandomWeights weights) {
  const auto path = std::filesystem::temp_directory_path() / concat("infer-shape-", getpid(), ".gguf");
  struct Removal {
    const std::filesystem::path& path;
    ~Removal() {
      std::error_code ignored;
      std::filesystem::remove(path, ignored);
    }
  } const removal{path};
  write_random_model(shape, type, path.string(), weights);
  return GgufFile::open(path);
}

}  // namespace infer
