#include "src/server/access.h"

#include <arpa/inet.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "ggml-like/error.h"
#include "ggml-like/printable.h"
#include "src/server/http_head.h"

namespace infer {
namespace {

constexpr size_t kMaxKeyBytes = 1024;

std::string_view without_white_space(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") + 1 - first);
}

void add_key(std::string_view key, std::vector<std::string>& keys) {
  const bool printable_key = std::all_of(key.begin(), key.end(), [](char c) { return c > ' ' && c < 0x7F; });
  if (!printable_key || key.size() > kMaxKeyBytes) {
    throw Error(ErrorCode::kInvalidArgument, concat("API key ", keys.size() + 1,
                                                    " is not valid. Use 1 to 1,024 "
                                                    "printable ASCII characters without blanks."));
  }
  keys.emplace_back(key);
}

// Always examines every byte, whether or not earlier ones matched.
bool equal_in_constant_time(std::string_view secret, std::string_view given) {
  unsigned difference = secret.size() == given.size() ? 0 : 1;
  for (size_t i = 0; i < given.size(); ++i) {
    const unsigned char expected = secret.empty() ? 0 : static_cast<unsigned char>(secret[i % secret.size()]);
    difference |= expected ^ static_cast<unsigned char>(given[i]);
  }
  return difference == 0;
}

// "example.org:8080" is example.org, "[::1]:8080" is ::1.
std::string host_of(std::string_view header) {
  if (header.starts_with('[')) return lower(header.substr(1, std::min(header.find(']'), header.size()) - 1));
  if (std::count(header.begin(), header.end(), ':') > 1) return lower(header);
  return lower(header.substr(0, header.find(':')));
}

bool is_address(const std::string& host) {
  unsigned char buffer[sizeof(in6_addr)];
  return inet_pton(AF_INET, host.c_str(), buffer) == 1 || inet_pton(AF_INET6, host.c_str(), buffer) == 1;
}

// Both are lowercase. `entry` is a host or an origin, possibly with a slash at the end.
bool origin_matches(const std::string& origin, std::string entry) {
  if (entry.ends_with('/')) entry.pop_back();
  if (entry.find("://") != std::string::npos) return origin == entry;
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!origin.starts_with(scheme)) continue;
    const std::string_view from = std::string_view(origin).substr(scheme.size());
    if (from == entry) return true;
    // A port follows the host (for IPv6, its closing bracket).
    const size_t end = from.rfind(':');
    return end != std::string_view::npos && from.find(']', end) == std::string_view::npos &&
           from.substr(0, end) == entry;
  }
  return false;
}

}  // namespace

std::vector<std::string> read_api_keys(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw Error(ErrorCode::kIo, "Cannot read the API keys from " + printable(path) + ".");
  std::vector<std::string> keys;
  for (std::string line; std::getline(file, line);) {
    const std::string_view key = without_white_space(line);
    if (!key.empty() && !key.starts_with('#')) add_key(key, keys);
  }
  if (file.bad()) throw Error(ErrorCode::kIo, "Cannot read the API keys from " + printable(path) + ".");
  if (keys.empty()) {
    throw Error(ErrorCode::kInvalidArgument, "Found no API key in " + printable(path) + ". Write one per line.");
  }
  return keys;
}

std::vector<std::string> split_api_keys(std::string_view text) {
  std::vector<std::string> keys;
  std::istringstream in{std::string(text)};
  for (std::string key; std::getline(in, key, ',');) {
    if (!without_white_space(key).empty()) add_key(without_white_space(key), keys);
  }
  return keys;
}

std::optional<size_t> find_api_key(const std::vector<std::string>& keys, std::string_view authorization) {
  constexpr std::string_view kScheme = "bearer ";
  if (lower(authorization.substr(0, kScheme.size())) != kScheme) return std::nullopt;
  const std::string_view given = without_white_space(authorization.substr(kScheme.size()));
  std::optional<size_t> found;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (equal_in_constant_time(keys[i], given)) found = i;
  }
  return found;
}

bool is_loopback(std::string_view host) {
  const std::string name = lower(host);
  if (name == "localhost") return true;
  in_addr v4;
  if (inet_pton(AF_INET, name.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  in6_addr v6;
  return inet_pton(AF_INET6, name.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

bool host_allowed(std::string_view header, std::string_view bound, const std::vector<std::string>& allowed) {
  const std::string host = host_of(header);
  if (host.empty()) return false;
  if (host == "localhost" || is_address(host) || host == lower(bound)) return true;
  return std::any_of(allowed.begin(), allowed.end(),
                     [&](const std::string& name) { return name == "*" || lower(name) == host; });
}

bool origin_allowed(std::string_view origin, std::string_view host, const std::vector<std::string>& allowed) {
  const std::string from = lower(origin);
  if (from == "http://" + lower(host) || from == "https://" + lower(host)) return true;
  return std::any_of(allowed.begin(), allowed.end(),
                     [&](const std::string& entry) { return entry == "*" || origin_matches(from, lower(entry)); });
}

std::string allowed_request_headers(std::string_view asked) {
  constexpr size_t kMaxHeaders = 64;
  std::vector<std::string> names = {"authorization", "content-type"};
  std::string text = "Authorization, Content-Type";
  while (!asked.empty() && names.size() < kMaxHeaders) {
    const size_t comma = std::min(asked.find(','), asked.size());
    const std::string name = lower(without_white_space(asked.substr(0, comma)));
    asked.remove_prefix(std::min(comma + 1, asked.size()));
    if (!is_token(name) || std::find(names.begin(), names.end(), name) != names.end()) continue;
    text += ", " + name;
    names.push_back(name);
  }
  return text;
}

}  // namespace infer
