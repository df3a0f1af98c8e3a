// Run for both implementations, see tests/CMakeLists.txt.
#include "src/hub/sha256.h"

#include <doctest/doctest.h>

#include <cstdio>
#include <string>

#include "ggml-like/error.h"

using namespace infer;

namespace {

std::string hash_of(const std::string& text) {
  Sha256 hash;
  hash.add(text.data(), text.size());
  return hash.finish();
}

}  // namespace

TEST_CASE("the examples of FIPS 180-4") {
  CHECK(hash_of("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(hash_of("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(hash_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  CHECK(hash_of(std::string(1000000, 'a')) == "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_CASE("the pieces in which a text is added do not matter") {
  std::string text;
  for (int i = 0; i < 500; ++i) text += static_cast<char>(i * 7);
  const std::string whole = hash_of(text);
  for (size_t piece = 1; piece < 200; ++piece) {
    Sha256 hash;
    for (size_t at = 0; at < text.size(); at += piece) hash.add(text.data() + at, std::min(piece, text.size() - at));
    CHECK(hash.finish() == whole);
  }
}

TEST_CASE("a hash is written in 64 lower-case digits") {
  CHECK(is_sha256(std::string(64, 'a')));
  CHECK_FALSE(is_sha256(std::string(64, 'A')));
  CHECK_FALSE(is_sha256(std::string(63, 'a')));
  CHECK_FALSE(is_sha256(std::string(64, 'g')));
}

TEST_CASE("a file") {
  const std::filesystem::path path = std::filesystem::temp_directory_path() / "infer-sha256-test";
  std::FILE* file = std::fopen(path.c_str(), "wb");
  REQUIRE(file);
  std::fputs("abc", file);
  std::fclose(file);
  CHECK(sha256_of_file(path) == hash_of("abc"));
  CHECK_THROWS_AS(sha256_of_file(path, [] { return true; }), Error);
  std::filesystem::remove(path);
  CHECK_THROWS_AS(sha256_of_file(path), Error);
}
