// Writing GGUF files: what is written reads back equal, and failure leaves nothing behind.
#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>

#include "ggml-like/gguf.h"
#include "tests/unit/ggml-like/gguf_raw.h"

using namespace infer;
using namespace infer::test;

namespace {

using Metadata = std::vector<std::pair<std::string, GgufValue>>;

Metadata every_type() {
  Metadata metadata;
  const auto add = [&](std::string key, GgufValue value) { metadata.emplace_back(std::move(key), std::move(value)); };
  for (const auto& [type, min, max] :
       std::vector<std::tuple<GgufType, int64_t, int64_t>>{{GgufType::kUint8, 0, 255},
                                                           {GgufType::kInt8, -128, 127},
                                                           {GgufType::kUint16, 0, 65535},
                                                           {GgufType::kInt16, -32768, 32767},
                                                           {GgufType::kUint32, 0, 4294967295},
                                                           {GgufType::kInt32, INT32_MIN, INT32_MAX},
                                                           {GgufType::kUint64, 0, INT64_MAX},
                                                           {GgufType::kInt64, INT64_MIN, INT64_MAX}}) {
    const std::string name(gguf_type_name(type));
    add(name + ".min", GgufValue::of_int(type, min));
    add(name + ".max", GgufValue::of_int(type, max));
    add(name + ".array", GgufValue::of_ints(type, {min, 1, max}));
    add(name + ".empty", GgufValue::of_ints(type, {}));
    if (min != INT64_MIN) CHECK_THROWS_AS(GgufValue::of_int(type, min - 1), Error);
    if (max == INT64_MAX) continue;
    CHECK_THROWS_AS(GgufValue::of_int(type, max + 1), Error);
    CHECK_THROWS_AS(GgufValue::of_ints(type, {0, max + 1}), Error);
  }
  GgufValue large = GgufValue::of_int(GgufType::kUint64, 0);
  large.value = ~uint64_t{0};
  add("uint64.largest", large);
  add("float32", GgufValue::of_float32(0.1F));
  GgufValue float64 = GgufValue::of_float32(0);
  float64.type = GgufType::kFloat64;
  float64.value = 0.1;
  add("float64", float64);
  add("floats", GgufValue::of_floats({0.1F, -0.0F, 1e-45F, 3e38F}));
  GgufValue doubles = GgufValue::of_floats({});
  doubles.element_type = GgufType::kFloat64;
  doubles.value = GgufValue::Array(std::vector<double>{0.1, 1e300});
  add("doubles", doubles);
  add("yes", GgufValue::of_bool(true));
  GgufValue bools = GgufValue::of_floats({});
  bools.element_type = GgufType::kBool;
  bools.value = GgufValue::Array(std::vector<bool>{true, false, true});
  add("bools", bools);
  add("text", GgufValue::of_string(std::string("a\0\xFF\n", 4)));
  add("nothing", GgufValue::of_string(""));
  add("texts", GgufValue::of_strings({"", "x", std::string(1000, 'y')}));
  return metadata;
}

const std::vector<GgufWriter::TensorInfo> kTensors = {{"matrix", DataType::kF32, {3, 5}},
                                                      {"quantized", DataType::kQ4_K, {2, 256}},
                                                      {"four", DataType::kF16, {2, 1, 3, 7}}};

// Byte i of the data of all tensors, in order, without padding.
std::byte data_byte(size_t i) { return static_cast<std::byte>(i * 7 + i / 256); }

constexpr size_t kDataBytes = 60 + 288 + 84;

std::string data_bytes() {
  std::string data;
  for (size_t i = 0; i < kDataBytes; ++i) data += static_cast<char>(data_byte(i));
  return data;
}

}  // namespace

TEST_CASE("gguf writer: what is written reads back equal") {
  const TemporaryFolder folder;
  const Metadata metadata = every_type();
  for (const uint32_t alignment : {8U, 32U, 256U}) {
    for (const size_t chunk : {size_t{1}, size_t{13}, kDataBytes}) {
      const auto path = folder.path / "model.gguf";
      GgufWriter writer(path, metadata, kTensors, alignment);
      const std::string data = data_bytes();
      for (size_t at = 0; at < data.size(); at += chunk)
        writer.write(as_bytes(data).subspan(at, std::min(chunk, data.size() - at)));
      writer.finish();
      CHECK(folder.entries() == 1);

      const auto file = GgufFile::open(path);
      CHECK(file->version() == 3);
      CHECK(file->alignment() == alignment);
      Metadata found = file->metadata();
      if (alignment != 32) {
        CHECK(found.back().first == "general.alignment");
        found.pop_back();
      }
      CHECK(found == metadata);
      REQUIRE(file->tensors().size() == kTensors.size());
      size_t at = 0;
      for (size_t i = 0; i < kTensors.size(); ++i) {
        const GgufTensor& tensor = file->tensors()[i];
        CHECK(tensor.name == kTensors[i].name);
        CHECK(tensor.type == kTensors[i].type);
        CHECK(tensor.shape == kTensors[i].shape);
        CHECK(tensor.file_offset % alignment == 0);
        CHECK(std::memcmp(tensor.data, data.data() + at, tensor.n_bytes) == 0);
        at += tensor.n_bytes;
      }
      CHECK(at == kDataBytes);
      CHECK(file->total_file_bytes() % alignment == 0);
    }
  }
}

TEST_CASE("gguf writer: the bytes follow the format") {
  const TemporaryFolder folder;
  const auto path = folder.path / "m.gguf";
  GgufWriter writer(path, {{"k", GgufValue::of_uint32(7)}}, {{"t", DataType::kI8, {2, 3}}});
  writer.write(as_bytes("abcdef"));
  writer.finish();
  std::ifstream in(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), {});
  Raw expected;
  expected.header(1, 1).key("k", GgufType::kUint32).u32(7).tensor("t", {3, 2}, 24, 0).pad(32);
  expected.bytes += "abcdef";
  CHECK(bytes == expected.pad(32).bytes);
}

TEST_CASE("gguf writer: the alignment in the metadata is the writer's") {
  const TemporaryFolder folder;
  GgufWriter writer(folder.path / "m.gguf", {{"general.alignment", GgufValue::of_uint32(64)}}, {}, 32);
  writer.finish();
  CHECK(GgufFile::open(folder.path / "m.gguf")->get_int("general.alignment") == 32);
}

TEST_CASE("gguf writer: an unfinished file leaves nothing behind") {
  const TemporaryFolder folder;
  folder.write("m.gguf", "old");
  {
    GgufWriter writer(folder.path / "m.gguf", {}, kTensors);
    writer.write(as_bytes(data_bytes()).first(100));
    CHECK(folder.entries() == 2);
    CHECK(message_of([&] { writer.finish(); }) == "[gguf] tensor quantized: 40 of 288 bytes were written");
  }
  CHECK(folder.entries() == 1);
  CHECK(std::filesystem::file_size(folder.path / "m.gguf") == 3);
}

TEST_CASE("gguf writer: an existing file is replaced at the end") {
  const TemporaryFolder folder;
  const auto path = folder.write("m.gguf", "old");
  GgufWriter writer(path, {}, kTensors);
  writer.write(as_bytes(data_bytes()));
  CHECK(std::filesystem::file_size(path) == 3);
  writer.finish();
  CHECK(GgufFile::open(path)->tensors().size() == 3);
  CHECK_THROWS_AS(writer.finish(), Error);
  CHECK(GgufFile::open(path)->tensors().size() == 3);
}

TEST_CASE("gguf writer: more data than the tensors have") {
  const TemporaryFolder folder;
  GgufWriter writer(folder.path / "m.gguf", {}, {{"t", DataType::kI8, {4}}});
  CHECK(message_of([&] { writer.write(as_bytes("abcdef")); }) == "[gguf] 2 bytes more than the tensors have");
}

TEST_CASE("gguf writer: wrong arguments are refused before a file exists") {
  const TemporaryFolder folder;
  const auto refused = [&](Metadata metadata, std::vector<GgufWriter::TensorInfo> tensors, uint32_t alignment = 32) {
    const std::string message =
        message_of([&] { GgufWriter(folder.path / "m.gguf", std::move(metadata), std::move(tensors), alignment); });
    CHECK(folder.entries() == 0);
    return message;
  };
  const GgufValue one = GgufValue::of_uint32(1);
  CHECK(refused({}, {}, 4) == "[gguf] alignment: expected a power of two from 8 to 1048576, found 4");
  CHECK(refused({}, {}, 48) == "[gguf] alignment: expected a power of two from 8 to 1048576, found 48");
  CHECK(refused({{"", one}}, {}) == "[gguf] a key has 0 bytes, expected 1 to 65535");
  CHECK(refused({{"k", one}, {"k", one}}, {}) == "[gguf] key k: appears twice in the metadata");
  GgufValue broken = one;
  broken.type = GgufType::kString;
  CHECK(refused({{"k", broken}}, {}) == "[gguf] key k: expected a value of its type, found another");
  broken = GgufValue::of_floats({1});
  broken.element_type = GgufType::kBool;
  CHECK(refused({{"k", broken}}, {}) == "[gguf] key k: expected a value of its type, found another");
  CHECK(refused({}, {{"", DataType::kF32, {1}}}) == "[gguf] tensor : name has 0 bytes, expected 1 to 63");
  CHECK(refused({}, {{"t", DataType::kF32, {1}}, {"t", DataType::kF32, {1}}}) == "[gguf] tensor t: appears twice");
  CHECK(refused({}, {{"t", DataType::kF32, {}}}) == "[gguf] tensor t: expected 1 to 4 dimensions, found 0");
  CHECK(refused({}, {{"t", DataType::kF32, {2, 0}}}) == "[gguf] tensor t: bad dimension 0");
  CHECK(refused({}, {{"t", DataType::kF32, {INT64_MAX, 2}}}) == "[gguf] tensor t: bad dimension 2");
  CHECK(refused({}, {{"t", DataType::kQ8_0, {33}}}) ==
        "[gguf] tensor t: rows of 33 values, Q8_0 needs a multiple of 32");
}

TEST_CASE("gguf writer: data of any size is written") {
  const TemporaryFolder folder;
  GgufWriter writer(folder.path / "m.gguf", {}, {{"t", DataType::kI8, {16 << 20}}});
  const std::string chunk(100000, 'x');
  allocation_count() = {};
  for (size_t left = 16 << 20; left > 0; left -= std::min(left, chunk.size())) {
    writer.write(as_bytes(chunk).first(std::min(left, chunk.size())));
  }
  writer.finish();
  CHECK(allocation_count().total < 4 << 20);
  CHECK(GgufFile::open(folder.path / "m.gguf")->find_tensor("t")->data[(16 << 20) - 1] == std::byte{'x'});
}

TEST_CASE("gguf writer: skipped data reads as zeros") {
  const TemporaryFolder folder;
  GgufWriter writer(folder.path / "m.gguf", {}, {{"t", DataType::kI8, {5}}, {"big", DataType::kI8, {64 << 20}}});
  writer.write(as_bytes("ab"));
  writer.leave_rest_empty();
  writer.finish();
  const auto file = GgufFile::open(folder.path / "m.gguf");
  CHECK(file->find_tensor("t")->data[1] == std::byte{'b'});
  CHECK(file->find_tensor("t")->data[2] == std::byte{0});
  CHECK(file->find_tensor("big")->data[(64 << 20) - 1] == std::byte{0});
  struct stat info {};
  REQUIRE(::stat((folder.path / "m.gguf").c_str(), &info) == 0);
  CHECK(info.st_blocks * 512 < 1 << 20);
}

TEST_CASE("gguf writer: a folder that does not exist") {
  const TemporaryFolder folder;
  const auto path = folder.path / "no" / "m.gguf";
  CHECK(message_of([&] { GgufWriter(path, {}, {}); }) ==
        "[gguf] " + path.string() + ": cannot create: No such file or directory");
}

TEST_CASE("gguf writer: a failing write is reported and leaves nothing behind") {
  const TemporaryFolder folder;
  const auto path = folder.path / "m.gguf";
  // A limit on file sizes simulates a full disk: both make a write() fail part way.
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small = before;
  small.rlim_cur = 3 << 20;
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  const std::string message = message_of([&] {
    GgufWriter writer(path, {}, {{"t", DataType::kI8, {8 << 20}}});
    const std::string chunk(1 << 19, 'x');
    for (int i = 0; i < 16; ++i) writer.write(as_bytes(chunk));
    writer.finish();
  });
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  CHECK(message == "[gguf] " + path.string() + ": cannot write: File too large");
  CHECK(folder.entries() == 0);
}
