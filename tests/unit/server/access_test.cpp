// Keys, hosts and origins.
#include "src/server/access.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "ggml-like/error.h"

namespace infer {
namespace {

using Names = std::vector<std::string>;

TEST_CASE("access: keys of a file") {
  const auto path = std::filesystem::temp_directory_path() / ("infer_keys_" + std::to_string(getpid()));
  const auto keys_of = [&](const std::string& text) {
    std::ofstream(path) << text;
    return read_api_keys(path.string());
  };
  CHECK(keys_of("a\n# b\n\n  c\t\r\nd#e") == Names{"a", "c", "d#e"});
  CHECK_THROWS_AS(keys_of(""), Error);
  CHECK_THROWS_AS(keys_of("a b\n"), Error);
  CHECK_THROWS_AS(keys_of("a\x01\n"), Error);
  CHECK_THROWS_AS(keys_of(std::string(1025, 'a')), Error);
  std::filesystem::remove(path);
  CHECK_THROWS_AS(read_api_keys(path.string()), Error);
  CHECK(split_api_keys("a, b,,c") == Names{"a", "b", "c"});
  CHECK(split_api_keys("").empty());
}

TEST_CASE("access: the key of a header") {
  const Names keys = {"alpha", "beta"};
  CHECK(find_api_key(keys, "Bearer alpha") == 0u);
  CHECK(find_api_key(keys, "bearer  beta ") == 1u);
  for (const char* wrong : {"", "alpha", "Bearer", "Bearer ", "Bearer alph", "Bearer alphaa", "Bearer alphalpha",
                            "Bearer Alpha", "Basic alpha", "Bearer alpha beta"}) {
    CAPTURE(wrong);
    CHECK(!find_api_key(keys, wrong));
  }
  CHECK(!find_api_key({}, "Bearer "));
}

TEST_CASE("access: addresses that only this machine can reach") {
  for (const char* own : {"localhost", "LocalHost", "127.0.0.1", "127.9.9.9", "::1"}) CHECK(is_loopback(own));
  for (const char* other : {"0.0.0.0", "::", "10.0.0.1", "example.org", "127.0.0.1.example.org", "128.0.0.1", ""}) {
    CAPTURE(other);
    CHECK(!is_loopback(other));
  }
}

TEST_CASE("access: hosts") {
  for (const char* good : {"localhost", "localhost:80", "127.0.0.1:8080", "[::1]", "[::1]:80", "::1", "192.168.0.1",
                           "my.host", "MY.HOST:1", "listed.example:5"}) {
    CAPTURE(good);
    CHECK(host_allowed(good, "my.host", {"Listed.example"}));
  }
  for (const char* bad : {"", ":80", "evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "[", "[]",
                          "my.host.evil.example", "300.1.1.1"}) {
    CAPTURE(bad);
    CHECK(!host_allowed(bad, "my.host", {"listed.example"}));
  }
  CHECK(host_allowed("any.example", "x", {"*"}));
}

TEST_CASE("access: origins") {
  CHECK(origin_allowed("http://localhost:8080", "localhost:8080", {}));
  CHECK(origin_allowed("https://localhost:8080", "localhost:8080", {}));
  CHECK(!origin_allowed("http://localhost:81", "localhost:8080", {}));
  CHECK(!origin_allowed("null", "localhost", {"http://a.example"}));
  CHECK(origin_allowed("http://A.example", "x", {"http://a.example"}));
  CHECK(!origin_allowed("http://a.example.evil", "x", {"http://a.example"}));
  CHECK(origin_allowed("null", "x", {"*"}));
  CHECK(origin_allowed("http://a.example", "x", {"http://a.example/"}));
}

TEST_CASE("access: origins of a host") {
  for (const char* good : {"http://localhost", "http://localhost:3000", "https://LOCALHOST:1", "http://[::1]:3000"}) {
    CAPTURE(good);
    CHECK(origin_allowed(good, "x", {"localhost", "[::1]"}));
  }
  for (const char* bad : {"null", "localhost", "http://localhost.a", "http://a.localhost", "http://notlocalhost:3000",
                          "ftp://localhost", "http://[::1", "http://[::2]:1"}) {
    CAPTURE(bad);
    CHECK(!origin_allowed(bad, "x", {"localhost", "[::1]"}));
  }
  CHECK(origin_allowed("https://localhost:3000", "x", {"localhost:3000"}));
  CHECK(!origin_allowed("https://localhost:3001", "x", {"localhost:3000"}));
}

TEST_CASE("access: headers that a page may send") {
  CHECK(allowed_request_headers("") == "Authorization, Content-Type");
  CHECK(allowed_request_headers("authorization, X-Stainless-OS,content-type,x-stainless-os") ==
        "Authorization, Content-Type, x-stainless-os");
  CHECK(allowed_request_headers("x a, ,x:b,\"c\",x-d") == "Authorization, Content-Type, x-d");
  std::string many;
  for (int i = 0; i < 1000; ++i) many += "x-" + std::to_string(i) + ",";
  const std::string allowed = allowed_request_headers(many);
  CHECK(std::count(allowed.begin(), allowed.end(), ',') == 63);
}

}  // namespace
}  // namespace infer
