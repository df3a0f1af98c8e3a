// Models split into several files.
#include <doctest/doctest.h>

#include "ggml-like/gguf.h"
#include "tests/unit/ggml-like/gguf_raw.h"

using namespace infer;
using namespace infer::test;

namespace {

// Part `number` (from zero) of `count`, with the named tensors.
std::string part_of(uint16_t number, uint16_t count, const std::vector<std::string>& tensors, int32_t total = 3) {
  Raw raw;
  raw.header(tensors.size(), number == 0 ? 4 : 3);
  if (number == 0) raw.key("general.name", GgufType::kString).text("first");
  raw.key("split.no", GgufType::kUint16).number(number);
  raw.key("split.count", GgufType::kUint16).number(count);
  raw.key("split.tensors.count", GgufType::kInt32).number(total);
  for (size_t i = 0; i < tensors.size(); ++i) raw.tensor(tensors[i], {8}, 0, 32 * i);
  raw.pad(32);
  for (size_t i = 0; i < tensors.size(); ++i) raw.bytes += std::string(32, static_cast<char>('A' + number));
  return raw.bytes;
}

struct SplitModel : TemporaryFolder {
  SplitModel() {
    write("m-00001-of-00003.gguf", part_of(0, 3, {}));
    write("m-00002-of-00003.gguf", part_of(1, 3, {"a", "b"}));
    write("m-00003-of-00003.gguf", part_of(2, 3, {"c"}));
  }
  std::filesystem::path part(int number) const { return path / ("m-0000" + std::to_string(number) + "-of-00003.gguf"); }
  std::string where(int number) const { return "[gguf] " + part(number).string() + ": "; }
  std::string open_error(int number = 1) const {
    return message_of([&] { GgufFile::open(part(number)); });
  }
};

}  // namespace

TEST_CASE("gguf split: all parts open as one model from any part") {
  const SplitModel model;
  for (int number = 1; number <= 3; ++number) {
    for (const bool use_mmap : {true, false}) {
      const auto file = GgufFile::open(model.part(number), {.use_mmap = use_mmap});
      CHECK(file->parts() == std::vector{model.part(1), model.part(2), model.part(3)});
      CHECK(file->get_string("general.name") == "first");
      CHECK(file->get_int("split.no") == 0);
      REQUIRE(file->tensors().size() == 3);
      CHECK(file->find_tensor("b")->part == 1);
      CHECK(file->find_tensor("c")->part == 2);
      CHECK(static_cast<char>(file->find_tensor("b")->data[31]) == 'B');
      CHECK(static_cast<char>(file->find_tensor("c")->data[31]) == 'C');
      uint64_t bytes = 0;
      for (int i = 1; i <= 3; ++i) bytes += std::filesystem::file_size(model.part(i));
      CHECK(file->total_file_bytes() == bytes);
    }
  }
}

TEST_CASE("gguf split: one part alone can be opened on request") {
  const SplitModel model;
  const auto file = GgufFile::open(model.part(2), {.follow_splits = false});
  CHECK(file->parts() == std::vector{model.part(2)});
  CHECK(file->tensors().size() == 2);
  CHECK(file->find_tensor("a")->part == 0);
}

TEST_CASE("gguf split: a missing part is named") {
  const SplitModel model;
  std::filesystem::remove(model.part(2));
  CHECK(model.open_error(1) == model.where(2) + "part 2 of 3 is missing");
  CHECK(model.open_error(3) == model.where(2) + "part 2 of 3 is missing");
  std::filesystem::remove(model.part(1));
  CHECK(model.open_error(3) == model.where(1) + "part 1 of 3 is missing");
}

TEST_CASE("gguf split: the keys must agree with the names") {
  const SplitModel model;
  model.write("m-00002-of-00003.gguf", part_of(2, 3, {"a", "b"}));
  CHECK(model.open_error() == model.where(2) + "key split.no: expected 1 as in the name, found 2");
  CHECK(model.open_error(2) == model.where(2) + "key split.no: expected 1 as in the name, found 2");
  model.write("m-00002-of-00003.gguf", part_of(1, 4, {"a", "b"}));
  CHECK(model.open_error() == model.where(2) + "key split.count: expected 3 as in the name, found 4");
  model.write("m-00002-of-00003.gguf", small_valid_file());
  CHECK(model.open_error() == model.where(2) + "key split.count: expected 3 as in the name, found 0");
  model.write("m-00001-of-00003.gguf", part_of(0, 9, {}));
  CHECK(model.open_error() == model.where(1) + "key split.count: expected 3 as in the name, found 9");
}

TEST_CASE("gguf split: the number of tensors must be the one announced") {
  const SplitModel model;
  model.write("m-00003-of-00003.gguf", part_of(2, 3, {"c", "d"}));
  CHECK(model.open_error() == model.where(1) + "key split.tensors.count: expected 3 tensors in 3 parts, found 4");
}

TEST_CASE("gguf split: a tensor in two parts") {
  const SplitModel model;
  model.write("m-00003-of-00003.gguf", part_of(2, 3, {"a"}));
  CHECK(model.open_error() == "[gguf] tensor a: appears in parts 2 and 3");
}

TEST_CASE("gguf split: damage in a part names the part") {
  const SplitModel model;
  model.write("m-00003-of-00003.gguf", part_of(2, 3, {"c"}).substr(0, 150));
  CHECK(model.open_error().find(", file has 150 (m-00003-of-00003.gguf). The file is incomplete") != std::string::npos);
}

TEST_CASE("gguf split: the error for a renamed part gives the right name") {
  const TemporaryFolder folder;
  const auto path = folder.write("model.gguf", part_of(0, 3, {}));
  CHECK(message_of([&] { GgufFile::open(path); }) ==
        "[gguf] " + path.string() + ": one of 3 parts, expected a name like model-00001-of-00003.gguf");
}

TEST_CASE("gguf split: counts 0 and 1 and names that only look split are whole models") {
  const TemporaryFolder folder;
  CHECK(GgufFile::open(folder.write("merged.gguf", part_of(0, 0, {"a"}, 1)))->tensors().size() == 1);
  CHECK(GgufFile::open(folder.write("one-00001-of-00001.gguf", part_of(0, 1, {"a"}, 1)))->tensors().size() == 1);
  CHECK(GgufFile::open(folder.write("x-00002-of-00003.gguf", small_valid_file()))->tensors().size() == 2);
  CHECK(GgufFile::open(folder.write("y-00001-of-00003.gguf", small_valid_file()))->tensors().size() == 2);
}
