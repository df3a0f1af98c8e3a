// The list of endpoints.
#include "src/server/endpoint.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

namespace infer {
namespace {

std::string text_of(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST_CASE("endpoints: the list has every endpoint that a file defines") {
  const std::filesystem::path folder = std::filesystem::path(INFER_SOURCE_DIR) / "src" / "server";
  const std::string list = text_of(folder / "endpoints.cpp");
  size_t n_defined = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (!entry.path().filename().string().starts_with("api_")) continue;
    const std::string source = text_of(entry.path());
    constexpr std::string_view kStart = "\nEndpoint ", kEnd = "_endpoint() {";
    for (size_t end = source.find(kEnd); end != std::string::npos; end = source.find(kEnd, end + 1)) {
      const size_t start = source.rfind(kStart, end) + kStart.size();
      const std::string name = source.substr(start, end - start) + "_endpoint(),";
      CAPTURE(name);
      CHECK(list.find("\n      " + name) != std::string::npos);
      ++n_defined;
    }
  }
  CHECK(n_defined == endpoints().size());
}

TEST_CASE("endpoints: each method and path once") {
  std::set<std::pair<std::string, std::string>> seen;
  for (const Endpoint& endpoint : endpoints()) CHECK(seen.emplace(endpoint.method, endpoint.path).second);
}

TEST_CASE("endpoints: a path that ends with a slash matches all paths below it") {
  const Endpoint below{.method = "GET", .path = "/models/", .run = nullptr};
  CHECK(below.takes("/models/x/y"));
  CHECK(below.takes("/models/"));
  CHECK(!below.takes("/models"));
  const Endpoint one{.method = "GET", .path = "/models", .run = nullptr};
  CHECK(one.takes("/models"));
  CHECK(!one.takes("/models/x"));
}

}  // namespace
}  // namespace infer
