#include "tests/support/skip.h"

#include <cstdio>
#include <cstdlib>

namespace infer::test {
namespace {
int skipped = 0;
}

void skip(const std::string& name, const std::string& reason) {
  ++skipped;
  std::printf("skipped: %s: %s\n", name.c_str(), reason.c_str());
}

int skipped_count() { return skipped; }

std::optional<std::filesystem::path> shared_dir(const std::string& test_name) {
  const char* variable = std::getenv("INFER_SHARED");
  const std::filesystem::path folder =
      variable ? std::filesystem::path(variable) : std::filesystem::path(INFER_SOURCE_DIR).parent_path() / "shared";
  if (std::filesystem::is_directory(folder / "goldens")) return folder;
  skip(test_name, "no reference data (../shared or $INFER_SHARED)");
  return std::nullopt;
}

}  // namespace infer::test
