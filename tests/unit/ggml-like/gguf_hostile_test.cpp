// Damaged and malicious GGUF files: each class of damage is refused with one clear message, and nothing large is
// allocated on the word of a file.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include "ggml-like/gguf.h"
#include "tests/unit/ggml-like/gguf_raw.h"

using namespace infer;
using namespace infer::test;

namespace {

const std::string kIncomplete = ". The file is incomplete or damaged; download or copy it again.";

// One tensor with the given shape (fastest dimension first), type and offset, and `n` bytes of data.
std::string one_tensor(const std::vector<uint64_t>& sizes, uint32_t type, uint64_t offset, size_t n) {
  Raw raw;
  return raw.header(1, 0).tensor("t", sizes, type, offset).pad(32).data(n).bytes;
}

Raw one_key(const std::string& name, GgufType type) {
  Raw raw;
  raw.header(0, 1).key(name, type);
  return raw;
}

ErrorCode code_of(const std::string& bytes) {
  try {
    parse(bytes);
  } catch (const Error& error) {
    return error.code();
  }
  FAIL("no error");
  return ErrorCode::kIo;
}

constexpr uint64_t kHuge = uint64_t{1} << 60;

}  // namespace

TEST_CASE("gguf hostile: not a GGUF file") {
  CHECK(parse_error("") == "[gguf] test.gguf: expected a GGUF file, found an empty file");
  CHECK(
      parse_error("<!doctype html>\n<html>") ==
      "[gguf] test.gguf: expected a GGUF file, found one that starts with \"<!doctype html>\\n\". This is a web page, "
      "perhaps of an error or a login; download the model again by its direct link.");
  CHECK(parse_error("GG") == "[gguf] test.gguf: expected a GGUF file, found one that starts with \"GG\"");
  CHECK(parse_error("\x1B[2J") == "[gguf] test.gguf: expected a GGUF file, found one that starts with \"\\x1B[2J\"");
  CHECK(parse_error("GGUF") == "[gguf] header: version ends at byte 8, file has 4 (test.gguf)" + kIncomplete);
}

TEST_CASE("gguf hostile: files of other kinds are recognized") {
  const auto says = [](std::string bytes, const std::string& cause) {
    CAPTURE(bytes);
    CHECK(parse_error(std::move(bytes)).find(". This is " + cause) != std::string::npos);
  };
  says("\n  <HTML><head>", "a web page");
  says("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12\n", "a Git LFS pointer");
  says(std::string("\x58\x10\0\0\0\0\0\0{\"__metadata__\":{}", 26), "a safetensors file; convert it to GGUF");
  says("PK\x03\x04 and so on", "an archive or a PyTorch checkpoint");
  says("\x1F\x8B\x08 and so on", "a compressed file");
  says("tjgg\x03 and so on", "a model in a format that preceded GGUF");
  says(std::string(64, '\0'), "zeros");
  CHECK(parse_error("some text of no kind").find("This is") == std::string::npos);
}

TEST_CASE("gguf hostile: versions and byte order") {
  CHECK(parse_error(Raw().header(0, 0, 1).bytes) == "[gguf] test.gguf: expected GGUF version 2 or 3, found 1");
  CHECK(parse_error(Raw().header(0, 0, 4).bytes) == "[gguf] test.gguf: expected GGUF version 2 or 3, found 4");
  CHECK(parse_error(Raw().header(0, 0, 0).bytes) == "[gguf] test.gguf: expected GGUF version 2 or 3, found 0");
  CHECK(parse_error(Raw().header(0, 0, 0x03000000).bytes) ==
        "[gguf] test.gguf: expected a little-endian file, found a big-endian one (version 3 with its bytes reversed)");
  CHECK(parse_error("FUGG") == "[gguf] test.gguf: expected a little-endian file, found a big-endian one");
  CHECK(code_of(Raw().header(0, 0, 1).bytes) == ErrorCode::kUnsupported);
}

TEST_CASE("gguf hostile: counts beyond the file") {
  CHECK(parse_error(Raw().header(0, kHuge).bytes) ==
        "[gguf] header: claims 1152921504606846976 metadata entries, but only 0 bytes follow (test.gguf)" +
            kIncomplete);
  CHECK(parse_error(Raw().header(kHuge, 0).data(100).bytes) ==
        "[gguf] header: claims 1152921504606846976 tensors, but only 100 bytes follow (test.gguf)" + kIncomplete);
  CHECK(parse_error(Raw().header(0, (1 << 20) + 1).data(15 << 20).bytes) ==
        "[gguf] header: claims 1048577 metadata entries, the limit is 1048576 (test.gguf)");
}

TEST_CASE("gguf hostile: keys") {
  CHECK(parse_error(Raw().header(0, 1).text("").data(32).bytes) == "[gguf] key 0: name is empty (test.gguf)");
  CHECK(parse_error(Raw().header(0, 1).text(std::string(65536, 'k')).data(32).bytes) ==
        "[gguf] key 0: name has 65536 bytes, the limit is 65535 (test.gguf)");
  CHECK(parse_error(Raw().header(0, 1).u64(kHuge).data(32).bytes) ==
        "[gguf] key 0: name ends at byte 1152921504606847008, file has 64 (test.gguf)" + kIncomplete);
  CHECK(parse_error(Raw().header(0, 1).u64(~uint64_t{0}).data(32).bytes) ==
        "[gguf] key 0: name of 18446744073709551615 bytes begins at byte 32, file has 64 (test.gguf)" + kIncomplete);
  Raw twice;
  twice.header(0, 2).key("k\x1B", GgufType::kBool).number(uint8_t{1}).key("k\x1B", GgufType::kBool).number(uint8_t{1});
  CHECK(parse_error(twice.bytes) == "[gguf] key k\\x1B: appears twice in the metadata (test.gguf)");
}

TEST_CASE("gguf hostile: values") {
  CHECK(parse_error(Raw().header(0, 1).text("k").u32(13).data(8).bytes) ==
        "[gguf] key k: value type 13 is unknown, the last one known is 12 (test.gguf)");
  CHECK(parse_error(one_key("k", GgufType::kBool).number(uint8_t{2}).bytes) ==
        "[gguf] key k: bool has value 2, expected 0 or 1 (test.gguf)");
  CHECK(parse_error(one_key("k", GgufType::kUint64).u32(1).bytes) ==
        "[gguf] key k: value ends at byte 45, file has 41 (test.gguf)" + kIncomplete);
  CHECK(parse_error(one_key("k", GgufType::kString).u64(5).bytes) ==
        "[gguf] key k: value ends at byte 50, file has 45 (test.gguf)" + kIncomplete);
  CHECK(parse_error(one_key("k", GgufType::kString).u64(kHuge).bytes) ==
        "[gguf] key k: value ends at byte 1152921504606847021, file has 45 (test.gguf)" + kIncomplete);
}

TEST_CASE("gguf hostile: arrays") {
  CHECK(parse_error(one_key("k", GgufType::kArray).array(GgufType::kArray, 1).data(64).bytes) ==
        "[gguf] key k: array of arrays, which is not supported (test.gguf)");
  CHECK(parse_error(one_key("k", GgufType::kArray).array(static_cast<GgufType>(99), 1).data(64).bytes) ==
        "[gguf] key k: value type 99 is unknown, the last one known is 12 (test.gguf)");
  CHECK(parse_error(one_key("k", GgufType::kArray).array(GgufType::kString, kHuge).data(64).bytes) ==
        "[gguf] key k: array of 1152921504606846976 string values, only 64 bytes follow (test.gguf)" + kIncomplete);
  CHECK(parse_error(one_key("k", GgufType::kArray).array(GgufType::kUint32, 17).data(64).bytes) ==
        "[gguf] key k: array of 17 uint32 values, only 64 bytes follow (test.gguf)" + kIncomplete);
  CHECK(parse_error(one_key("k", GgufType::kArray).array(GgufType::kUint8, ~uint64_t{0}).data(64).bytes) ==
        "[gguf] key k: array of 18446744073709551615 uint8 values, only 64 bytes follow (test.gguf)" + kIncomplete);
  CHECK(parse_error(one_key("k", GgufType::kArray).array(GgufType::kBool, 1).number(uint8_t{7}).bytes) ==
        "[gguf] key k: bool has value 7, expected 0 or 1 (test.gguf)");
  CHECK(parse_error(one_key("k", GgufType::kArray).array(GgufType::kString, 2).text("ab").u64(9).bytes) ==
        "[gguf] key k: string of the array ends at byte 76, file has 67 (test.gguf)" + kIncomplete);
}

TEST_CASE("gguf hostile: alignment") {
  const auto aligned = [](uint32_t alignment) {
    return parse_error(one_key("general.alignment", GgufType::kUint32).u32(alignment).bytes);
  };
  CHECK(aligned(32) == "");
  CHECK(aligned(1 << 20) == "");
  const std::string expected = "[gguf] key general.alignment: expected a power of two from 8 to 1048576, found ";
  CHECK(aligned(0) == expected + "0 (test.gguf)");
  CHECK(aligned(1) == expected + "1 (test.gguf)");
  CHECK(aligned(24) == expected + "24 (test.gguf)");
  CHECK(aligned(1 << 21) == expected + "2097152 (test.gguf)");
  CHECK(parse_error(one_key("general.alignment", GgufType::kInt64).number(int64_t{-32}).bytes) ==
        expected + "0 (test.gguf)");
  CHECK(parse_error(one_key("general.alignment", GgufType::kString).text("32").bytes) ==
        "[gguf] key general.alignment: expected an integer, found string (test.gguf)");
}

TEST_CASE("gguf hostile: tensor names") {
  const auto named = [](const std::string& name) {
    return parse_error(Raw().header(1, 0).tensor(name, {8}, 0, 0).pad(32).data(32).bytes);
  };
  CHECK(named(std::string(64, 'n')) == "");
  CHECK(named(std::string(256, 'n')) == "");
  CHECK(named(std::string(257, 'n')) == "[gguf] tensor 0: name has 257 bytes, the limit is 256 (test.gguf)");
  CHECK(named("") == "[gguf] tensor 0: name is empty (test.gguf)");
  Raw twice;
  twice.header(2, 0).tensor("t", {8}, 0, 0).tensor("t", {8}, 0, 32).pad(32).data(64);
  CHECK(parse_error(twice.bytes) == "[gguf] tensor t: appears twice in test.gguf");
}

TEST_CASE("gguf hostile: shapes") {
  CHECK(parse_error(one_tensor({}, 0, 0, 32)) == "[gguf] tensor t: expected 1 to 4 dimensions, found 0 (test.gguf)");
  CHECK(parse_error(one_tensor({1, 1, 1, 1, 1}, 0, 0, 32)) ==
        "[gguf] tensor t: expected 1 to 4 dimensions, found 5 (test.gguf)");
  CHECK(parse_error(Raw().header(1, 0).text("t").u32(0xFFFFFFFF).data(64).bytes) ==
        "[gguf] tensor t: expected 1 to 4 dimensions, found 4294967295 (test.gguf)");
  CHECK(parse_error(one_tensor({8, 0}, 0, 0, 32)) == "[gguf] tensor t: dimension 1 has size 0 (test.gguf)");
  CHECK(parse_error(one_tensor({uint64_t{1} << 63}, 24, 0, 32)) ==
        "[gguf] tensor t: dimension 0 has size 9223372036854775808 (test.gguf)");
  CHECK(parse_error(one_tensor({uint64_t{1} << 32, uint64_t{1} << 32}, 24, 0, 32)) ==
        "[gguf] tensor t: number of values exceeds 63 bits (test.gguf)");
  CHECK(parse_error(one_tensor({uint64_t{1} << 62, 2}, 24, 0, 32)) ==
        "[gguf] tensor t: number of values exceeds 63 bits (test.gguf)");
  CHECK(parse_error(one_tensor({uint64_t{1} << 62}, 0, 0, 32)) ==
        "[gguf] tensor t: number of bytes exceeds 64 bits (test.gguf)");
}

TEST_CASE("gguf hostile: types and rows") {
  CHECK(parse_error(one_tensor({8}, 4, 0, 32)) == "[gguf] tensor t: data type 4 is not supported (test.gguf)");
  CHECK(parse_error(one_tensor({8}, 0xFFFFFFFF, 0, 32)) ==
        "[gguf] tensor t: data type 4294967295 is not supported (test.gguf)");
  CHECK(code_of(one_tensor({8}, 999, 0, 32)) == ErrorCode::kUnsupported);
  CHECK(parse_error(one_tensor({48}, 8, 0, 64)) ==
        "[gguf] tensor t: rows of 48 values, Q8_0 needs a multiple of 32 (test.gguf)");
  CHECK(parse_error(one_tensor({128, 2}, 12, 0, 144)) ==
        "[gguf] tensor t: rows of 128 values, Q4_K needs a multiple of 256 (test.gguf)");
}

TEST_CASE("gguf hostile: offsets of data") {
  CHECK(parse_error(one_tensor({8}, 0, 0, 32)) == "");
  CHECK(parse_error(one_tensor({8}, 0, 0, 31)) ==
        "[gguf] tensor t: data ends at byte 96, file has 95 (test.gguf)" + kIncomplete);
  CHECK(parse_error(one_tensor({uint64_t{1} << 50}, 0, 0, 32)) ==
        "[gguf] tensor t: data ends at byte 4503599627370560, file has 96 (test.gguf)" + kIncomplete);
  CHECK(parse_error(one_tensor({8}, 0, 64, 64)) ==
        "[gguf] tensor t: data ends at byte 160, file has 128 (test.gguf)" + kIncomplete);
  CHECK(parse_error(one_tensor({8}, 0, 33, 128)) ==
        "[gguf] tensor t: data offset 33 is not a multiple of the alignment 32 (test.gguf)");
  CHECK(parse_error(one_tensor({8}, 0, ~uint64_t{31}, 32)) ==
        "[gguf] tensor t: data of 32 bytes ends beyond 64 bits, file has 96 (test.gguf)" + kIncomplete);
  Raw overlap;
  overlap.header(2, 0).tensor("a", {16}, 0, 0).tensor("b", {8}, 0, 32).pad(32).data(64);
  CHECK(parse_error(overlap.bytes) ==
        "[gguf] tensor b: data begins at byte 128, inside that of a (bytes 96 to 160) (test.gguf)");
  Raw same;
  same.header(2, 0).tensor("a", {8}, 0, 0).tensor("b", {8}, 0, 0).pad(32).data(64);
  CHECK(parse_error(same.bytes).find("inside that of") != std::string::npos);
}

TEST_CASE("gguf hostile: cut short at every byte") {
  const std::string whole = small_valid_file();
  REQUIRE(parse_error(whole) == "");
  for (size_t n = 0; n < whole.size(); ++n) {
    INFO("first " << n << " bytes");
    const std::string message = parse_error(whole.substr(0, n));
    CHECK(message.starts_with("[gguf] "));
  }
}

TEST_CASE("gguf hostile: no changed byte causes a crash or a large allocation") {
  const std::string whole = small_valid_file();
  size_t refused = 0;
  for (size_t at = 0; at < whole.size(); ++at) {
    for (int value = 0; value < 256; ++value) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(value);
      allocation_count() = {};
      try {
        parse(damaged);
      } catch (const Error&) {
        ++refused;
      }
      REQUIRE(allocation_count().largest < 16384);
      REQUIRE(allocation_count().total < 65536);
    }
  }
  CHECK(refused > 10000);
}

TEST_CASE("gguf hostile: a tiny file that claims large counts allocates little") {
  const std::string files[] = {
      Raw().header(0, kHuge).data(64).bytes,
      Raw().header(kHuge, 0).data(64).bytes,
      Raw().header(0, 1).u64(kHuge).data(64).bytes,
      one_key("k", GgufType::kString).u64(kHuge).data(64).bytes,
      one_key("k", GgufType::kArray).array(GgufType::kString, kHuge).data(64).bytes,
      one_key("k", GgufType::kArray).array(GgufType::kInt64, kHuge).data(64).bytes,
      one_tensor({kHuge}, 0, 0, 64),
  };
  for (const std::string& bytes : files) {
    allocation_count() = {};
    CHECK(parse_error(bytes) != "");
    CHECK(allocation_count().total < 32768);
  }
}

TEST_CASE("gguf hostile: arrays beyond the limit, in a file that is large enough for them") {
  const TemporaryFolder folder;
  constexpr uint64_t kLimit = 1 << 26;
  const Raw raw = one_key("k", GgufType::kArray).array(GgufType::kUint8, kLimit + 1);
  const auto path = folder.write("sparse.gguf", raw.bytes);
  std::filesystem::resize_file(path, raw.bytes.size() + kLimit + 1);
  allocation_count() = {};
  CHECK(message_of([&] { GgufFile::open(path); }) ==
        "[gguf] key k: array of 67108865 values, the limit for all arrays is 67108864 (sparse.gguf)");
  CHECK(allocation_count().total < 32768);
}

TEST_CASE("gguf hostile: not a regular file") {
  const TemporaryFolder folder;
  const auto open_error = [](const std::filesystem::path& path) { return message_of([&] { GgufFile::open(path); }); };
  CHECK(open_error(folder.path) == "[gguf] " + folder.path.string() + ": expected a file, found a directory");
  CHECK(open_error(folder.path / "no.gguf") ==
        "[gguf] " + (folder.path / "no.gguf").string() + ": cannot open: No such file or directory");
  CHECK(open_error(folder.write("empty.gguf", "")) == "[gguf] empty.gguf: expected a GGUF file, found an empty file");
  const auto pipe = folder.path / "pipe.gguf";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK(open_error(pipe) == "[gguf] " + pipe.string() + ": expected a regular file, found a device or pipe");
}

TEST_CASE("gguf hostile: damage is also found without a mapping") {
  const TemporaryFolder folder;
  const std::string whole = small_valid_file();
  for (size_t n = 0; n < whole.size(); n += 7) {
    const auto path = folder.write("cut.gguf", whole.substr(0, n));
    const std::string mapped = message_of([&] { GgufFile::open(path); });
    CHECK(mapped.starts_with("[gguf] "));
    CHECK(message_of([&] { GgufFile::open(path, {.use_mmap = false}); }) == mapped);
    CHECK(message_of([&] { GgufFile::open(path, {.map_data = false}); }) == mapped);
  }
}
