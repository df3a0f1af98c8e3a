#include "tests/unit/text/jinja_support.h"

#include <doctest/doctest.h>

#include <fstream>

namespace infer::test {

std::tm recorded_time() {
  std::tm time = {};
  time.tm_year = 126, time.tm_mon = 0, time.tm_mday = 15;
  time.tm_hour = 10, time.tm_min = 30;
  time.tm_wday = 4, time.tm_yday = 14;
  return time;
}

std::string render(const std::string& source, const nlohmann::ordered_json& variables) {
  return jinja::Template(source).render(variables, recorded_time);
}

std::string render_error(const std::string& source, const nlohmann::ordered_json& variables) {
  try {
    const std::string text = render(source, variables);
    FAIL_CHECK("expected an error of ", source.substr(0, 200), ", found text ", text.substr(0, 200));
  } catch (const TemplateError& error) {
    return error.what();
  }
  return "";
}

std::string read_text(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  REQUIRE_MESSAGE(in.good(), path.string());
  return std::string(std::istreambuf_iterator<char>(in), {});
}

nlohmann::ordered_json read_ordered_json(const std::string& path) {
  std::ifstream in(path);
  REQUIRE_MESSAGE(in.good(), path);
  return nlohmann::ordered_json::parse(in);
}

}  // namespace infer::test
