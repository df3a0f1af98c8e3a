// Reading well-formed GGUF files: every value type, typed look-up, placement of tensors, ways of opening.
#include "ggml-like/gguf.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <vector>

#include "tests/unit/ggml-like/gguf_raw.h"

using namespace infer;
using namespace infer::test;

namespace {

std::string every_scalar_type() {
  Raw raw;
  raw.header(0, 12);
  raw.key("u8", GgufType::kUint8).number(uint8_t{255});
  raw.key("i8", GgufType::kInt8).number(int8_t{-128});
  raw.key("u16", GgufType::kUint16).number(uint16_t{65535});
  raw.key("i16", GgufType::kInt16).number(int16_t{-32768});
  raw.key("u32", GgufType::kUint32).u32(4294967295U);
  raw.key("i32", GgufType::kInt32).number(std::numeric_limits<int32_t>::min());
  raw.key("f32", GgufType::kFloat32).number(0.1F);
  raw.key("bool", GgufType::kBool).number(uint8_t{1});
  raw.key("str", GgufType::kString).text("a\0b\xFF");
  raw.key("u64", GgufType::kUint64).u64(std::numeric_limits<uint64_t>::max());
  raw.key("i64", GgufType::kInt64).number(std::numeric_limits<int64_t>::min());
  raw.key("f64", GgufType::kFloat64).number(0.1);
  return raw.bytes;
}

}  // namespace

TEST_CASE("gguf: every scalar type is read as stored") {
  const auto file = parse(every_scalar_type());
  CHECK(file->version() == 3);
  CHECK(file->alignment() == 32);
  CHECK(file->metadata().size() == 12);
  CHECK(file->metadata()[0].first == "u8");
  CHECK(file->find("u8")->type == GgufType::kUint8);
  CHECK(file->get_int("u8") == 255);
  CHECK(file->get_int("i8") == -128);
  CHECK(file->get_int("u16") == 65535);
  CHECK(file->get_int("i16") == -32768);
  CHECK(file->get_int("u32") == 4294967295);
  CHECK(file->get_int("i32") == std::numeric_limits<int32_t>::min());
  CHECK(file->get_int("i64") == std::numeric_limits<int64_t>::min());
  CHECK(std::get<uint64_t>(file->find("u64")->value) == std::numeric_limits<uint64_t>::max());
  CHECK(file->get_float("f32") == double{0.1F});
  CHECK(file->get_float("f64") == 0.1);
  CHECK(file->get_bool("bool") == true);
  CHECK(file->get_string("str") == std::string("a"));
}

TEST_CASE("gguf: typed look-up converts integers; other mismatches are errors that name key and types") {
  const auto file = parse(every_scalar_type());
  CHECK(file->get_int("absent") == std::nullopt);
  CHECK(file->get_string_array("absent") == std::nullopt);
  CHECK(file->get_float("i16") == -32768.0);
  CHECK(file->get_float("u64") == 18446744073709551616.0);
  CHECK(message_of([&] { file->get_int("u64"); }) ==
        "[gguf] key u64: expected a number below 2^63, found 18446744073709551615");
  CHECK(message_of([&] { file->get_int("f32"); }) == "[gguf] key f32: expected an integer, found float32");
  CHECK(message_of([&] { file->get_int("bool"); }) == "[gguf] key bool: expected an integer, found bool");
  CHECK(message_of([&] { file->get_float("str"); }) == "[gguf] key str: expected a number, found string");
  CHECK(message_of([&] { file->get_bool("u8"); }) == "[gguf] key u8: expected bool, found uint8");
  CHECK(message_of([&] { file->get_string("i64"); }) == "[gguf] key i64: expected string, found int64");
  CHECK(message_of([&] { file->get_int_array("u8"); }) == "[gguf] key u8: expected an array of integers, found uint8");
}

TEST_CASE("gguf: arrays of every element type") {
  Raw raw;
  raw.header(0, 13);
  raw.key("u8", GgufType::kArray).array(GgufType::kUint8, 2).number(uint8_t{0}).number(uint8_t{255});
  raw.key("i8", GgufType::kArray).array(GgufType::kInt8, 1).number(int8_t{-1});
  raw.key("u16", GgufType::kArray).array(GgufType::kUint16, 1).number(uint16_t{65535});
  raw.key("i16", GgufType::kArray).array(GgufType::kInt16, 1).number(int16_t{-2});
  raw.key("u32", GgufType::kArray).array(GgufType::kUint32, 1).u32(7);
  raw.key("i32", GgufType::kArray).array(GgufType::kInt32, 3).number(1).number(-1).number(0);
  raw.key("u64", GgufType::kArray).array(GgufType::kUint64, 1).u64(uint64_t{1} << 63);
  raw.key("i64", GgufType::kArray).array(GgufType::kInt64, 1).number(int64_t{-3});
  raw.key("f32", GgufType::kArray).array(GgufType::kFloat32, 1).number(0.5F);
  raw.key("f64", GgufType::kArray).array(GgufType::kFloat64, 1).number(0.1);
  raw.key("bool", GgufType::kArray).array(GgufType::kBool, 2).number(uint8_t{1}).number(uint8_t{0});
  raw.key("str", GgufType::kArray).array(GgufType::kString, 2).text("").text("x");
  raw.key("none", GgufType::kArray).array(GgufType::kString, 0);
  const auto file = parse(raw.bytes);
  using Ints = std::vector<int64_t>;
  CHECK(file->get_int_array("u8") == Ints{0, 255});
  CHECK(file->get_int_array("i8") == Ints{-1});
  CHECK(file->get_int_array("u16") == Ints{65535});
  CHECK(file->get_int_array("i16") == Ints{-2});
  CHECK(file->get_int_array("u32") == Ints{7});
  CHECK(file->get_int_array("i32") == Ints{1, -1, 0});
  CHECK(file->get_int_array("i64") == Ints{-3});
  CHECK(file->get_float_array("f32") == std::vector<double>{0.5});
  CHECK(file->get_float_array("f64") == std::vector<double>{0.1});
  CHECK(file->get_float_array("i32") == std::vector<double>{1, -1, 0});
  CHECK(file->get_string_array("str") == std::vector<std::string>{"", "x"});
  CHECK(file->get_string_array("none")->empty());
  CHECK(file->find("str")->array_length() == 2);
  CHECK(std::get<std::vector<bool>>(std::get<GgufValue::Array>(file->find("bool")->value)) == std::vector{true, false});
  CHECK(message_of([&] { file->get_int_array("u64"); }) ==
        "[gguf] key u64: expected a number below 2^63, found 9223372036854775808");
  CHECK(message_of([&] { file->get_int("i32"); }) == "[gguf] key i32: expected an integer, found array of 3 int32");
  CHECK(message_of([&] { file->get_string_array("f32"); }) ==
        "[gguf] key f32: expected an array of strings, found array of 1 float32");
}

TEST_CASE("gguf: tensors have the reversed shape, the size of their type and their offset") {
  const std::string bytes = small_valid_file();
  const auto file = parse(bytes);
  REQUIRE(file->tensors().size() == 2);
  const GgufTensor& a = file->tensors()[0];
  CHECK(a.name == "a.weight");
  CHECK(a.shape == std::vector<int64_t>{2, 4});
  CHECK(a.shape_string() == "[2, 4]");
  CHECK(a.n_elements() == 8);
  CHECK(a.n_bytes == 32);
  CHECK(a.type == DataType::kF32);
  const GgufTensor* b = file->find_tensor("b.weight");
  REQUIRE(b != nullptr);
  CHECK(b->type == DataType::kQ8_0);
  CHECK(b->n_bytes == 34);
  CHECK(b->file_offset == bytes.size() - 34);
  CHECK(b->data == as_bytes(bytes).data() + b->file_offset);
  CHECK(static_cast<int>(b->data[0]) == 32);  // Raw::data counts up
  CHECK(file->find_tensor("c") == nullptr);
  CHECK(file->find("general.architecture") != nullptr);
  CHECK(file->find("general") == nullptr);
}

TEST_CASE("gguf: version 2 reads like version 3") {
  std::string bytes = small_valid_file();
  bytes[4] = 2;
  CHECK(parse(bytes)->version() == 2);
  CHECK(parse(bytes)->tensors().size() == 2);
}

TEST_CASE("gguf: the file's own alignment places the data") {
  for (const uint64_t alignment : {8, 64, 4096}) {
    Raw raw;
    raw.header(2, 1).key("general.alignment", GgufType::kUint32).u32(static_cast<uint32_t>(alignment));
    raw.tensor("a", {1}, 24, 0).tensor("b", {3}, 24, alignment);
    const size_t data_start = (raw.bytes.size() + alignment - 1) / alignment * alignment;
    raw.pad(alignment).data(alignment + 3);
    const auto file = parse(raw.bytes);
    CHECK(file->alignment() == alignment);
    CHECK(file->tensors()[0].file_offset == data_start);
    CHECK(file->tensors()[1].file_offset == data_start + alignment);
  }
}

TEST_CASE("gguf: tensors may lie in any order and leave gaps") {
  Raw raw;
  raw.header(2, 0).tensor("late", {8}, 0, 128).tensor("early", {8}, 0, 0).pad(32).data(160);
  CHECK(parse(raw.bytes)->find_tensor("late")->file_offset > parse(raw.bytes)->find_tensor("early")->file_offset);
}

TEST_CASE("gguf: mapping, reading and reading metadata only agree") {
  const TemporaryFolder folder;
  const std::string bytes = small_valid_file();
  const auto path = folder.write("model.gguf", bytes);
  const auto mapped = GgufFile::open(path);
  const auto loaded = GgufFile::open(path, {.use_mmap = false});
  const auto mapped_table = GgufFile::open(path, {.map_data = false});
  const auto read_table = GgufFile::open(path, {.use_mmap = false, .map_data = false});
  CHECK(mapped->parts() == std::vector{path});
  for (const auto& file : {mapped, loaded, mapped_table, read_table}) {
    CHECK(file->metadata() == mapped->metadata());
    CHECK(file->total_file_bytes() == bytes.size());
    REQUIRE(file->tensors().size() == 2);
    const bool has_data = file == mapped || file == loaded;
    for (const GgufTensor& tensor : file->tensors()) {
      REQUIRE((tensor.data != nullptr) == has_data);
      if (has_data) CHECK(std::memcmp(tensor.data, bytes.data() + tensor.file_offset, tensor.n_bytes) == 0);
      if (has_data) CHECK(reinterpret_cast<uintptr_t>(tensor.data) % 32 == 0);
    }
  }
}

TEST_CASE("gguf: a large file is read by several threads") {
  const TemporaryFolder folder;
  constexpr uint64_t kElements = 50'000'003, kTensor = 4 * kElements;  // three threads' worth, no whole page
  Raw raw;
  raw.header(1, 0).tensor("t", {kElements}, 0, 0).pad(32);
  const uint64_t start = raw.bytes.size();
  const auto path = folder.write("large.gguf", raw.bytes);
  std::filesystem::resize_file(path, start + kTensor);  // zeros that occupy no disk space
  std::vector<uint64_t> marks;                          // offsets of bytes that are not zero
  std::fstream out(path, std::ios::in | std::ios::out | std::ios::binary);
  for (uint64_t at = 0; at < kTensor; at += 1'048'573) marks.push_back(at);
  marks.push_back(kTensor - 1);
  for (const uint64_t at : marks)
    out.seekp(static_cast<std::streamoff>(start + at)).put(static_cast<char>(at % 251 + 1));
  out.close();
  const auto loaded = GgufFile::open(path, {.use_mmap = false}), mapped = GgufFile::open(path);
  const GgufTensor& tensor = loaded->tensors()[0];
  for (const uint64_t at : marks) CHECK(tensor.data[at] == std::byte(at % 251 + 1));
  CHECK(std::memcmp(tensor.data, mapped->tensors()[0].data, kTensor) == 0);
}

TEST_CASE("gguf: a header longer than the first read is read whole without a mapping") {
  const TemporaryFolder folder;
  Raw raw;
  constexpr size_t kTokens = 400000;  // about 5 MiB
  raw.header(1, 1).key("tokens", GgufType::kArray).array(GgufType::kString, kTokens);
  for (size_t i = 0; i < kTokens; ++i) raw.text("tok" + std::to_string(i % 1000));
  raw.tensor("t", {4}, 0, 0).pad(32).data(16);
  const auto path = folder.write("long.gguf", raw.bytes);
  const auto file = GgufFile::open(path, {.use_mmap = false});
  CHECK(file->find("tokens")->array_length() == kTokens);
  CHECK(file->get_string_array("tokens")->back() == "tok999");
  CHECK(std::memcmp(file->tensors()[0].data, raw.bytes.data() + file->tensors()[0].file_offset, 16) == 0);
  CHECK(file->metadata() == GgufFile::open(path)->metadata());
}

TEST_CASE("gguf: a file without tensors needs no padding after its header") {
  Raw raw;
  raw.header(0, 1).key("k", GgufType::kBool).number(uint8_t{0});
  CHECK(parse(raw.bytes)->tensors().empty());
}
