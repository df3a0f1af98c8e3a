// infer inspect: totals, safe printing, and finding values that are not finite.
#include "tools/inspect.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/unit/ggml-like/gguf_raw.h"

using namespace infer;
using namespace infer::test;

namespace {

// F32 [2, 20000], Q8_0 [2, 64], I8 [3]; every float is 1 except those given.
struct InspectedModel : TemporaryFolder {
  std::filesystem::path file = path / "m.gguf";

  explicit InspectedModel(std::vector<std::pair<size_t, float>> changed = {}, uint16_t last_scale = 0x3C00) {
    std::vector<float> floats(40000, 1.0F);
    for (const auto& [at, value] : changed) floats[at] = value;
    std::string blocks;
    for (int i = 0; i < 4; ++i) {
      const uint16_t scale = i == 3 ? last_scale : 0x3C00;  // F16 one
      blocks.append(reinterpret_cast<const char*>(&scale), 2).append(32, '\1');
    }
    GgufWriter writer(
        file,
        {{"general.name", GgufValue::of_string("evil\x1B[2J\xFF")},
         {"tokens", GgufValue::of_strings({"a", "b", "c", "d", "e", "f", "g"})}},
        {{"floats", DataType::kF32, {2, 20000}}, {"blocks", DataType::kQ8_0, {2, 64}}, {"bytes", DataType::kI8, {3}}});
    writer.write(std::as_bytes(std::span(floats)));
    writer.write(as_bytes(blocks));
    writer.write(as_bytes("xyz"));
    writer.finish();
  }
};

std::pair<int, std::string> inspect(const InspectOptions& options) {
  std::ostringstream out;
  const int code = run_inspect(options, out);
  return {code, out.str()};
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("inspect: text has metadata, totals and, on request, tensors") {
  const InspectedModel model;
  const auto [code, text] = inspect({.file = model.file});
  CHECK(code == 0);
  CHECK(contains(text, "parameters  40131 (40.13 K)"));
  CHECK(contains(text, "tokens        string[7]  [\"a\", \"b\", \"c\", \"d\", \"e\", \"f\", ...]"));
  CHECK(contains(text, "F32             1     40.00 K  156.25 KiB       32.000"));
  CHECK(contains(text, "Q8_0            1         128       136 B        8.500"));
  CHECK(!contains(text, "[2, 20000]"));
  CHECK(
      contains(inspect({.file = model.file, .tensors = true}).second, "  floats  F32       [2, 20000]  156.25 KiB\n"));
}

TEST_CASE("inspect: control characters of the file never reach the output") {
  const InspectedModel model;
  for (const bool json : {false, true}) {
    const std::string text = inspect({.file = model.file, .tensors = true, .json = json}).second;
    CHECK(contains(text, "evil"));
    for (const char c : text) CHECK((c == '\n' || (c >= 0x20 && c < 0x7F)));
  }
}

TEST_CASE("inspect: the JSON document") {
  const InspectedModel model;
  const auto document = nlohmann::json::parse(inspect({.file = model.file, .verify = true, .json = true}).second);
  CHECK(document["version"] == 3);
  CHECK(document["totals"]["n_tensors"] == 3);
  CHECK(document["totals"]["n_bytes"] == 160000 + 136 + 3);
  CHECK(document["types"]["Q8_0"]["bits_per_weight"] == 8.5);
  CHECK(document["metadata"][0]["value"] == "evil\x1B[2J\xEF\xBF\xBD");
  CHECK(document["metadata"][1]["length"] == 7);
  CHECK(document["metadata"][1]["first"].size() == 6);
  CHECK(document["tensors"][0]["shape"] == std::vector<int>{2, 20000});
  CHECK(document["tensors"][1]["type"] == "Q8_0");
  CHECK(document["verify"]["bad"].empty());
  CHECK(document["verify"]["unchecked"] == std::vector<std::string>{"bytes"});
}

TEST_CASE("inspect: verify names the tensor and its first bad value") {
  const float nan = std::nanf(""), infinity = std::numeric_limits<float>::infinity();
  const InspectedModel model({{39999, nan}, {20003, -infinity}, {30000, nan}});
  const auto [code, text] = inspect({.file = model.file, .verify = true});
  CHECK(code == 1);
  CHECK(contains(text, "  tensor floats: value [1, 3] is -infinity\n"));
  CHECK(contains(text, "  2 tensors checked, 1 with NaN or infinite values, 1 not checked\n"));
  CHECK(contains(text, "  tensor bytes: not checked, since there is no conversion from I8\n"));
  CHECK(inspect({.file = model.file}).first == 0);
  for (const size_t at : {0, 16383, 16384, 39999}) {  // at the borders of the converted chunks
    const InspectedModel one({{at, nan}});
    const auto check = check_values(*GgufFile::open(one.file), 3);
    REQUIRE(check.bad.size() == 1);
    CHECK(check.bad[0].element == static_cast<int64_t>(at));
  }
}

TEST_CASE("inspect: verify finds a bad block scale") {
  const InspectedModel model({}, 0x7C00);  // F16 infinity in the last block
  const auto [code, text] = inspect({.file = model.file, .verify = true});
  CHECK(code == 1);
  CHECK(contains(text, "  tensor blocks: value [1, 32] is infinity\n"));
}
