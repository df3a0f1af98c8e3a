// Skips tests whose data is missing, and counts them.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace infer::test {

// Counts one skipped test of this program and prints `skipped: NAME: REASON`; both appear in the final summary.
void skip(const std::string& name, const std::string& reason);
int skipped_count();

// The folder of reference data ($INFER_SHARED or ../shared), or nullopt after counting a skip.
std::optional<std::filesystem::path> shared_dir(const std::string& test_name);

}  // namespace infer::test
