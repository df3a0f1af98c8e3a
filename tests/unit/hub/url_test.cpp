#include "src/hub/url.h"

#include <doctest/doctest.h>

#include "ggml-like/error.h"
#include "src/hub/proxy.h"

using namespace infer;

namespace {

std::string resolved(const char* base, const char* location) {
  const std::optional<Url> url = resolve_url(*parse_url(base), location);
  return url ? url->text() : "none";
}

// The proxy's host and port, "none" for a direct connection.
std::string proxy_text(const char* url, std::initializer_list<std::pair<std::string, std::string>> variables) {
  const auto environment = [&](const char* name) -> std::string {
    for (const auto& [key, value] : variables) {
      if (key == name) return value;
    }
    return "";
  };
  const std::optional<Proxy> proxy = proxy_for(*parse_url(url), environment);
  if (!proxy) return "none";
  const std::string login = proxy->user.empty() ? "" : proxy->user + ":" + proxy->password + "@";
  return login + proxy->host + ":" + std::to_string(proxy->port);
}

}  // namespace

TEST_CASE("parts of a URL") {
  const std::optional<Url> url = parse_url("HTTP://Example.com:8080/a/b%20c?x=1+2#part");
  REQUIRE(url);
  CHECK(url->scheme == "http");
  CHECK(url->host == "example.com");
  CHECK(url->port == 8080);
  CHECK(url->target == "/a/b%20c?x=1+2");
  CHECK(url->path() == "/a/b%20c");
  CHECK(url->text() == "http://example.com:8080/a/b%20c?x=1+2");
  CHECK(url->shown() == "http://example.com:8080/a/b%20c");
  CHECK(parse_url("https://h")->text() == "https://h/");
  CHECK(parse_url("https://h:443/")->origin() == "https://h");
  CHECK(parse_url("https://h?q")->target == "/?q");
  CHECK(parse_url("http://[::1]:80/x")->host == "::1");
  CHECK(parse_url("http://[::1]:8/x")->text() == "http://[::1]:8/x");
}

TEST_CASE("what is no URL") {
  for (const char* text : {"", "h/x", "ftp://h/x", "file:///x", "https://", "https:///x", "https://u:p@h/",
                           "https://h:0/", "https://h:65536/", "https://h:8x/", "https://h /x", "https://h/\r\nX: y",
                           "https://[::1/x", "https://[::1]x/", "https://h/\x80"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_url(text));
  }
}

TEST_CASE("targets of redirects") {
  CHECK(resolved("https://a/b/c?d", "https://e/f") == "https://e/f");
  CHECK(resolved("https://a:1/b/c", "/d?u=https://x/") == "https://a:1/d?u=https://x/");
  CHECK(resolved("https://a/b/c?d", "e") == "https://a/b/e");
  CHECK(resolved("https://a/b/c", "?e") == "https://a/b/c?e");
  CHECK(resolved("https://a/b", "//e/f") == "https://e/f");
  CHECK(resolved("https://a/b", "ftp://e/f") == "none");
  CHECK(resolved("https://a/b", "") == "none");
}

TEST_CASE("origins differ in scheme, host or port") {
  const Url url = *parse_url("https://a/x");
  CHECK(url.same_origin(*parse_url("https://A:443/y")));
  for (const char* other : {"http://a:443/x", "https://b/x", "https://a:444/x", "https://a.b/x"}) {
    CHECK_FALSE(url.same_origin(*parse_url(other)));
  }
}

TEST_CASE("percent encoding") {
  CHECK(percent_encoded_path("a/b c+d~é%") == "a/b%20c%2Bd~%C3%A9%25");
  CHECK(percent_decoded("a%20b%2f+") == "a b/+");
  CHECK_FALSE(percent_decoded("a%2"));
  CHECK_FALSE(percent_decoded("a%zz"));
}

TEST_CASE("the environment chooses the proxy") {
  CHECK(proxy_text("http://a/", {}) == "none");
  CHECK(proxy_text("http://a/", {{"http_proxy", "http://p:3128"}}) == "p:3128");
  CHECK(proxy_text("http://a/", {{"HTTP_PROXY", "http://p:3128"}}) == "none");
  CHECK(proxy_text("https://a/", {{"http_proxy", "http://p:3128"}}) == "none");
  CHECK(proxy_text("https://a/", {{"HTTPS_PROXY", "p:3128"}}) == "p:3128");
  CHECK(proxy_text("https://a/", {{"https_proxy", "http://p"}}) == "p:1080");
  CHECK(proxy_text("https://a/", {{"all_proxy", "http://p:1"}}) == "p:1");
  CHECK(proxy_text("https://a/", {{"https_proxy", "http://me:p%40ss@p:1/"}}) == "me:p@ss@p:1");
  CHECK_THROWS_AS(proxy_text("https://a/", {{"https_proxy", "socks5://p:1"}}), Error);
  CHECK_THROWS_AS(proxy_text("https://a/", {{"https_proxy", "http://p:x"}}), Error);
}

TEST_CASE("no_proxy") {
  const auto direct = [](const char* url, const char* list) {
    return proxy_text(url, {{"https_proxy", "p:1"}, {"http_proxy", "p:1"}, {"no_proxy", list}}) == "none";
  };
  CHECK(direct("https://a.b/", "*"));
  CHECK(direct("https://a.b/", "x, a.b"));
  CHECK(direct("https://a.b/", "b"));
  CHECK(direct("https://a.b/", ".b"));
  CHECK(direct("https://a.b/", "*.b"));
  CHECK(direct("https://a.b/", "A.B:443"));
  CHECK(direct("http://[::1]:8/", "[::1]"));
  CHECK(direct("http://[::1]:8/", "::1"));
  CHECK_FALSE(direct("https://a.b/", "a.b:444"));
  CHECK_FALSE(direct("https://xa.b/", "a.b"));
  CHECK_FALSE(direct("https://a.b/", "a"));
  CHECK_FALSE(direct("https://a.b/", ", ,."));
  CHECK_FALSE(direct("http://[::1]:8/", "[::1]:9"));
}
